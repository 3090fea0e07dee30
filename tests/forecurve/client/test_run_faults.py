"""The service is down, slow, broken or against us: training never notices, and nothing that was logged is lost."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forecurve.cli.supervisor.files import free_port
from forecurve.client import ApiError, Run, heart
from forecurve.client.spool import MAX_DIVISIONS, Spool
from forecurve.client.transport import Transport

from .conftest import FaultyService, kill, wait_for


def start(url: str, directory: Path) -> Run:
    transport = Transport(url, "secret", "run_1", 1)
    return Run("run_1", 1, spool=Spool(directory), transport=transport, flush_s=0.02, heartbeat_s=0.05)


def test_a_service_that_is_down_costs_the_training_loop_nothing_and_loses_nothing(tmp_path: Path) -> None:
    run = start(f"http://127.0.0.1:{free_port()}", tmp_path)
    began = time.monotonic()
    for step in range(1000):
        run.log({"loss": step}, step=step)
    logged_s = time.monotonic() - began
    run.finish(deadline_s=0.3)

    assert logged_s < 2.0
    spool = Spool(tmp_path)
    entries = []
    while entry := spool.first():
        entries.append(entry)
        spool.settle(entry)
    steps = [point["step"] for entry in entries if entry.kind == "metrics" for point in entry.body["points"]]
    assert steps == list(range(1000))
    assert entries[-1].kind == "outcome"


def test_after_a_restart_the_process_replays_what_was_not_taken_under_the_same_numbers(
    service: FaultyService, tmp_path: Path
) -> None:
    service.answer = lambda path, body: (500, {"detail": "broken"}, {})
    run = start(service.url, tmp_path)
    run.log_evaluation(step=1, compute=1.0, reward=0.1)
    first = wait_for(lambda: service.bodies("metrics"))[0]
    kill(run)
    service.requests.clear()

    service.answer = lambda path, body: (200, {}, {})
    again = start(service.url, tmp_path)
    again.log_evaluation(step=2, compute=2.0, reward=0.2)
    again.finish()

    bodies = service.bodies("metrics")
    batches = [body for at, body in enumerate(bodies) if body not in bodies[:at]]  # one may have been under way
    assert batches[0] == first
    assert [batch["seq"] for batch in batches] == [1, 2]


def test_an_error_of_the_service_is_retried_until_it_takes_the_batch(service: FaultyService, tmp_path: Path) -> None:
    tries: list[int] = []

    def answer(path: str, body: dict) -> tuple:  # type: ignore[type-arg]
        tries.append(body.get("seq", 0))
        return (503, {}, {"Retry-After": "0"}) if len(tries) < 4 else (200, {}, {})

    service.answer = answer
    run = start(service.url, tmp_path)
    run.log_evaluation(step=1, compute=1.0, reward=0.1)
    run.flush()
    run.finish()

    assert tries[:4] == [1, 1, 1, 1]
    assert run.unsent == 0


@pytest.mark.parametrize(("status", "page"), [(404, "no such page"), (405, {}), (200, "under maintenance")])
def test_what_answers_in_place_of_the_service_neither_refuses_nor_takes(
    service: FaultyService, tmp_path: Path, status: int, page: Any
) -> None:
    answers = [(status, page, {"Retry-After": "0"}), (200, {}, {})]
    service.answer = lambda path, body: answers.pop(0) if len(answers) > 1 else answers[0]
    run = start(service.url, tmp_path)
    run.log_evaluation(step=1, compute=1.0, reward=0.1)
    run.finish()

    first, again = service.bodies("metrics")
    assert first == again
    assert run.unsent == 0
    assert not (tmp_path / "rejected.jsonl").exists()


def test_retry_after_is_honoured(service: FaultyService, tmp_path: Path) -> None:
    service.answer = lambda path, body: (429, {}, {"Retry-After": "60"})
    run = start(service.url, tmp_path)
    run.log_evaluation(step=1, compute=1.0, reward=0.1)
    assert run._outbox is not None
    sender = run._outbox.sender
    assert sender is not None

    # The service has the batch before the sender has read its answer: the answer is what is waited for.
    wait_for(lambda: sender._not_before > 0)

    assert 50 < sender._not_before - time.monotonic() <= 60
    assert len(service.bodies("metrics")) == 1
    run.finish(deadline_s=0.1)


def test_a_superseded_attempt_stops_training_and_keeps_its_reports_aside(
    service: FaultyService, tmp_path: Path
) -> None:
    detail = "attempt 1 was superseded by attempt 2; stop this process"
    service.answer = lambda path, body: (409, {"code": "superseded", "detail": detail}, {})
    run = start(service.url, tmp_path)
    run.log_evaluation(step=1, compute=1.0, reward=0.1)

    wait_for(lambda: run.should_stop)

    assert run.stop_reason == detail
    run.finish("stopped")
    kept = [json.loads(line) for line in (tmp_path / "rejected.jsonl").read_text().splitlines()]
    assert kept[0]["body"]["evaluations"][0]["reward"] == 0.1
    assert kept[0]["answer"]["status"] == 409


def test_a_refused_batch_is_kept_aside_logged_once_and_does_not_hold_up_the_next(
    service: FaultyService, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    refusal = {"code": "invalid", "detail": "evaluations.0.reward: too odd", "errors": []}
    service.answer = lambda path, body: (422, refusal, {}) if body.get("seq") in (1, 2) else (200, {}, {})
    run = start(service.url, tmp_path)
    with caplog.at_level(logging.WARNING, logger="forecurve"):
        for step in (1, 2, 3):
            run.log_evaluation(step=step, compute=step, reward=0.1)
            run.flush()
        run.finish()

    assert [batch["seq"] for batch in service.bodies("metrics")] == [1, 2, 3]
    assert len((tmp_path / "rejected.jsonl").read_text().splitlines()) == 2
    warnings = [record.getMessage() for record in caplog.records if "refused" in record.getMessage()]
    assert len(warnings) == 2  # the first of them, and at the end how many they were
    assert "2 reports were refused (evaluations.0.reward: too odd)" in warnings[1]
    assert "too odd" in warnings[0]
    assert not run.should_stop


def refusing(fits: Callable[[dict[str, Any]], bool], status: int) -> Callable[[str, dict[str, Any]], Any]:
    """A service that takes only batches that fit."""
    refusal = {"detail": "something in it does not hold"}
    return lambda path, body: (200, {}, {}) if "seq" not in body or fits(body) else (status, refusal, {})


@pytest.mark.parametrize("status", [413, 422])
def test_a_refused_batch_is_halved_until_only_what_is_at_fault_is_put_aside(
    service: FaultyService, tmp_path: Path, status: int
) -> None:
    service.answer = refusing(lambda body: all(e["step"] != 37 for e in body["evaluations"]), status)
    spool = Spool(tmp_path)
    spool.seal_batch({"points": [], "evaluations": [{"step": step} for step in range(100)]})  # of an earlier process
    spool.close()
    run = start(service.url, tmp_path)
    run.log_evaluation(step=100, compute=100.0, reward=0.5)
    run.finish()

    taken = [body for body in service.bodies("metrics") if all(e["step"] != 37 for e in body["evaluations"])]
    steps = [e["step"] for body in taken for e in body["evaluations"]]
    assert sorted(steps) == [step for step in range(101) if step != 37]
    assert steps[-1] == 100, "the parts are sent before what was logged after them"
    assert len({body["seq"] for body in service.bodies("metrics")}) == len(service.bodies("metrics"))
    (aside,) = (tmp_path / "rejected.jsonl").read_text().splitlines()
    assert json.loads(aside)["body"]["evaluations"] == [{"step": 37}]
    assert service.requests[-1][0].endswith("outcome")


def test_a_flood_of_faults_is_no_flood_of_requests(service: FaultyService, tmp_path: Path) -> None:
    service.answer = refusing(lambda body: not body["points"], 422)
    spool = Spool(tmp_path)
    spool.seal_batch({"points": [{"step": step} for step in range(5000)], "evaluations": []})
    spool.close()
    run = start(service.url, tmp_path)
    run.finish()

    assert len(service.bodies("metrics")) <= 2 * MAX_DIVISIONS + 1
    aside = [json.loads(line) for line in (tmp_path / "rejected.jsonl").read_text().splitlines()]
    assert sum(len(entry["body"]["points"]) for entry in aside) == 5000
    assert len(service.bodies("outcome")) == 1


def test_what_is_no_json_is_put_aside_and_does_not_hold_up_the_rest(service: FaultyService, tmp_path: Path) -> None:
    run = start(service.url, tmp_path)
    run._pending.add_evaluation({"step": 1, "compute": math.nan})  # as a fault in the client's own checks would
    run.log({"loss": 1.0}, step=1)
    run.finish()

    assert [p["metric"] for body in service.bodies("metrics") for p in body["points"]] == ["loss"]
    assert len(service.bodies("outcome")) == 1
    assert '"step":1' in (tmp_path / "rejected.jsonl").read_text()


def test_what_can_never_be_sent_is_put_aside_and_does_not_hold_up_the_rest(
    service: FaultyService, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    spool = Spool(tmp_path)
    spool.seal("outcome", {"outcome": "failed", "reason": "caf\udce9"})  # by a client that did not know better
    spool.close()
    run = start(service.url, tmp_path)
    run.log_evaluation(step=1, compute=1.0, reward=0.5)
    run.finish()

    assert sum(len(body["evaluations"]) for body in service.bodies("metrics")) == 1
    assert len(service.bodies("outcome")) == 1
    assert run.unsent == 0
    (aside,) = (tmp_path / "rejected.jsonl").read_text().splitlines()
    assert "it cannot be sent: UnicodeEncodeError" in json.loads(aside)["answer"]["detail"]
    assert "it cannot be sent" in caplog.text


@pytest.mark.parametrize("odd", ["nan", "Mon, 01 Jan 2001 00:00:00 -0000", "soon"])
def test_an_odd_retry_after_is_no_reason_to_wait(service: FaultyService, tmp_path: Path, odd: str) -> None:
    tries: list[int] = []

    def answer(path: str, body: dict[str, Any]) -> Any:
        tries.append(1)
        return (503, {}, {"Retry-After": odd}) if len(tries) == 1 else (200, {}, {})

    service.answer = answer
    run = start(service.url, tmp_path)
    run.log_evaluation(step=1, compute=1.0, reward=0.5)
    run.finish()
    assert run.unsent == 0


def test_refused_access_keeps_the_reports_for_later(service: FaultyService, tmp_path: Path) -> None:
    service.answer = lambda path, body: (401, {"code": "unauthenticated", "detail": "the token expired"}, {})
    run = start(service.url, tmp_path)
    run.log_evaluation(step=1, compute=1.0, reward=0.1)
    wait_for(lambda: service.bodies("metrics"))
    run.finish(deadline_s=0.1)

    assert not (tmp_path / "rejected.jsonl").exists()
    assert Spool(tmp_path).waiting == 2


def test_a_launched_attempt_whose_token_ended_stops_after_a_grace(
    service: FaultyService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = {"code": "unauthenticated", "detail": "the token has expired"}
    service.heartbeat_status, service.heartbeat = 401, ended
    service.answer = lambda path, body: (401, ended, {})
    monkeypatch.setattr(heart, "DENIED_GRACE_S", 0.2)
    run = start(service.url, tmp_path)
    run.log_evaluation(step=1, compute=1.0, reward=0.1)
    wait_for(lambda: run.should_stop)
    assert "refused the token of this attempt (the token has expired)" in str(run.stop_reason)
    kill(run)
    assert Spool(tmp_path).waiting == 1


class Refusals:
    """A door whose answers to heartbeats a test decides: a status, or an error's body of a status."""

    def __init__(self) -> None:
        self.body: dict[str, Any] | None = None
        self.status = 401

    def beat(self, progress: dict[str, Any]) -> dict[str, Any]:
        if self.body is None:
            return {"stop": False}
        raise ApiError("refused", status=self.status, body=self.body)


def test_only_the_services_own_refusal_counts_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proxy's, an answer in between, a run of one's own: no reason to stop. The service's absence changes nothing."""
    now, stops = [0.0], list[str]()
    monkeypatch.setattr(heart.time, "monotonic", lambda: now[0])
    door = Refusals()
    launched, own = (heart.Heart(door, stops.append, lambda held: None) for _ in range(2))  # type: ignore[arg-type]
    launched.stop_when_denied()
    ended = {"code": "unauthenticated"}
    answers = [(401, {}), (401, ended), (200, None), (401, ended), (503, ended)]
    for door.status, door.body in answers:
        launched.beat()
        own.beat()
        now[0] += heart.DENIED_GRACE_S / 2
    assert stops == []
    door.status, door.body = 401, ended
    own.beat()
    assert stops == []
    launched.beat()
    assert len(stops) == 1


def test_a_run_of_ones_own_goes_on_without_a_token_that_is_let_in(
    service: FaultyService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(heart, "DENIED_GRACE_S", 0.0)
    ended = {"code": "unauthenticated", "detail": "the token has expired"}
    service.heartbeat_status, service.heartbeat = 401, ended
    service.answer = lambda path, body: (401, ended, {})
    door = Transport(service.url, "secret", "run_1", 1)
    run = Run("run_1", 1, spool=Spool(tmp_path), transport=door, heartbeat_s=0.02, sync_later="forecurve sync x")
    run.log_evaluation(step=1, compute=1.0, reward=0.1)
    wait_for(lambda: len(service.bodies("heartbeat")) > 5 and service.bodies("metrics"))
    assert not run.should_stop
    run.finish(deadline_s=0.1)
    assert "did not take a report (the token has expired)" in caplog.text
    assert "send them later: forecurve sync x" in caplog.text


def test_a_slow_service_does_not_slow_the_training_loop(service: FaultyService, tmp_path: Path) -> None:
    def answer(path: str, body: dict) -> tuple:  # type: ignore[type-arg]
        time.sleep(0.3)
        return 200, {}, {}

    service.answer = answer
    run = start(service.url, tmp_path)
    began = time.monotonic()
    for step in range(200):
        run.log({"loss": 1.0}, step=step)
        run.log_evaluation(step=step, compute=step, reward=0.5)
    assert time.monotonic() - began < 0.3
    run.finish(deadline_s=20)
    assert run.unsent == 0
    assert len(service.bodies("metrics")) < 50, "what comes at once is gathered"


def test_a_full_spool_leaves_out_metric_points_but_never_an_evaluation(tmp_path: Path) -> None:
    spool = Spool(tmp_path, limit_bytes=1)
    spool.seal_batch({"points": [], "evaluations": []})  # now it is full
    transport = Transport(f"http://127.0.0.1:{free_port()}", "secret", "run_1", 1)
    run = Run("run_1", 1, spool=spool, transport=transport, flush_s=0.02)
    run.log({"loss": 1.0}, step=1)
    run.log_evaluation(step=1, compute=1.0, reward=0.5)
    run.finish(deadline_s=0.3)

    queue = [json.loads(line) for line in (tmp_path / "queue.jsonl").read_text().splitlines()]
    assert sum(len(entry["body"].get("points", [])) for entry in queue) == 0
    assert sum(len(entry["body"].get("evaluations", [])) for entry in queue) == 1


def test_a_disk_that_is_full_for_long_costs_no_evaluation(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run = Run(None, 1, spool=Spool(tmp_path), flush_s=0.0)

    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        for step in range(1500):  # with a batch at a time from memory
            run.log_evaluation(step=step, compute=float(step), reward=0.5)
            time.sleep(0.001)
    run.finish()

    bodies = [json.loads(line)["body"] for line in (tmp_path / "queue.jsonl").open()]
    evaluations = [evaluation for body in bodies for evaluation in body.get("evaluations", [])]
    assert [evaluation["step"] for evaluation in evaluations] == list(range(1500))
    assert bodies[-1]["outcome"] == "succeeded"


def test_metric_points_that_no_disk_takes_are_left_out_and_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("forecurve.client.pending.MAX_POINTS", 10)
    run = Run(None, 1, spool=Spool(tmp_path), flush_s=60.0)
    for step in range(100):
        run.log({"loss": step}, step=step)
    run.finish()

    [points, _] = [json.loads(line)["body"] for line in (tmp_path / "queue.jsonl").open()]
    assert [point["step"] for point in points["points"]] == list(range(90, 100))
    assert f"{tmp_path} does not take all metric points in time" in caplog.text
