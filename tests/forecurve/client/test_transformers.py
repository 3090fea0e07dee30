"""`ForecurveCallback` in transformers' real Trainer against the real API: what is reported, and how a training ends."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from forecurve.client import Api, Run, init

from .conftest import FaultyService, wait_for

pytest.importorskip("accelerate", reason="transformers' Trainer runs on it")

from forecurve.client.transformers import ForecurveCallback

from .training import HELD_OUT, At, rows, trainer
from .training import main as training

EVALUATED = [0, 2, 4, 6, 8, 10]
ROOT = Path(__file__).parents[3]


class Service:
    """The real API, and what it has of a run."""

    def __init__(self, url: str, token: str):
        self.url, self.token = url, token
        self.api = Api(url, token)

    def callback(self, name: str | None = None, **options: Any) -> ForecurveCallback:
        return ForecurveCallback(name, **{"unit": "steps", "url": self.url, "token": self.token} | options)

    def named(self, name: str) -> list[dict[str, Any]]:
        return [run for run in self.api.runs() if run["name"] == name]

    def evaluations(self, run_id: str | None) -> list[dict[str, Any]]:
        return list(self.api.evaluations(str(run_id))["items"])

    def outcomes(self, run_id: str | None) -> list[str | None]:
        """Of each attempt, the newest first."""
        return [attempt["outcome"] for attempt in self.api.attempts(str(run_id))]

    def curve(self, run_id: str | None) -> list[tuple[int, int, float]]:
        """Step, attempt and compute of each point."""
        points = self.api.curve(str(run_id))["points"]
        return [(point["step"], point["attempt"], point["compute"]) for point in points]


@pytest.fixture
def service(real_service: tuple[str, str], own_directory: Path) -> Service:
    return Service(*real_service)


def begun(callback: ForecurveCallback) -> Run:
    assert callback.run is not None
    return callback.run


def failing() -> None:
    raise RuntimeError("the GPU fell off")


def test_one_line_reports_evaluations_metrics_and_checkpoints_of_a_run_named_after_its_folder(
    service: Service, tmp_path: Path
) -> None:
    callback = service.callback(project="lab", budget=100, task="sums", arm="wide", seed=3)
    trainer(tmp_path / "seven-b", callback).train()

    run = service.api.run(str(begun(callback).id))
    evaluations = service.evaluations(run["id"])
    assert (run["task"], run["arm"], run["seed"]) == ("sums", "wide", 3)
    assert (run["name"], run["compute_unit"], run["budget_compute"]) == ("lab/seven-b", "steps", 100)
    assert [(item["step"], item["compute"]) for item in evaluations] == [(step, step) for step in EVALUATED]
    assert {(item["prompts"], item["samples"]) for item in evaluations} == {(HELD_OUT, 1)}
    rates = [item["reward"] for item in evaluations]
    assert rates[0] == 0
    assert 0 < rates[-1] == max(rates)
    assert {"train/loss", "train/learning_rate", "eval/loss", "eval/reward"} <= set(service.api.metric_names(run["id"]))
    assert [point["step"] for point in service.api.metric_points(run["id"], "train/loss")] == EVALUATED[1:]
    checkpoint = next(service.api.checkpoints(run["id"]))
    assert (checkpoint["step"], checkpoint["path"]) == (10, str(tmp_path / "seven-b" / "checkpoint-10"))
    assert checkpoint["size_bytes"] > 0
    assert service.outcomes(run["id"]) == ["succeeded"]


def test_a_run_name_and_what_is_given_come_before_the_folder(service: Service, tmp_path: Path) -> None:
    callback = service.callback(prompts=500, samples=4, reward=lambda logs: (logs["eval_reward"] + 1) / 2)
    trainer(tmp_path / "out", callback, run_name="wide").train()

    evaluations = service.evaluations(service.named("wide")[0]["id"])
    assert {(item["prompts"], item["samples"]) for item in evaluations} == {(500, 4)}
    assert evaluations[0]["reward"] == 0.5


@pytest.mark.slow  # 8 s
def test_a_training_that_is_killed_goes_on_with_its_run_and_what_it_had_spent(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In another process, which is this one."""
    out = tmp_path / "out"
    monkeypatch.setenv("FORECURVE_URL", service.url)
    monkeypatch.setenv("FORECURVE_TOKEN", service.token)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "tests.forecurve.client.training", str(out), "", "7"]
    killed = subprocess.run(command, cwd=tmp_path, env=environment, check=False, capture_output=True)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    training(str(out), str(out / "checkpoint-6"), "0")

    (run,) = service.named("killed")
    assert run["attempt"] == 2
    assert service.outcomes(run["id"])[0] == "succeeded"
    curve = service.curve(run["id"])
    assert [(step, attempt) for step, attempt, _ in curve] == [(0, 1), (2, 1), (4, 1), (6, 2), (8, 2), (10, 2)]
    spent = [compute for _, _, compute in curve]
    assert spent == sorted(spent)
    assert spent[0] == 0 < spent[2]


def test_a_training_that_raises_leaves_its_run_to_the_next_that_goes_on_from_a_checkpoint(
    service: Service, tmp_path: Path
) -> None:
    first = service.callback()
    with pytest.raises(RuntimeError, match="fell off"):
        trainer(tmp_path / "out", first, At(5, failing)).train()
    assert not begun(first).finished

    again = service.callback()
    trainer(tmp_path / "out", again).train(resume_from_checkpoint=str(tmp_path / "out" / "checkpoint-4"))

    assert begun(again).id == begun(first).id
    assert service.outcomes(begun(first).id) == ["succeeded", "lost"]
    assert [(step, attempt) for step, attempt, _ in service.curve(begun(first).id)] == [
        (0, 1), (2, 1), (4, 2), (6, 2), (8, 2), (10, 2)
    ]  # fmt: skip


def test_the_same_trainer_that_begins_again_goes_on_with_its_run(service: Service, tmp_path: Path) -> None:
    callback = service.callback()
    training = trainer(tmp_path / "out", callback, At(5, failing))
    with pytest.raises(RuntimeError, match="fell off"):
        training.train()
    training.pop_callback(At)
    first = begun(callback)

    training.train()

    assert (begun(callback).id, begun(callback).attempt) == (first.id, 2)
    assert service.outcomes(first.id) == ["succeeded", "lost"]


def test_a_training_that_begins_anew_is_another_run(service: Service, tmp_path: Path) -> None:
    first, second = service.callback(), service.callback()
    trainer(tmp_path / "out", first).train()
    trainer(tmp_path / "out", second).train()

    assert begun(first).id != begun(second).id


def test_a_request_to_stop_ends_the_training_with_an_evaluation_and_a_checkpoint(
    service: Service, tmp_path: Path
) -> None:
    callback = service.callback()

    def stop() -> None:
        run = begun(callback)
        service.api.stop_run(str(run.id), "enough seen")
        wait_for(lambda: run._heart.beat() or run.should_stop)  # type: ignore[union-attr, func-returns-value]

    training = trainer(tmp_path / "out", At(3, stop), callback, eval_steps=5, save_steps=5)
    training.train()

    assert training.state.global_step == 3
    assert [item["step"] for item in service.evaluations(begun(callback).id)] == [0, 3]
    assert [item["step"] for item in service.api.checkpoints(str(begun(callback).id))] == [3]
    assert service.outcomes(begun(callback).id) == ["stopped"]


def test_a_request_to_stop_writes_no_checkpoint_where_none_are_wanted(service: Service, tmp_path: Path) -> None:
    callback = service.callback()
    ask = At(3, lambda: begun(callback)._ask_to_stop("enough seen"))
    training = trainer(tmp_path / "out", ask, callback, save_strategy="no", eval_strategy="epoch")
    training.train()

    assert training.state.global_step == 3
    assert [item["step"] for item in service.evaluations(begun(callback).id)] == [0, 3]
    assert list(service.api.checkpoints(str(begun(callback).id))) == []


def test_a_training_that_another_callback_ends_is_said_to_be_stopped(service: Service, tmp_path: Path) -> None:
    callback = service.callback()
    training = trainer(tmp_path / "out", callback)
    training.add_callback(At(4, lambda: setattr(training.control, "should_training_stop", True)))
    training.train()

    assert service.outcomes(begun(callback).id) == ["stopped"]


def test_a_run_that_was_begun_in_this_process_is_used_and_left_open(service: Service, tmp_path: Path) -> None:
    mine = init("mine", unit="steps", url=service.url, token=service.token)
    trainer(tmp_path / "a", callback := ForecurveCallback(unit="steps")).train()
    assert begun(callback) is mine
    assert not mine.finished
    mine.finish()

    given = init("given", unit="steps", url=service.url, token=service.token)
    init("other", mode="disabled")
    trainer(tmp_path / "b", ForecurveCallback(unit="steps", run=given)).train()
    assert not given.finished
    given.finish()

    assert [item["step"] for run in (mine, given) for item in service.evaluations(run.id)] == EVALUATED * 2


def test_with_several_held_out_sets_the_one_that_is_named_is_the_curve(
    service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sets = {"maths": rows(HELD_OUT), "code": rows(4)}
    callback = service.callback(reward="eval_code_reward")
    trainer(tmp_path / "out", callback, eval_dataset=sets).train()

    evaluations = service.evaluations(begun(callback).id)
    assert [(item["step"], item["prompts"]) for item in evaluations] == [(step, 4) for step in EVALUATED]
    assert {"eval/maths_reward", "eval/code_reward"} <= set(service.api.metric_names(str(begun(callback).id)))
    assert not [record for record in caplog.records if record.name == "forecurve"]


def test_a_number_without_the_name_of_its_set_gets_it(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sets = {"maths": rows(HELD_OUT), "code": rows(4)}
    callback = service.callback(reward="eval_code_passed")
    training = trainer(tmp_path / "out", callback, eval_dataset=sets)
    log = training.log

    def log_as_trl_does(logs: dict[str, float], start_time: float | None = None) -> None:
        ours = {} if training.model.training else {"eval_passed": 0.25 if "eval_code_loss" in logs else 0.75}
        log(logs | ours, start_time)

    monkeypatch.setattr(training, "log", log_as_trl_does)
    training.train()

    run_id = str(begun(callback).id)
    assert {item["reward"] for item in service.evaluations(run_id)} == {0.25}
    assert {point["value"] for point in service.api.metric_points(run_id, "eval/maths_passed")} == {0.75}


def test_a_number_of_training_can_be_the_pass_rate(service: Service, tmp_path: Path) -> None:
    callback = service.callback(reward="learning_rate", prompts=16, samples=2)
    trainer(tmp_path / "out", callback, eval_strategy="no", eval_on_start=False).train()

    assert [(item["step"], item["prompts"]) for item in service.evaluations(begun(callback).id)] == [
        (step, 16) for step in EVALUATED[1:]
    ]


@pytest.mark.parametrize(
    ("compute", "spent"),
    [(lambda state: state.global_step * 3, [0, 6, 12, 18, 24, 30]), ("epoch", [0, *(n / 32 for n in EVALUATED[1:])])],
)
def test_compute_is_what_the_user_counts(service: Service, tmp_path: Path, compute: Any, spent: list[float]) -> None:
    callback = service.callback(unit="GPU-hours", compute=compute)
    trainer(tmp_path / "out", callback).train()

    assert [item["compute"] for item in service.evaluations(begun(callback).id)] == pytest.approx(spent)


@pytest.mark.parametrize(
    ("options", "settings", "says"),
    [
        ({"reward": "eval_pass"}, {}, "'eval_pass' is not there. What is logged is eval_loss, eval_reward"),
        ({"reward": "reward"}, {}, "'reward' is not there. What is logged is loss, grad_norm"),
        ({"reward": lambda logs: logs["x"]}, {}, "reward= failed (KeyError: 'x')"),
        ({"reward": lambda logs: None}, {}, "its pass rate is None, which is no number"),
        ({"reward": lambda logs: 2.0}, {}, "must be a pass rate from 0 to 1; scale other rewards"),
        ({}, {"eval_strategy": "no", "eval_on_start": False}, "nothing is evaluated, so no forecast can be made"),
        ({"compute": lambda state: 1 / 0}, {}, "compute= failed (ZeroDivisionError"),
    ],
)
def test_what_keeps_evaluations_from_the_curve_is_said_once_and_training_goes_on(
    service: Service,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    options: dict[str, Any],
    settings: dict[str, Any],
    says: str,
) -> None:
    callback = service.callback(**options)
    training = trainer(tmp_path / "out", callback, **settings)
    training.train()

    assert caplog.text.count(says) == 1
    assert training.state.global_step == 10
    assert service.evaluations(begun(callback).id) == []
    assert service.outcomes(begun(callback).id) == ["succeeded"]


def test_a_run_that_the_service_refuses_is_kept_on_disk(
    service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    callback = service.callback(token="fc_api_wrong")
    trainer(tmp_path / "out", callback).train()

    assert begun(callback).id is None
    assert "the run does not begin (" in caplog.text
    assert "later: forecurve sync " in caplog.text


def test_a_service_that_fails_or_is_away_holds_no_training_up(
    service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    away = service.callback(url="http://127.0.0.1:9")
    training = trainer(tmp_path / "out", away)
    training.train()

    assert training.state.global_step == 10
    assert "is kept offline" in caplog.text


def test_a_bug_of_ours_is_said_once_and_stays_out_of_training(
    service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forecurve.client.transformers.checkpoints.found", lambda path: 1 / 0)
    callback = service.callback()
    trainer(tmp_path / "out", callback).train()

    assert caplog.text.count("reporting failed (ZeroDivisionError") == 1
    assert [item["step"] for item in service.evaluations(begun(callback).id)] == EVALUATED


def test_only_the_first_process_reports(service: Service, tmp_path: Path) -> None:
    callback = service.callback()
    training = trainer(tmp_path / "out", callback)
    training.is_world_process_zero = lambda: False  # type: ignore[method-assign]
    training.train()

    assert callback.run is None
    assert list(service.api.runs()) == []


def test_values_that_are_not_finite_are_metrics_all_the_same(
    service: FaultyService, tmp_path: Path, own_directory: Path
) -> None:
    callback = ForecurveCallback(unit="steps", mode="offline")
    training = trainer(tmp_path / "out", callback)
    training.add_callback(At(4, lambda: training.log({"kl": math.nan, "note": "text", "nothing": None})))
    training.train()

    spooled = "".join(path.read_text() for path in own_directory.rglob("queue.jsonl"))
    assert '"metric":"train/kl","step":4,"compute":4.0,"value":"NaN"' in spooled
    assert "train/note" not in spooled
    assert "train/nothing" not in spooled


@pytest.mark.slow  # two processes that import torch
def test_two_processes_stop_at_the_same_step(service: Service, tmp_path: Path) -> None:
    script = tmp_path / "job.py"
    script.write_text(
        "import signal\n"
        "signal.alarm(240)  # one that waits for the other would wait for ever\n"
        "from pathlib import Path\n"
        "import torch\n"
        "from forecurve.client.transformers import ForecurveCallback\n"
        "from tests.forecurve.client.training import At, trainer\n"
        "callback = ForecurveCallback('pair', unit='CPU-seconds')\n"
        "ask = At(3, lambda: callback.run and callback.run._ask_to_stop('enough seen'))\n"
        "training = trainer(Path('out'), ask, callback, ddp_backend='gloo')\n"
        "training.train()\n"
        "print(f'ended at {training.state.global_step}\\n', end='')\n"  # in one piece: both write to one pipe
        "torch.distributed.destroy_process_group()  # left to the process' end, gloo once aborted it there\n"
    )
    address = {"FORECURVE_URL": service.url, "FORECURVE_TOKEN": service.token}
    environment = os.environ | address | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", str(script)]
    done = subprocess.run(launcher, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=270)

    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ended at 3") == 2
    (run,) = service.named("pair")
    assert service.outcomes(run["id"]) == ["stopped"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"budgett": 3}, "'budgett' is no argument of ForecurveCallback, and none of forecurve.init: name, project"),
        ({"budget": "x"}, "budget is 'x'; it must be a number"),
        ({"unit": "parsecs"}, "unit is 'parsecs'; it is one of GPU-hours"),
        ({"devices": 0}, "devices is 0; it must be the number of devices"),
        ({"resume": "yes"}, "resume is 'yes'; it must be"),
    ],
)
def test_what_cannot_be_meant_is_said_where_it_is_written(options: dict[str, Any], says: str) -> None:
    with pytest.raises((TypeError, RuntimeError), match=says):
        ForecurveCallback(**options)


def test_without_transformers_it_is_said_what_to_install() -> None:
    code = (
        "import sys; sys.modules['transformers'] = None\n"
        "import forecurve, forecurve.client\n"
        "import forecurve.client.transformers"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert "ForecurveCallback is for transformers, which is missing: pip install transformers" in done.stderr
