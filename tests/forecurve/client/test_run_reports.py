"""A run's reports over real HTTP: what arrives, in which form, under which number."""

from __future__ import annotations

import math
import os
import time
from datetime import datetime, tzinfo
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forecurve.client import Run
from forecurve.client.spool import Spool
from forecurve.client.transport import Transport

from .conftest import FaultyService, wait_for


def start(service: FaultyService, directory: Path, **options: Any) -> Run:
    transport = Transport(service.url, "secret", "run_1", 1)
    return Run("run_1", 1, spool=Spool(directory), transport=transport, flush_s=0.02, heartbeat_s=0.02, **options)


def test_points_and_evaluations_arrive_numbered_from_one(service: FaultyService, tmp_path: Path) -> None:
    run = start(service, tmp_path)
    run.log({"train/loss": 0.5}, step=1, compute=0.1)
    run.log_evaluation(step=1, compute=0.1, counts=[4, 0, 3], samples=4, details={"response_length": 19.2})
    run.finish()

    batches = service.bodies("metrics")
    evaluations = [item for batch in batches for item in batch["evaluations"]]
    points = [item for batch in batches for item in batch["points"]]
    assert [batch["seq"] for batch in batches] == list(range(1, len(batches) + 1))
    assert {batch["attempt"] for batch in batches} == {1}
    assert points[0] | {"time": ""} == {"metric": "train/loss", "step": 1, "compute": 0.1, "value": 0.5, "time": ""}
    assert evaluations[0]["counts"] == [4, 0, 3]
    assert evaluations[0]["prompts"] == 3
    assert "reward" not in evaluations[0]
    assert service.requests[0][2]["Authorization"] == "Bearer secret"


def test_numpy_values_nesting_and_values_that_are_not_finite_survive(service: FaultyService, tmp_path: Path) -> None:
    run = start(service, tmp_path)
    metrics = {"train": {"loss": np.float32("nan"), "norm": math.inf}, "low": -math.inf, "flag": True, "note": "text"}
    run.log(metrics, step=np.int64(3))
    run.finish()

    points = {point["metric"]: point["value"] for batch in service.bodies("metrics") for point in batch["points"]}
    assert points == {"train/loss": "NaN", "train/norm": "Infinity", "low": "-Infinity", "flag": 1.0}


@pytest.mark.filterwarnings("error")
def test_a_loss_that_is_part_of_a_graph_is_a_number_and_no_warning(service: FaultyService, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    run = start(service, tmp_path)
    run.log({"train/loss": torch.tensor(0.5, requires_grad=True)}, step=1)
    run.finish()
    torch.set_warn_always(before)
    assert [point["value"] for batch in service.bodies("metrics") for point in batch["points"]] == [0.5]


def test_the_last_value_logged_for_a_step_counts(service: FaultyService, tmp_path: Path) -> None:
    run = start(service, tmp_path)
    run.log({"loss": 3.0, "other": 1.0}, step=2)
    run.log({"loss": 4.0}, step=2)
    run.finish()

    last = {point["metric"]: point["value"] for batch in service.bodies("metrics") for point in batch["points"]}
    assert last == {"loss": 4.0, "other": 1.0}


def test_text_that_cannot_be_sent_is_sent_with_what_can(service: FaultyService, tmp_path: Path) -> None:
    service.heartbeat = {"stop": False, "interval_s": 0.02}
    run = start(service, tmp_path)
    run.heartbeat(step=1, compute=1.0, message="caf\udce9" + "x" * 2000)
    run.log({"lo\ud800ss": {"in\udce9": 1.0}}, step=1)
    run.log_evaluation(step=1, compute=1.0, reward=0.5, details={"caf\udce9": 1.0})
    run.log_checkpoint(step=1, compute=1.0, path="/caf\udce9", digest="d" * 64, size_bytes=1)
    wait_for(lambda: [beat for beat in service.bodies("heartbeat") if beat.get("message", "")[:5] == "caf?x"])
    run.finish("failed", "OSError: cannot open caf\udce9\0.txt" + "x" * 5000)

    batches = service.bodies("metrics")
    assert [point["metric"] for batch in batches for point in batch["points"]] == ["lo?ss/in?"]
    assert [item["details"] for batch in batches for item in batch["evaluations"]] == [{"caf?": 1.0}]
    assert service.bodies("checkpoints")[0]["path"] == "/caf?"
    (outcome,) = service.bodies("outcome")
    assert outcome["reason"].startswith("OSError: cannot open caf??.txtx")
    assert len(outcome["reason"]) == 4000
    assert not (tmp_path / "rejected.jsonl").exists()


def test_the_time_of_a_clock_that_is_not_set_is_left_to_the_service(
    service: FaultyService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Unset(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Unset:
            return cls(1970, 1, 1, tzinfo=tz)

    monkeypatch.setattr("forecurve.client.values.datetime", Unset)
    run = start(service, tmp_path)
    run.log({"train/loss": 0.5}, step=1)
    run.log_evaluation(step=1, compute=0.1, reward=0.5)
    run.finish()
    reports = [item for batch in service.bodies("metrics") for item in batch["points"] + batch["evaluations"]]
    assert [report.get("time") for report in reports] == [None, None]


def test_a_checkpoint_and_the_outcome_come_after_what_was_logged(service: FaultyService, tmp_path: Path) -> None:
    run = start(service, tmp_path)
    run.log({"a": 1}, step=1)
    run.log_checkpoint(step=1, compute=0.5, path=tmp_path / "c", digest="d" * 64, size_bytes=10)
    run.finish("stopped", "enough")

    doors = [path.rsplit("/", 1)[-1] for path, _, _ in service.requests if not path.endswith("heartbeat")]
    assert doors == ["metrics", "checkpoints", "outcome"]
    assert service.bodies("outcome") == [{"attempt": 1, "outcome": "stopped", "reason": "enough"}]
    keys = [
        headers["Idempotency-Key"] for path, _, headers in service.requests if path.endswith(("checkpoints", "outcome"))
    ]
    assert len(set(keys)) == 2


@pytest.mark.parametrize(
    ("evaluation", "word"),
    [
        ({"step": 2, "compute": 0.5, "reward": 0.5}, "backwards"),
        ({"step": 2, "compute": 4.0, "reward": math.nan}, "from 0 to 1"),
        ({"step": 2, "compute": math.inf, "reward": 0.5}, "finite"),
        ({"step": 2, "compute": 2.0, "counts": [5], "samples": 4}, "must be 0 to `samples` (4)"),
        ({"step": 2, "compute": 2.0, "counts": [5, 2], "samples": 8, "prompts": 3}, "2 entries for 3 prompts"),
        ({"step": 2, "compute": 2.0, "counts": [5, 2], "samples": 8, "reward": 0.9}, "agree"),
        ({"step": 2, "compute": 2.0, "counts": [5], "samples": 40_000}, "samples is 40000: must be 1 to 32767"),
        ({"step": 2, "compute": 2.0, "reward": 0.5, "details": {"x" * 201: 1.0}}, "1 to 200 characters"),
        ({"step": 2, "compute": 2.0}, "give `reward`"),
        ({"step": -1, "compute": 1.0, "reward": 0.5}, "step is -1"),
        ({"step": 1, "compute": 1.0, "reward": 0.5}, "evaluated already"),
    ],
)
def test_an_evaluation_that_cannot_hold_is_put_aside_and_the_others_are_sent(
    service: FaultyService, tmp_path: Path, evaluation: dict[str, Any], word: str
) -> None:
    run = start(service, tmp_path)
    run.log_evaluation(step=1, compute=1.0, reward=0.2)
    run.log_evaluation(**evaluation)
    run.log_evaluation(step=3, compute=3.0, reward=0.4)
    run.finish()

    sent = [item["step"] for batch in service.bodies("metrics") for item in batch["evaluations"]]
    assert sent == [1, 3]
    assert word in (tmp_path / "rejected.jsonl").read_text()


@pytest.mark.parametrize("faulty", [1, 3])
def test_evaluations_that_are_left_out_are_counted_at_the_end(
    service: FaultyService, tmp_path: Path, caplog: pytest.LogCaptureFixture, faulty: int
) -> None:
    """Each kind of trouble is said once, so the first warning tells of one of them."""
    run = start(service, tmp_path)
    for step in range(faulty):
        run.log_evaluation(step=step, compute=1.0 + step, reward=1.5)
    run.finish()
    assert caplog.text.count("the evaluation at step 0 is left out: ") == 1
    counted = f"{faulty} evaluations were left out; {tmp_path / 'rejected.jsonl'} says why of each"
    assert (counted in caplog.text) is (faulty > 1)


def test_compute_that_is_no_number_costs_neither_the_metric_nor_what_comes_after(
    service: FaultyService, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = start(service, tmp_path)
    for step, compute in enumerate([1.0, math.nan, math.inf, -1.0, 0.5, 2.0]):
        run.log({"loss": 0.5}, step=step, compute=compute)
    run.log_evaluation(step=6, compute=2.0, reward=0.5)
    run.finish()

    computes = {p["step"]: p["compute"] for batch in service.bodies("metrics") for p in batch["points"]}
    assert computes == {0: 1.0, 1: None, 2: None, 3: None, 4: None, 5: 2.0}
    assert sum(len(batch["evaluations"]) for batch in service.bodies("metrics")) == 1
    assert len(service.bodies("outcome")) == 1
    assert "without their compute: compute is nan" in caplog.text


def test_points_that_the_service_would_refuse_are_left_out_alone(
    service: FaultyService, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = start(service, tmp_path)
    run.log({"loss": 0.5}, step=-1, compute=9.0)
    run.log({"x" * 201: 0.5, "a\nb": 0.5, "": 0.5, "loss": 0.5}, step=2, compute=1.0)
    run.finish()

    points = [(p["metric"], p["step"], p["compute"]) for batch in service.bodies("metrics") for p in batch["points"]]
    assert points == [("loss", 2, 1.0)]
    assert "step -1 are left out" in caplog.text
    assert "1 to 200 characters" in caplog.text


def test_nonsense_never_raises(service: FaultyService, tmp_path: Path) -> None:
    run = start(service, tmp_path)
    run.log("not a mapping", step=1)  # type: ignore[arg-type]
    run.log({"a": object()}, step="one")  # type: ignore[arg-type]
    run.log_evaluation(step=None, compute="x")  # type: ignore[arg-type]
    run.log_checkpoint(step=None, compute=math.nan, path=None, digest=None, size_bytes="many")  # type: ignore[arg-type]
    run.heartbeat(step=1, compute="x")  # type: ignore[arg-type]
    run.log({"good": 1}, step=1)
    run.finish()

    assert [point["metric"] for batch in service.bodies("metrics") for point in batch["points"]] == ["good"]


def test_heartbeats_carry_progress_at_the_interval_the_service_asks_for(service: FaultyService, tmp_path: Path) -> None:
    run = start(service, tmp_path)
    run.heartbeat(step=7, compute=1.5, message="evaluating")
    wait_for(lambda: {"attempt": 1, "step": 7, "compute": 1.5, "message": "evaluating"} in service.bodies("heartbeat"))

    service.heartbeat = {"stop": False, "interval_s": 3600}
    wait_for(lambda: run._heart._interval_s == 3600)  # type: ignore[union-attr]
    run.finish()


def test_the_heartbeats_answer_stops_the_run_with_its_reason(service: FaultyService, tmp_path: Path) -> None:
    run = start(service, tmp_path)
    assert not run.should_stop
    service.heartbeat = {"stop": True, "reason": "the forecast says so", "interval_s": 0.05}

    wait_for(lambda: run.should_stop)

    assert run.stop_reason == "the forecast says so"
    run.finish("stopped")


def test_the_heartbeats_answer_says_which_checkpoints_forks_wait_for(service: FaultyService, tmp_path: Path) -> None:
    run = start(service, tmp_path)
    assert run.held_steps == frozenset()
    service.heartbeat = {"stop": False, "interval_s": 0.02, "held_steps": [50, 100]}
    wait_for(lambda: run.held_steps == {50, 100})
    service.heartbeat = {"stop": False, "interval_s": 0.02, "held_steps": []}
    wait_for(lambda: not run.held_steps)
    run.finish()


def test_an_odd_list_of_held_checkpoints_does_not_keep_a_run_from_stopping(
    service: FaultyService, tmp_path: Path
) -> None:
    run = start(service, tmp_path)
    service.heartbeat = {"stop": True, "reason": "enough", "interval_s": 0.02, "held_steps": ["x"]}
    wait_for(lambda: run.should_stop)
    run.finish("stopped")


def test_a_run_used_as_a_context_reports_how_it_ended(service: FaultyService, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), start(service, tmp_path):
        _ = 1 / 0

    assert service.bodies("outcome") == [
        {"attempt": 1, "outcome": "failed", "reason": "ZeroDivisionError: division by zero"}
    ]


def test_flush_waits_for_what_is_on_its_way_to_a_slow_disk(
    service: FaultyService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = start(service, tmp_path)
    sync = os.fsync

    def slowly(file: int) -> None:
        time.sleep(0.2)
        sync(file)

    monkeypatch.setattr(os, "fsync", slowly)
    run.log_evaluation(step=1, compute=1.0, reward=0.5)
    run.flush()

    assert len(service.bodies("metrics")) == 1
    run.finish()


def test_a_disabled_run_drops_everything_and_finishes_at_once() -> None:
    run = Run(None, 1, spool=None)
    assert repr(run) == "Run(attempt 1: disabled)"
    run.log({"a": 1}, step=1)
    run.log_evaluation(step=1, compute=1, reward=0.5)
    run.finish()

    assert not run.should_stop
    assert run.unsent == 0


def test_a_run_shows_where_it_is(service: FaultyService, tmp_path: Path) -> None:
    run, offline = start(service, tmp_path / "a"), Run(None, 1, spool=Spool(tmp_path / "b"))
    assert repr(run) == f"Run(attempt 1: {service.url}/runs/run_1)"
    assert repr(offline) == f"Run(attempt 1: kept in {tmp_path / 'b'})"
    for one in (run, offline):
        one.finish()
        assert repr(one).startswith("Run(attempt 1, finished: ")
