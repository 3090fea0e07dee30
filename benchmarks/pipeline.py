"""What the pipeline is worth on this machine: asynchronous (PipelineRL-k) against synchronous training, in one run.

    python -m benchmarks.pipeline [--steps 60] [--repeats 2] [--json]

Both train the same recipe in Ray actors (one generator, one learner, a thread each), in turn, so that whatever else the
machine does falls on both. Reported of each: steps an hour, the share of wall time in which the learner waited for a
batch, the share in which the generator waited, and the share of its time that generation stood still for new weights.
Asked: asynchronous not slower than synchronous, generation paused at most 1 %.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import mean, median
from typing import Any

from forecurve.recipes import SCALERL, Recipe, with_changes
from trainer.launch import Launch, train
from trainer.workers.cluster import connect

WARM_UP = 5
"""Steps left out: actors and caches are cold."""

SCHEMES: dict[str, dict[str, Any]] = {
    "asynchronous": {"algorithm.off_policy": "pipeline", "algorithm.max_staleness": 8},
    "synchronous": {"algorithm.off_policy": "on-policy", "algorithm.max_staleness": 0},
}


def benchmark_recipe(steps: int, changes: dict[str, Any]) -> Recipe:
    """The testbed's recipe for so many steps, judged at its ends only."""
    fixed = {"budget.unit": "steps", "budget.compute": steps, "evaluation.every_steps": 10**6, "evaluation.prompts": 16}
    return with_changes(SCALERL, fixed | {"checkpoint.every_steps": 10**6, "resources.cpus": 2} | changes)


def measured(directory: Path) -> dict[str, float]:
    """Figures of a run from its metrics, without the warm-up."""
    lines = [json.loads(line)["metrics"] for line in (directory / "metrics.jsonl").read_text().splitlines()]
    steps = [line for line in lines if "time/step" in line][WARM_UP:]
    total = {name: sum(line[f"time/{name}"] for line in steps) for name in NAMES}
    present = total["generator_busy"] + total["generator_waited"]
    return {
        "steps_per_hour": 3600 / median(line["time/step"] for line in steps),
        "learner_wait_share": total["wait_for_batch"] / total["step"],
        "generator_wait_share": total["generator_waited"] / present,
        "swap_pause_share": total["swap_pause"] / total["step"],
        "staleness_mean": mean(line["staleness/mean"] for line in steps if "staleness/mean" in line),
    }


NAMES = ("step", "wait_for_batch", "generator_busy", "generator_waited", "swap_pause")


def run(steps: int, repeats: int) -> dict[str, Any]:
    """Both schemes in turn, `repeats` times; medians of each figure."""
    found: dict[str, list[dict[str, float]]] = {name: [] for name in SCHEMES}
    leave = connect(cpus=2)
    try:
        for repeat in range(repeats):
            for name, changes in SCHEMES.items():
                with tempfile.TemporaryDirectory() as place:
                    train(benchmark_recipe(steps, changes | {"seed": repeat}), Launch(Path(place), progress=False))
                    found[name].append(measured(Path(place)))
    finally:
        leave()
    medians = {name: {key: median(one[key] for one in runs) for key in runs[0]} for name, runs in found.items()}
    speed = {name: figures["steps_per_hour"] for name, figures in medians.items()}
    return medians | {"asynchronous_to_synchronous": speed["asynchronous"] / speed["synchronous"]}


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    result = run(given.steps, given.repeats)
    if given.json:
        print(json.dumps(result, indent=2))
        return 0
    for name in SCHEMES:
        print(name, *(f"{key} {value:.3f}" for key, value in result[name].items()), sep="\n  ")
    print(f"asynchronous to synchronous, steps an hour: {result['asynchronous_to_synchronous']:.2f} (asked: 1)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
