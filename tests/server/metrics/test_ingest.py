"""Taking metric batches: once, whole or not at all, and only while they are wanted."""

from __future__ import annotations

import json
import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from server.events.models import Event, OutboxMessage
from server.metrics.models import Evaluation, IngestBatch, MetricPoint
from server.runs.models import Attempt, Run
from server.runs.states import Status
from tests.conftest import Clock
from tests.server.reporting import (
    Headers,
    Reporter,
    bearer,
    evaluation,
    external_run,
    faults,
    launch,
    move,
    queued_run,
)

Sessions = sessionmaker[Session]


@pytest.fixture
def run(api: TestClient, headers: Headers) -> Reporter:
    return external_run(api, headers)


def rows(sessions: Sessions) -> dict[str, int]:
    with sessions() as session:
        return {
            table.__tablename__: session.scalar(select(func.count()).select_from(table)) or 0
            for table in (IngestBatch, MetricPoint, Evaluation)
        }


def point(step: int = 1, value: Any = 0.5, metric: str = "train/reward", **more: Any) -> dict[str, Any]:
    return {"metric": metric, "step": step, "value": value, **more}


def test_a_batch_is_stored_and_read_back(api: TestClient, headers: Headers, run: Reporter) -> None:
    counts = [4, 0, 3, 1]
    sent = evaluation(40, 8.1, samples=4, counts=counts, reward=0.5, details={"response_length": 19.2})
    answer = run.send(1, sent, points=[point(40, 0.41, compute=8.1), point(40, 3e-4, "train/lr")])
    assert answer.status_code == 200, answer.text
    assert answer.json() == {"seq": 1, "accepted": 3, "duplicate": False}
    read = api.get(f"/v1/runs/{run.run_id}/evaluations", headers=headers["read"]).json()
    assert read["unit"] == "GPU-hours"
    (item,) = read["items"]
    assert (item["step"], item["attempt"], item["compute"], item["reward"]) == (40, 1, 8.1, 0.5)
    assert (item["prompts"], item["samples"], item["details"]) == (4, 4, {"response_length": 19.2})
    rates = [count / 4 for count in counts]
    assert item["se"] == pytest.approx(math.sqrt(sum(p * (1 - p) for p in rates) / 3 / 4**2))
    names = api.get(f"/v1/runs/{run.run_id}/metrics", headers=headers["read"]).json()
    assert names == {"metrics": ["train/lr", "train/reward"]}
    series = api.get(f"/v1/runs/{run.run_id}/metrics?metric=train/reward", headers=headers["read"]).json()
    assert [(p["step"], p["compute"], p["value"]) for p in series["points"]] == [(40, 8.1, 0.41)]


def test_no_evaluation_is_exact_though_every_prompt_has_all_or_none(
    run: Reporter, api: TestClient, headers: Headers
) -> None:
    run.send(1, {"step": 0, "compute": 0, "samples": 4, "counts": [4, 0, 4, 0]})
    (item,) = api.get(f"/v1/runs/{run.run_id}/evaluations", headers=headers["read"]).json()["items"]
    assert 0 < item["se"] < math.sqrt(0.25 / 16)


def test_a_single_sample_gives_the_binomial_error(run: Reporter, api: TestClient, headers: Headers) -> None:
    run.send(1, {"step": 0, "compute": 0, "samples": 1, "counts": [1, 0, 0, 0]})
    run.send(2, evaluation(10, reward=0.25, prompts=100, samples=2), evaluation(20))
    items = api.get(f"/v1/runs/{run.run_id}/evaluations", headers=headers["read"]).json()["items"]
    assert [item["reward"] for item in items] == [0.25, 0.25, 0.5]
    assert items[0]["se"] == pytest.approx(math.sqrt(0.25 * 0.75 / 4))
    assert items[1]["se"] == pytest.approx(math.sqrt(0.25 * 0.75 / 200))
    assert items[2]["se"] is None


def test_numbers_that_are_not_finite_survive_by_name(run: Reporter, api: TestClient, headers: Headers) -> None:
    sent = ["NaN", "Infinity", "-Infinity", 1.5]
    assert run.send(1, points=[point(step, value) for step, value in enumerate(sent)]).json()["accepted"] == 4
    answer = api.get(f"/v1/runs/{run.run_id}/metrics?metric=train/reward", headers=headers["read"])
    assert [p["value"] for p in answer.json()["points"]] == sent
    since = api.get(f"/v1/runs/{run.run_id}/metrics?metric=train/reward&since_step=2", headers=headers["read"])
    assert [p["step"] for p in since.json()["points"]] == [2, 3]


def test_zero_has_no_sign(run: Reporter, api: TestClient, headers: Headers) -> None:
    sent = evaluation(1, -0.0, -0.0, details={"tokens": -0.0})
    assert run.send(1, sent, points=[point(1, -0.0, compute=-0.0)]).status_code == 200
    for what in ("", "/evaluations", "/metrics?metric=train/reward", "/curve"):
        answer = api.get(f"/v1/runs/{run.run_id}{what}", headers=headers["read"])
        assert answer.status_code == 200
        assert "-0.0" not in answer.text, what


def test_the_first_batch_starts_an_external_run(sessions: Sessions, run: Reporter, clock: Clock) -> None:
    with sessions() as session:
        assert session.get_one(Run, run.run_id).status == "queued"
    run.send(1, points=[point()])
    with sessions() as session:
        row = session.get_one(Run, run.run_id)
        assert (row.status, row.started_at, row.dirty_at) == ("running", clock.now, None)
        attempt = session.scalars(select(Attempt).where(Attempt.run_id == run.run_id)).one()
        assert (attempt.started_at, attempt.last_heartbeat_at) == (clock.now, clock.now)


def test_evaluations_sum_up_the_run_and_ask_for_one_refit(sessions: Sessions, run: Reporter, clock: Clock) -> None:
    run.send(1, evaluation(10, reward=0.2))
    first = clock.now
    clock.advance(1)
    run.send(2, evaluation(20, reward=0.3), evaluation(30, reward=0.4))
    with sessions() as session:
        row = session.get_one(Run, run.run_id)
        assert (row.last_step, row.last_compute, row.last_reward) == (30, 30.0, 0.4)
        assert row.dirty_at is not None
        assert row.dirty_at > first
        assert row.dirty_since == first, "they wait since the first of them"
        asked = session.scalars(select(OutboxMessage).where(OutboxMessage.task == "worker.tasks.refit")).all()
        assert [message.args for message in asked] == [[run.run_id]], "the second batch finds the run dirty already"
        events = session.scalars(select(Event).where(Event.kind == "evaluation").order_by(Event.id)).all()
        assert [event.evidence["step"] for event in events] == [10, 30]


def test_a_refit_in_flight_sees_that_more_has_come_within_the_same_instant(sessions: Sessions, run: Reporter) -> None:
    run.send(1, evaluation(10))
    with sessions() as session:
        seen = session.get_one(Run, run.run_id).dirty_at
    run.send(2, evaluation(20))
    with sessions() as session:
        assert session.get_one(Run, run.run_id).dirty_at != seen


def test_the_same_batch_again_changes_nothing(sessions: Sessions, run: Reporter) -> None:
    sent = {"seq": 1, "points": [point()], "evaluations": [evaluation(10, reward=0.2)]}
    assert run.post("metrics", sent).json()["duplicate"] is False
    before = rows(sessions)
    again = run.post("metrics", {key: sent[key] for key in reversed(sent)})
    assert again.json() == {"seq": 1, "accepted": 0, "duplicate": True}
    assert rows(sessions) == before


def test_of_a_step_that_is_logged_twice_the_last_value_counts(run: Reporter, headers: Headers) -> None:
    """As within a batch of the client's, so that it is no matter of timing."""
    assert run.send(1, points=[point(1, 1.0), point(2, 2.0)]).json()["accepted"] == 2
    assert run.send(2, points=[point(2, 3.0), point(3, 4.0)]).json()["accepted"] == 1
    found = run.api.get(f"/v1/runs/{run.run_id}/metrics?metric=train/reward", headers=headers["read"]).json()
    assert [item["value"] for item in found["points"]] == [1.0, 3.0, 4.0]


def test_metrics_beyond_all_bounds_are_thinned_too(run: Reporter, headers: Headers) -> None:
    values = [1e308, -1e308, 1e308, 0.5, 1.5, 5e-324]
    run.send(1, points=[point(step, value, "big") for step, value in enumerate(values)])
    answer = run.api.get(f"/v1/runs/{run.run_id}/metrics:thinned?metric=big&buckets=2", headers=headers["read"])
    first, second = answer.json()["items"][0]["buckets"]
    assert (first["least"], first["greatest"]) == (-1e308, 1e308)
    assert second["mean"] == pytest.approx(2 / 3)


def test_a_second_batch_with_the_same_number_is_refused(sessions: Sessions, run: Reporter) -> None:
    run.send(1, evaluation(10))
    before = rows(sessions)
    answer = run.send(1, evaluation(20))
    assert answer.status_code == 409
    assert "next free number is 2" in faults(answer)["seq"]
    assert answer.json()["next_seq"] == 2
    assert rows(sessions) == before


NAN = float("nan")
BAD_EVALUATIONS: dict[str, tuple[list[dict[str, Any]], str, str]] = {
    "NaN reward": ([evaluation(10), evaluation(20), evaluation(30), evaluation(40, reward=NAN)], "3.reward", "finite"),
    "NaN reward by name": ([evaluation(10, reward="NaN")], "0.reward", "finite"),
    "reward above 1": ([evaluation(10, reward=1.01)], "0.reward", "0 to 1"),
    "reward below 0": ([evaluation(10, reward=-0.1)], "0.reward", "0 to 1"),
    "no reward at all": ([{"step": 10, "compute": 1.0}], "0.reward", "counts"),
    "negative compute": ([evaluation(10, -1.0)], "0.compute", "0 or from"),
    "NaN compute": ([evaluation(10, NAN)], "0.compute", "finite"),
    "compute that no fit takes": ([evaluation(10, 1e41)], "0.compute", "1e+40"),
    "compute below all units": ([evaluation(10, 1e-31)], "0.compute", "1e-30"),
    "a time without a zone": ([evaluation(10, time="2026-01-31T12:00:00")], "0.time", "zone"),
    "a time before years": ([evaluation(10, time="0001-01-01T00:00:00+14:00")], "0.time", "2000-01-01"),
    "a time after years": ([evaluation(10, time="9999-12-31T23:59:59-14:00")], "0.time", "2100-01-01"),
    "compute goes backwards": ([evaluation(10, 5.0), evaluation(20, 4.0)], "1.compute", "backwards"),
    "a step twice": ([evaluation(10), evaluation(10)], "1.step", "twice"),
    "more counts than prompts": ([evaluation(10, counts=[1, 1, 0], samples=1, prompts=2)], "0.counts", "2 prompts"),
    "a count above samples": ([evaluation(10, counts=[1, 5], samples=4)], "0.counts.1", "0 to `samples`"),
    "a negative count": ([evaluation(10, counts=[-1, 3], samples=4)], "0.counts.0", "0 to `samples`"),
    "counts without samples": ([evaluation(10, counts=[1, 0])], "0.samples", "generations per prompt"),
    "no counts in counts": ([evaluation(10, counts=[], samples=4)], "0.counts", "empty"),
    "reward and counts disagree": ([evaluation(10, reward=0.6, counts=[2, 2], samples=4)], "0.reward", "agree"),
    "too many details": (
        [evaluation(10, details={str(number): number for number in range(101)})],
        "0.details",
        "must have at most 100 entries",
    ),
    "a negative step": ([evaluation(-1, 1.0)], "0.step", "must be at least 0"),
    "a step that is true": ([{**evaluation(1), "step": True}], "0.step", "must be a whole number"),
    "a reward in words": ([evaluation(10, reward="high")], "0.reward", "number"),
    "an unknown field": ([evaluation(10, rewards=0.5)], "0.rewards", "unknown field"),
}


@pytest.mark.parametrize("case", BAD_EVALUATIONS)
def test_a_bad_evaluation_is_named_and_nothing_is_stored(case: str, sessions: Sessions, run: Reporter) -> None:
    evaluations, field, message = BAD_EVALUATIONS[case]
    body = json.dumps({"attempt": 1, "seq": 1, "points": [point()], "evaluations": evaluations})
    headers = {**bearer(run.token), "Content-Type": "application/json"}
    answer = run.api.post(f"/v1/runs/{run.run_id}/metrics", content=body, headers=headers)
    assert answer.status_code == 422, answer.text
    assert message in faults(answer)[f"evaluations.{field}"]
    assert "None" not in answer.json()["detail"]
    assert rows(sessions) == {"ingest_batches": 0, "metric_points": 0, "evaluations": 0}
    with sessions() as session:
        assert session.get_one(Run, run.run_id).status == "queued"


BAD_POINTS: dict[str, tuple[list[dict[str, Any]], str]] = {
    "a metric twice at a step": ([point(1), point(1)], "points.1.step"),
    "negative compute": ([point(1, compute=-2)], "points.0.compute"),
    "compute that no fit takes": ([point(1, compute=1e41)], "points.0.compute"),
    "a time before years": ([point(1, time="0001-01-01T00:00:00+14:00")], "points.0.time"),
    "compute goes backwards": ([point(1, compute=2), point(2, compute=1)], "points.1.compute"),
    "an unknown word for a value": ([point(1, "nan")], "points.0.value"),
    "no name": ([point(metric="")], "points.0.metric"),
    "a step past what is stored": ([point(2**31)], "points.0.step"),
    "a name with a NUL": ([point(metric="a\x00b")], "points.0.metric"),
}


@pytest.mark.parametrize("case", BAD_POINTS)
def test_a_bad_point_is_named_and_nothing_is_stored(case: str, sessions: Sessions, run: Reporter) -> None:
    points, field = BAD_POINTS[case]
    answer = run.send(1, evaluation(10), points=points)
    assert answer.status_code == 422, answer.text
    assert field in faults(answer)
    assert rows(sessions) == {"ingest_batches": 0, "metric_points": 0, "evaluations": 0}


def test_the_problem_shows_the_offending_value(run: Reporter) -> None:
    (fault,) = run.send(1, evaluation(10, reward=1.7)).json()["errors"]
    assert fault["value"] == 1.7
    (fault,) = run.send(1, evaluation(10, reward="NaN")).json()["errors"]
    assert fault["value"] == "NaN"


def test_compute_may_not_fall_below_what_was_stored(sessions: Sessions, run: Reporter) -> None:
    run.send(1, evaluation(10, 5.0), evaluation(30, 9.0))
    before = rows(sessions)
    assert "less at step 40 than the 9" in faults(run.send(2, evaluation(40, 8.9)))["evaluations.0.compute"]
    assert "more at step 20 than the 9" in faults(run.send(2, evaluation(20, 9.5)))["evaluations.0.compute"]
    assert "already" in faults(run.send(2, evaluation(30, 9.0)))["evaluations.0.step"]
    assert rows(sessions) == before
    assert run.send(2, evaluation(40, 9.0), evaluation(20, 7.0)).status_code == 200


def test_all_faults_are_named_at_once(run: Reporter) -> None:
    answer = run.send(1, evaluation(10, -1.0, 2.0), points=[point(1, compute=-1)])
    assert set(faults(answer)) == {"points.0.compute", "evaluations.0.compute", "evaluations.0.reward"}


def test_a_metric_for_an_unknown_run_is_404_with_the_way_out(api: TestClient, headers: Headers, run: Reporter) -> None:
    for credentials in (bearer(run.token), headers["admin"]):
        answer = api.post("/v1/runs/run_nowhere/metrics", json={"attempt": 1, "seq": 1}, headers=credentials)
        assert answer.status_code == 404
        assert "GET /v1/runs" in faults(answer)["run_id"]


def test_only_the_runs_own_token_may_report(api: TestClient, headers: Headers, run: Reporter) -> None:
    other = external_run(api, headers)
    for credentials in (headers["admin"], headers["operate"], bearer(other.token)):
        answer = api.post(f"/v1/runs/{run.run_id}/metrics", json={"attempt": 1, "seq": 1}, headers=credentials)
        assert answer.status_code == 403
        assert "its own ingest token" in answer.json()["detail"]


def test_a_token_is_good_for_its_own_attempt_only(run: Reporter) -> None:
    answer = run.post("metrics", {"attempt": 2, "seq": 1})
    assert answer.status_code == 403
    assert "is for attempt 1" in answer.json()["detail"]


def test_a_superseded_attempt_is_refused_but_its_replays_are_not(
    api: TestClient, sessions: Sessions, headers: Headers, clock: Clock
) -> None:
    run_id = queued_run(api, headers)
    first = launch(api, sessions, run_id, clock.now)
    assert first.send(1, evaluation(10)).status_code == 200
    move(sessions, run_id, Status.LOST, clock.now)
    move(sessions, run_id, Status.QUEUED, clock.now)
    given_up = first.send(2, evaluation(20))
    assert (given_up.status_code, given_up.json()["code"]) == (409, "superseded")
    second = launch(api, sessions, run_id, clock.now)
    late = first.send(2, evaluation(20))
    assert (late.status_code, late.json()["code"]) == (409, "superseded")
    assert "superseded by attempt 2" in faults(late)["attempt"]
    assert first.send(1, evaluation(10)).json()["duplicate"] is True
    assert second.send(1, evaluation(20)).status_code == 200, "its numbers and its compute begin anew"


def test_a_run_that_is_over_takes_no_more(sessions: Sessions, run: Reporter, clock: Clock) -> None:
    run.send(1, evaluation(10))
    move(sessions, run.run_id, Status.SUCCEEDED, clock.now)
    answer = run.send(2, evaluation(20))
    assert (answer.status_code, answer.json()["code"]) == (409, "over")
    assert answer.json()["state"] == "succeeded"
    assert "start a new run" in answer.json()["detail"]
    assert run.send(1, evaluation(10)).json()["duplicate"] is True


def test_a_batch_of_more_than_ten_megabytes_is_413(sessions: Sessions, run: Reporter) -> None:
    body = b'{"attempt": 1, "seq": 1, "points": []' + b" " * (10 * 1024 * 1024) + b"}"
    headers = {**bearer(run.token), "Content-Type": "application/json"}
    path = f"/v1/runs/{run.run_id}/metrics"
    stated = run.api.post(path, content=body, headers=headers)
    chunked = run.api.post(path, content=iter([body[:5_000_000], body[5_000_000:]]), headers=headers)
    for answer in (stated, chunked):
        assert answer.status_code == 413, answer.text
        assert answer.json()["code"] == "too-large"
        assert "10 MB" in answer.json()["detail"]
        assert answer.headers["content-type"] == "application/problem+json"
    assert rows(sessions)["ingest_batches"] == 0


def test_a_large_batch_is_taken_in_one_go(api: TestClient, headers: Headers, run: Reporter) -> None:
    points = [point(step, step / 7, f"m{metric}") for metric in range(10) for step in range(1000)]
    assert run.send(1, points=points).json()["accepted"] == 10_000
    names = api.get(f"/v1/runs/{run.run_id}/metrics", headers=headers["read"]).json()["metrics"]
    assert names == [f"m{metric}" for metric in range(10)]


def test_the_same_batch_eight_times_at_once_is_taken_once(sessions: Sessions, run: Reporter) -> None:
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: run.send(1, evaluation(10), points=[point()]), range(8)))
    assert {answer.status_code for answer in answers} == {200}
    assert sorted(answer.json()["duplicate"] for answer in answers) == [False] + [True] * 7
    assert rows(sessions) == {"ingest_batches": 1, "metric_points": 1, "evaluations": 1}


def test_batches_and_heartbeats_at_once_do_not_trip_over_each_other(sessions: Sessions, run: Reporter) -> None:
    def send(seq: int) -> int:
        if seq % 2:
            return run.beat(step=seq).status_code
        return run.send(seq, evaluation(seq), points=[point(seq)]).status_code

    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(send, range(1, 17))) == {200}
    assert rows(sessions) == {"ingest_batches": 8, "metric_points": 8, "evaluations": 8}
    with sessions() as session:
        assert session.get_one(Run, run.run_id).last_step == 16
