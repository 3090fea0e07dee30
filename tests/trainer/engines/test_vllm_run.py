"""Whole runs with vLLM generating, by the command line: one that learns; and an engine whose process is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import psutil
import pytest
import yaml

from tests.trainer.engines.vllm_parts import DEVICE, make_base, make_folder
from trainer.engines.base import SamplingConfig
from trainer.engines.vllm_adapter import VllmOptions, missing
from trainer.engines.vllm_engine import VllmEngine
from trainer.errors import WorkerLost
from trainer.models import huggingface
from trainer.types import Prompt, Request

pytestmark = [
    pytest.mark.vllm,
    pytest.mark.slow,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
    pytest.mark.skipif(DEVICE != "cpu", reason="runs that reserve no GPU: of vLLM's build for CPUs"),
    pytest.mark.timeout(900),
]

STEPS = 4
RECIPE = {
    "name": "vllm",
    # A random model earns nothing: what moves the weights is their decay, a lot of it. Every step trains on tokens of
    # the newest weights, so that engine and learner agree only if each swap has reached the engine.
    "algorithm": {"zero_variance_filter": "off", "off_policy": "on-policy", "max_staleness": 0},
    "optimizer": {"learning_rate": 0.2, "weight_decay": 0.5, "warmup_steps": 0},
    "batch": {"prompts_per_step": 4, "generations_per_prompt": 4},
    "generation": {"max_tokens": 20, "engine": "vllm"},
    "evaluation": {"every_steps": 2, "prompts": 16, "samples": 2},
    "checkpoint": {"every_steps": 2},
    "budget": {"unit": "steps", "compute": STEPS},
}

LEARNING = {
    "name": "vllm-learns",
    "algorithm": {"off_policy": "pipeline", "max_staleness": 8},
    "optimizer": {"learning_rate": 3e-4, "warmup_steps": 10},
    "batch": {"prompts_per_step": 32, "generations_per_prompt": 16},
    "generation": {"max_tokens": 24, "engine": "vllm"},
    "evaluation": {"every_steps": 10, "prompts": 128, "samples": 4},
    "budget": {"unit": "steps", "compute": 20},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_folder(tmp_path_factory.mktemp("qwen3"), 0)


def trained(folder: Path, out: Path, *arguments: str, fields: dict[str, object] = RECIPE) -> list[dict[str, object]]:
    """The lines of the run's metrics, after it ended well."""
    recipe = out.parent / "recipe.yaml"
    recipe.write_text(yaml.safe_dump(fields | {"model": {"kind": "huggingface", "path": str(folder)}}))
    command = [sys.executable, "-m", "trainer", "--recipe", str(recipe), "--out", str(out), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=700)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def by_name(lines: list[dict[str, object]]) -> dict[str, dict[int, float]]:
    """Every metric's values by step."""
    values: dict[str, dict[int, float]] = {}
    for line in lines:
        for name, value in line.get("metrics", {}).items():  # type: ignore[attr-defined]
            values.setdefault(name, {})[int(line["step"])] = value  # type: ignore[call-overload]
    return values


def check(lines: list[dict[str, object]]) -> None:
    """The run took every step, and its engine sampled each batch from the weights that the step before had made."""
    values = by_name(lines)
    assert set(values["train/loss"]) == set(range(1, STEPS + 1))
    assert all(np.isfinite(value) for value in values["train/loss"].values())
    assert max(values["policy/logprob_diff_mean"].values()) < 1e-3
    assert values["train/entropy"][STEPS] > values["train/entropy"][1] + 0.05  # the weights are others by now
    assert values["ledger/generator"][STEPS] > 0.1  # vLLM's own process included


def drain(engine: VllmEngine) -> None:
    while engine.busy:
        engine.step()


def test_a_run_in_one_process_trains_with_vllm_generating(folder, tmp_path):
    check(trained(folder, tmp_path / "run", "--no-ray"))


@pytest.mark.ray
@pytest.mark.parametrize("way", ["store", "collective"])
def test_a_run_in_ray_actors_trains_with_vllm_generating(way, folder, tmp_path):
    check(trained(folder, tmp_path / "run", "--set", f"resources.weight_transfer={way}"))


@pytest.mark.ray
def test_a_run_learns_while_its_weights_are_swapped_under_vllms_running_requests(tmp_path):
    values = by_name(trained(make_base(tmp_path / "base", 400), tmp_path / "run", fields=LEARNING))
    judged = [json.loads(line) for line in (tmp_path / "run" / "evaluations.jsonl").read_text().splitlines()]
    rates = {line["step"]: line["reward"] for line in judged}
    assert list(rates) == [0, 10, 20]
    assert rates[20] > rates[0] + 0.1  # some five times the standard error of either
    assert judged[0]["details"]["self_check_logprob_diff"] < 1e-4
    assert max(values["staleness/in_flight_max"].values()) >= 1  # some weights came while responses were written
    assert max(values["policy/mismatch_kl"].values()) < 0.01
    assert max(values["policy/ratio_capped_share"].values()) < 0.01


def test_no_process_of_vllm_outlives_a_killed_trainer(folder):
    script = (
        "import sys\n"
        "from trainer.engines.base import SamplingConfig\n"
        "from trainer.engines.vllm_engine import VllmEngine, VllmOptions\n"
        "if __name__ == '__main__':\n"
        f"    engine = VllmEngine(VllmOptions({str(folder)!r}, context=128), SamplingConfig(64, 1.0, ()))\n"
        "    print('started', *engine.process_ids, flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as trainer:
        assert trainer.stdout is not None
        line = next(line for line in trainer.stdout if line.startswith("started"))
        processes = [psutil.Process(int(process_id)) for process_id in line.split()[1:]]
        trainer.kill()
        _, alive = psutil.wait_procs(processes, timeout=30)
    assert processes
    assert not alive


def test_the_death_of_vllms_process_is_a_named_error_and_closing_still_ends(folder):
    engine = VllmEngine(VllmOptions(str(folder), context=128), SamplingConfig(64, 1.0, ()))
    try:
        engine.submit([Request(key, Prompt("", "", np.arange(3, 9)), 8, (key,)) for key in range(8)])
        for process_id in engine.process_ids:
            os.kill(process_id, signal.SIGKILL)
        with pytest.raises(WorkerLost, match="vLLM's engine process died while it was to generate"):
            drain(engine)
        with pytest.raises(WorkerLost, match="died while it was to load weights"):
            engine.load_weights(1, huggingface.load(folder).named_tensors())
    finally:
        engine.close()
    assert not engine.busy
