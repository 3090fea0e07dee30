"""Our own sweep on the testbed, from training to verdict: which knob moves the ceiling, which only the efficiency.

    python benchmarks/testbed.py [--seeds 5] [--steps 400] [--jobs 2] [--out FOLDER] [--json]

Trains the `scalerl` preset and one-field variations of it with several seeds each (`python -m trainer --no-ray`, real
gradient steps, compute counted in optimiser steps so that a busy machine changes nothing), writes their evaluations to
FOLDER/curves.csv, fits every run and compares the arms with the control. Runs that FOLDER holds already are kept, so an
interrupted sweep goes on where it was. One run of 400 steps takes one to two minutes of one core.

Asked: every run of the control is one sigmoid (no misfit) with a ceiling below 1, the ceilings' spread between seeds
reported; at least one arm's verdict is `ceiling` and one's is `efficiency`.
"""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import common
import numpy as np

from forecurve.curve_files import read_arms
from forecurve.science import Curve, Fit, compare, fit

CONTROL = "control"
ARMS: dict[str, dict[str, str]] = {
    CONTROL: {},
    "no interruption": {"length_control.kind": "none"},
    "learning_rate=1e-4": {"optimizer.learning_rate": "1e-4"},
    "loss=dapo": {"algorithm.loss": "dapo"},
}
ROOT = Path(__file__).parents[1]


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--jobs", type=int, default=2, help="runs at a time, one thread each")
    parser.add_argument("--out", type=Path, default=Path(".data/testbed"), help="where runs and curves.csv are kept")
    parser.add_argument("--arms", nargs="+", choices=sorted(ARMS), default=list(ARMS))
    options = parser.parse_args()
    arms = list(dict.fromkeys([CONTROL, *options.arms]))
    wanted = [(arm, seed) for seed in range(options.seeds) for arm in arms]
    with ThreadPoolExecutor(options.jobs) as pool:
        folders = list(pool.map(lambda one: _trained(options.out, *one, options.steps), wanted))
    file = options.out / "curves.csv"
    _write(file, zip(wanted, folders, strict=True))
    curves = read_arms(file, unit="steps")
    fits = {arm: [fit(curve) for curve in curves[arm]] for arm in arms}
    compared = compare(curves, CONTROL)
    levels = _levels(fits[CONTROL], [arm.verdict for arm in compared.arms])
    if options.json:
        rows = [_row(arm, one) for arm in arms for one in fits[arm]]
        common.answer({"runs": rows, "comparison": compared.to_dict(), "levels": levels})
        return
    common.table(list(_row(CONTROL, fits[CONTROL][0])), (_row(a, one).values() for a in arms for one in fits[a]))
    print()
    for arm in compared.arms:
        print(arm.reason)
    print(f"\n{compared.sentence}\n")
    common.table(("level", "asked", "reached"), levels)


def _trained(out: Path, arm: str, seed: int, steps: int) -> Path:
    """The folder of one run, trained to its end."""
    folder = out / f"{arm.replace(' ', '-')}-seed{seed}-{steps}"
    outcome = folder / "outcome.json"
    if outcome.exists() and json.loads(outcome.read_text())["outcome"] == "succeeded":
        return folder
    fields = {"seed": seed, "budget.unit": "steps", "budget.compute": steps, **ARMS[arm]}
    settings = [part for field, value in fields.items() for part in ("--set", f"{field}={value}")]
    command = [sys.executable, "-m", "trainer", "--recipe", "preset:scalerl", "--no-ray", "--out", str(folder)]
    if (folder / "checkpoints").exists():
        command.append("--resume")
    threads = {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([*command, *settings], env={**os.environ, **threads}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{arm}, seed {seed}: the trainer ended with {done.returncode}: {done.stderr[-500:]}")
    common.note(f"{arm}, seed {seed}: {done.stderr.strip().splitlines()[-2]}")
    return folder


def _write(file: Path, runs: Iterator[tuple[tuple[str, int], Path]]) -> None:
    with file.open("w", newline="") as target:
        rows = csv.writer(target)
        rows.writerow(("series", "compute", "reward", "prompts", "samples", "seed"))
        for (arm, seed), folder in runs:
            for line in map(json.loads, (folder / "evaluations.jsonl").read_text().splitlines()):
                rows.writerow((arm, line["step"], line["reward"], line["prompts"], line["samples"], seed))


def _row(arm: str, found: Fit) -> dict[str, Any]:
    curve: Curve = found.curve
    return {
        "arm": arm,
        "seed": curve.seed,
        "start": float(curve.reward[0]),
        "end": float(curve.reward[-3:].mean()),
        "A": found.A.median,
        "A 5 %": found.A.lower,
        "A 95 %": found.A.upper,
        "B": found.B.median,
        "C_mid": found.C_mid.median,
        "misfit": found.misfit or "none",
    }


def _levels(control: list[Fit], verdicts: list[str]) -> list[tuple[str, str, str]]:
    ceilings = np.array([one.A.median for one in control])
    sd = f"{ceilings.std(ddof=1):.4f}" if len(ceilings) > 1 else "one seed"
    misfits = [one.misfit for one in control if one.misfit]
    below = "yes" if all(one.A.upper < 1 for one in control) else "NO"
    return [
        ("control is one sigmoid", "no misfit", ", ".join(misfits) or f"none of {len(control)}"),
        (
            "control's ceiling",
            "below 1",
            f"{ceilings.mean():.4f}, sd of seeds {sd}, below 1: {below}",
        ),
        ("a knob that moves the ceiling", "1 or more", str(verdicts.count("ceiling"))),
        ("a knob that moves the efficiency alone", "1 or more", str(verdicts.count("efficiency"))),
    ]


if __name__ == "__main__":
    main()
