"""Any metric of a run is forecast as its own curve is, when somebody asks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from httpx import Response
from sqlalchemy import insert, update
from sqlalchemy.orm import Session, sessionmaker

from forecurve.science import Curve, fit, predict_ending
from server.checkpoints.models import Checkpoint
from server.forecasts.models import Forecast
from server.metrics.curve import inherit
from server.metrics.models import MetricPoint
from server.places import Places
from server.runs.models import Run
from tests.server.forecasts.seeds import START, add_evaluations, make_run, sigmoid
from tests.server.reporting import Headers

METRIC = "eval/aime24"
COMPUTE = np.linspace(2.0, 100.0, 50)

Sessions = sessionmaker[Session]


def values(A: float = 0.5, seed: int = 0, noise: float = 0.01) -> Any:
    return sigmoid(COMPUTE, A=A, R0=0.05) + noise * np.random.default_rng(seed).standard_normal(len(COMPUTE))


def log(session: Session, run: Run, logged: Any, metric: str = METRIC, spent: Any = COMPUTE) -> None:
    row = {"run_id": run.id, "metric": metric, "attempt": 1, "time": START}
    known = zip(spent[: len(logged)], logged, strict=True)
    points = [row | {"step": 10 * at, "compute": float(c), "value": float(v)} for at, (c, v) in enumerate(known)]
    session.execute(insert(MetricPoint), points)


def finished(session: Session, name: str, A: float, seed: int) -> Run:
    run = make_run(session, name, status="succeeded", task="maths", seed=0)
    add_evaluations(session, run, COMPUTE, sigmoid(COMPUTE, A=0.7 + 0.001 * seed))
    log(session, run, values(A, seed))
    return run


def five_arms(session: Session) -> list[str]:
    """Ids of finished runs that logged the metric, each of an arm of its own."""
    return [finished(session, f"arm {k}", A=0.5 + 0.02 * k, seed=10 + k).id for k in range(-2, 3)]


@pytest.fixture
def run_id(sessions: Sessions) -> str:
    """A run that has spent 30 of 100 GPU-hours."""
    with sessions.begin() as session:
        run = make_run(session, task="maths")
        add_evaluations(session, run, COMPUTE[:15], sigmoid(COMPUTE[:15]))
        log(session, run, values()[:15])
        log(session, run, 100 * values()[:15], "eval/percent")
        return run.id


@pytest.fixture
def ask(api: TestClient, headers: Headers, run_id: str) -> Any:
    def asked(metric: str = METRIC, **more: Any) -> Response:
        path, query = f"/v1/runs/{run_id}/metrics:forecast", {"metric": metric} | more
        return api.get(path, params=query, headers=headers["read"])

    return asked


def test_without_past_runs_it_says_what_a_fit_of_its_values_says(ask: Any) -> None:
    found = ask().json()
    by_itself = fit(Curve(COMPUTE[:15], values()[:15], unit="GPU-hours"))
    assert found["forecast"]["A"] == by_itself.to_dict()["A"]
    expected = predict_ending(by_itself, 100.0)
    assert found["ending"] == {
        "median": pytest.approx(expected.median),
        "lower": pytest.approx(expected.lower),
        "upper": pytest.approx(expected.upper),
        "compute": 100.0,
        "calibration": "without past runs",
    }
    assert (found["unit"], found["budget"], found["logged"], found["past"]) == ("GPU-hours", 100.0, 15, [])
    assert [point["compute"] for point in found["points"]] == list(COMPUTE[:15])
    assert "Expected to end at" in found["sentence"]


def test_nothing_of_it_is_kept(ask: Any, sessions: Sessions) -> None:
    assert ask().status_code == 200
    with sessions.begin() as session:
        assert session.query(Forecast).count() == 0


def test_a_metric_in_percent_is_the_same_a_hundred_times(ask: Any) -> None:
    share, percent = ask().json(), ask("eval/percent", high=100).json()
    for name in ("median", "lower", "upper"):
        assert percent["ending"][name] == pytest.approx(100 * share["ending"][name], rel=1e-6)
        assert percent["forecast"]["C_mid"][name] == pytest.approx(share["forecast"]["C_mid"][name], rel=1e-6)
    assert percent["forecast"]["at_budget"]["curve"]["median"] > 10


def test_comparable_runs_that_logged_it_are_its_past(ask: Any, sessions: Sessions) -> None:
    alone = ask().json()["ending"]
    with sessions.begin() as session:
        past = five_arms(session)
        other = make_run(session, status="succeeded", task="maths")  # which did not log it
        add_evaluations(session, other, COMPUTE, sigmoid(COMPUTE))
        elsewhere = make_run(session, status="succeeded", task="code")
        add_evaluations(session, elsewhere, COMPUTE, sigmoid(COMPUTE))
        log(session, elsewhere, values(0.9))
    found = ask().json()
    assert found["past"] == past[::-1]
    assert found["forecast"]["prior"]["name"] == "5 siblings"
    assert found["ending"]["calibration"] == "adjusted by 5 past runs"
    width, before = (one["upper"] - one["lower"] for one in (found["ending"], alone))
    assert width < 0.6 * before
    assert found["ending"]["lower"] < sigmoid(95.0, A=0.5, R0=0.05) < found["ending"]["upper"]


def test_a_past_run_that_left_the_range_tells_nothing(ask: Any, sessions: Sessions) -> None:
    with sessions.begin() as session:
        finished(session, "arm", A=1.2, seed=3)
    assert ask().json()["past"] == []


def test_another_budget_is_another_end(ask: Any) -> None:
    near, far = ask(budget=40).json(), ask(budget=400).json()
    assert (near["budget"], far["budget"]) == (40.0, 400.0)
    assert near["ending"]["compute"] == 40.0
    assert near["ending"]["median"] < far["ending"]["median"]


def test_of_a_run_that_is_over_no_end_is_expected(ask: Any, sessions: Sessions, run_id: str) -> None:
    with sessions.begin() as session:
        session.get_one(Run, run_id).status = "stopped"
    found = ask().json()
    assert found["ending"] is None
    assert found["forecast"]["at_budget"] is not None
    assert (found["forecast"]["advice"], found["forecast"]["milestones"]) == (None, [])
    assert found["sentence"].startswith("Stopped; last logged at 30 GPU-hours. ")
    assert "xpected" not in found["sentence"]
    assert found["forecast"]["sentence"] == found["sentence"]


def test_few_values_are_shown_without_a_forecast(ask: Any, sessions: Sessions, run_id: str) -> None:
    with sessions.begin() as session:
        log(session, session.get_one(Run, run_id), [0.1, 0.2, 0.3], "eval/rare")
    found = ask("eval/rare").json()
    assert (found["forecast"], len(found["points"])) == (None, 3)
    assert found["sentence"] == "Points so far: 3; a forecast takes 4."


def test_values_that_no_curve_has_are_told_in_words(ask: Any, sessions: Sessions, run_id: str) -> None:
    with sessions.begin() as session:
        log(session, session.get_one(Run, run_id), [0.5] * 6, "eval/still", spent=np.full(6, 3.0))
    found = ask("eval/still").json()
    assert found["forecast"] is None
    assert found["sentence"] == "No curve can be fitted to it: 4 values whose compute rises are needed."


def test_a_metric_that_falls_is_withheld_and_not_called_a_pass_rate(ask: Any, sessions: Sessions, run_id: str) -> None:
    with sessions.begin() as session:
        log(session, session.get_one(Run, run_id), values()[::-1], "train/entropy")
    found = ask("train/entropy").json()
    assert (found["forecast"]["withheld"], found["ending"]) == (True, None)
    assert found["sentence"].startswith("The metric fell by 0.")


@pytest.mark.parametrize(
    ("query", "status", "field", "said"),
    [
        ({"metric": "eval/none"}, 404, "metric", "lists what it has"),
        ({"metric": "eval/percent"}, 422, "high", "values from"),
        ({"metric": METRIC, "low": 0.3}, 422, "low", "give the range that they can be in"),
        ({"metric": METRIC, "low": 1, "high": 1}, 422, "high", "above low"),
        ({"metric": METRIC, "high": 1e300}, 422, "high", "count rewards in another unit"),
        ({"metric": METRIC, "budget": 0}, 422, "budget", "above 0"),
        ({"metric": METRIC, "high": "much"}, 422, "high", "number"),
    ],
)
def test_what_cannot_be_is_refused_by_field_and_way_out(
    ask: Any, query: dict[str, Any], status: int, field: str, said: str
) -> None:
    answer = ask(**query)
    assert answer.status_code == status
    (fault,) = answer.json()["errors"]
    assert (fault["field"].rpartition(".")[2], said in fault["message"]) == (field, True), fault


def test_a_metric_without_compute_needs_evaluations(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    with sessions.begin() as session:
        lone = make_run(session).id
        row = {"run_id": lone, "metric": METRIC, "attempt": 1, "step": 1, "compute": None, "value": 0.5}
        session.execute(insert(MetricPoint), [row | {"time": START}])
    answer = api.get(f"/v1/runs/{lone}/metrics:forecast?metric={METRIC}", headers=headers["read"])
    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, "metric")
    assert "log it with `compute=`, or report evaluations" in answer.json()["detail"]


def test_runs_that_did_not_log_it_drive_out_none_that_did(ask: Any, sessions: Sessions) -> None:
    with sessions.begin() as session:
        past = five_arms(session)
        for k in range(70):
            other = make_run(session, f"newer {k}", status="succeeded", task="maths")
            add_evaluations(session, other, COMPUTE, sigmoid(COMPUTE, A=0.6 + 0.001 * k))
    assert ask().json()["past"] == past[::-1]


def test_runs_that_were_never_evaluated_are_its_past_too(ask: Any, sessions: Sessions) -> None:
    with sessions.begin() as session:
        past = [make_run(session, f"bare {k}", status="succeeded", task="maths").id for k in range(3)]
        for seed, bare in enumerate(past):
            log(session, session.get_one(Run, bare), values(0.5, 20 + seed))
    assert ask().json()["past"] == past[::-1]


def test_how_far_a_past_run_went_is_told_by_the_metric_and_not_by_its_evaluations(ask: Any, sessions: Sessions) -> None:
    with sessions.begin() as session:
        for seed in range(5):
            short = make_run(session, f"short {seed}", status="succeeded", task="maths")
            add_evaluations(session, short, COMPUTE, sigmoid(COMPUTE, A=0.7 + 0.001 * seed))
            log(session, short, values(0.9, seed)[:6])
    found = ask().json()
    assert (found["past"], found["forecast"]["prior"]) == ([], None)


def test_what_a_live_run_logs_from_now_on_is_seen(ask: Any, sessions: Sessions) -> None:
    with sessions.begin() as session:
        live = [make_run(session, f"live {seed}", task="maths").id for seed in range(3)]
        for seed, one in enumerate(live):
            log(session, session.get_one(Run, one), values(0.5, 30 + seed)[:5])
    assert ask().json()["past"] == []
    with sessions.begin() as session:
        for seed, one in enumerate(live):
            logged = values(0.5, 30 + seed)
            row = {"run_id": one, "metric": METRIC, "attempt": 1, "time": START}
            rows = [
                row | {"step": 10 * k, "compute": float(COMPUTE[k]), "value": float(logged[k])} for k in range(5, 40)
            ]
            session.execute(insert(MetricPoint), rows)
    assert ask().json()["past"] == live[::-1]


def test_of_a_family_of_forks_one_is_past_and_none_of_the_runs_own(ask: Any, sessions: Sessions, run_id: str) -> None:
    """However many values they have, of which a forecast sees means."""
    long = np.linspace(0.05, 100.0, 2000)
    with sessions.begin() as session:
        families = []
        parents = {"theirs": finished(session, "arm", A=0.5, seed=3), "own": session.get_one(Run, run_id)}
        for name, parent in parents.items():
            log(session, parent, sigmoid(long, A=0.5), "eval/long", long)
            families.append([parent.id, *_forks(session, parent, name)])
    (parent, nearer, further), own = families
    for left in ([parent], [further], [nearer], []):  # a fork has but the end of its curve
        assert ask("eval/long").json()["past"] == left
        with sessions.begin() as session:
            for one in left:
                session.get_one(Run, one).archived_at = START
    assert len(own) == 3


def _forks(session: Session, parent: Run, name: str) -> list[str]:
    """Two that go on with its curve, and log a little more each."""
    checkpoint = Checkpoint(run_id=parent.id, attempt=1, step=100, path="/x", digest="d", size_bytes=1)
    session.add(checkpoint)
    session.flush()
    begin = {"parent_run_id": parent.id, "parent_checkpoint_id": checkpoint.id, "parent_step": 100}
    forks = []
    for last in (120, 140):
        fork = make_run(session, f"{name} {last}", status="succeeded", task="maths", **begin)
        inherit(session, fork.id, parent_id=parent.id, attempt=1, step=100)
        row = {"run_id": fork.id, "metric": "eval/long", "attempt": 1, "time": START}
        points = [row | {"step": k, "compute": float(k), "value": float(sigmoid(k))} for k in range(20, last)]
        session.execute(insert(MetricPoint), points)
        forks.append(fork.id)
    return forks


def test_a_value_that_is_logged_anew_is_seen(ask: Any, sessions: Sessions) -> None:
    with sessions.begin() as session:
        five_arms(session)
    before = ask().json()
    with sessions.begin() as session:
        session.execute(update(MetricPoint).where(MetricPoint.compute > 50).values(value=0.9))
    after = ask().json()
    assert after["past"] == before["past"]
    assert after["ending"] != before["ending"]


def test_who_comes_while_others_are_worked_out_waits_without_keeping_anybody_else(
    api: TestClient, application: FastAPI, ask: Any, headers: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(application.state, "forecast_places", Places(0, longest_wait_s=0.0))
    answer = ask()
    assert (answer.status_code, answer.json()["code"]) == (503, "busy")
    assert int(answer.headers["Retry-After"]) > 0
    assert api.get("/v1/runs", headers=headers["read"]).status_code == 200
    monkeypatch.setattr(application.state, "forecast_places", Places(1, longest_wait_s=0.0))
    assert [ask().status_code for _ in range(2)] == [200, 200]
