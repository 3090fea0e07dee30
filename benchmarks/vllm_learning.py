"""Does the trainer learn with vLLM? The same recipe and seed with vLLM and with the torch engine, step by step.

A Qwen3 of 100 thousand parameters with heads of 32 (the narrowest that vLLM's CPU kernels take) is warm-started on
demonstrations of the torus task (`--base FOLDER` keeps it and takes it again) and trained by `python -m trainer`:
PipelineRL-8, 32 prompts x 16 completions of at most 24 tokens a step, 256 held-out prompts x 4 every 5 steps. The runs
come one after the other; sampling differs between engines, so that their curves agree within its noise only (a pass
rate of .5 has a standard error of .016 from 1,024 answers, and more since four of them share a prompt).

    python benchmarks/vllm_learning.py [--steps 40] [--base FOLDER] [--out FOLDER] [--json]
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from common import answer, note, parser, table
from trainer_throughput import LEARNING_RATE, PROMPTS, ROOT, SAMPLES, TOKENS, WARMUP, WEIGHT_CAP, make_base

from trainer.engines.vllm_adapter import missing

HEAD_SIZE, STALENESS, EVALUATE_EVERY = 32, 8, 5
ENGINES = ("vllm", "torch")
WORST = ("policy/logprob_diff_mean", "policy/mismatch_kl", "policy/ratio_capped_share", "staleness/max")
MEAN = (
    "generation/truncated_share",
    "staleness/mean",
    "staleness/in_flight_mean",
    "time/learner_wait_share",
    "time/generator_wait_share",
    "time/swap_pause_share",
)


def main() -> None:
    made = parser(__doc__)
    made.add_argument("--steps", type=int, default=40)
    made.add_argument("--base", type=Path, help="folder of the warm-started model; made when it is not there")
    made.add_argument("--out", type=Path, help="where the runs are kept")
    given = made.parse_args()
    if reason := missing():
        raise SystemExit(reason)
    with tempfile.TemporaryDirectory() as scratch:
        base, out = given.base or Path(scratch) / "base", given.out or Path(scratch) / "runs"
        make_base(base, HEAD_SIZE)
        out.mkdir(parents=True, exist_ok=True)
        (out / "recipe.json").write_text(json.dumps(recipe(base, given.steps)))
        found = {engine: run(engine, out) for engine in ENGINES}
    answer(found) if given.json else report(found)


def recipe(base: Path, steps: int) -> dict[str, Any]:
    """What both engines run."""
    return {
        "name": "vllm-learning",
        "task": {"kind": "torus"},
        "model": {"kind": "huggingface", "path": str(base.absolute())},
        "algorithm": {"is_weight_cap": WEIGHT_CAP, "off_policy": "pipeline", "max_staleness": STALENESS},
        "length_control": {"kind": "none"},
        "batch": {"prompts_per_step": PROMPTS, "generations_per_prompt": SAMPLES},
        "generation": {"max_tokens": TOKENS},
        "optimizer": {"learning_rate": LEARNING_RATE, "warmup_steps": WARMUP},
        "evaluation": {"every_steps": EVALUATE_EVERY, "prompts": 256, "samples": 4},
        "budget": {"compute": steps, "unit": "steps"},
        "resources": {"cpus": 2},
    }


def run(engine: str, out: Path) -> dict[str, Any]:
    """One run by the command line, and what it says of itself."""
    note(f"training with generation.engine {engine} ...")
    command = [sys.executable, "-m", "trainer", "--recipe", str(out / "recipe.json"), "--out", str(out / engine)]
    variables = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    subprocess.run([*command, "--engine", engine], env=os.environ | variables, check=True, stdout=subprocess.DEVNULL)
    return figures(lines(out / engine / "metrics.jsonl"), lines(out / engine / "evaluations.jsonl"))


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def figures(steps: list[dict[str, Any]], judged: list[dict[str, Any]]) -> dict[str, Any]:
    """Pass rate by step, the self-check, the worst of some metrics over the steps and the mean of others."""

    def values(name: str) -> list[float]:
        return [line["metrics"][name] for line in steps if name in line["metrics"]]

    waited = values("time/step")[1:]  # the first step also holds the engine's start
    return {
        "pass_rates": {line["step"]: line["reward"] for line in judged},
        "self_check_logprob_diff": judged[0]["details"]["self_check_logprob_diff"],
        "completions_per_second": PROMPTS * SAMPLES * len(waited) / sum(waited),
        "worst": {name: max(values(name)) for name in WORST},
        "mean": {name: sum(values(name)) / len(values(name)) for name in MEAN},
    }


def report(found: dict[str, dict[str, Any]]) -> None:
    """Curves side by side, then the rest."""
    steps = sorted(set.intersection(*(set(of["pass_rates"]) for of in found.values())))
    rows = [[f"pass rate at step {step}", *(of["pass_rates"][step] for of in found.values())] for step in steps]
    for name in ("self_check_logprob_diff", "completions_per_second"):
        rows.append([name, *(of[name] for of in found.values())])
    for kind in ("worst", "mean"):
        rows += [[f"{name} ({kind})", *(of[kind][name] for of in found.values())] for name in found[ENGINES[0]][kind]]
    table(["", *found], [[row[0], *(f"{value:.3g}" for value in row[1:])] for row in rows])


if __name__ == "__main__":
    main()
