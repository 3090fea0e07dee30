"""Falls of runs that have no frozen forecast: how many are rung for, how soon, and how many that never fell?

    python benchmarks/early_falls.py [--runs 60] [--json]

Curves and noises of benchmarks/misfit.py, 80 evaluations to 12,000 GPU-hours, refitted by themselves at every third
evaluation from the sixth on, as the service does without a budget. `none` and the smooth curves never fall; the others
are siblings that lose so much of the range somewhere between the 8th and the 60th evaluation: at once, within six
evaluations, or by a ramp to the end. `rung` is the share of the runs with a warning after the fall, `false` before it
or without one, `delay` the evaluations from the fall to the warning, at the median and the 90 % quantile.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import common
import numpy as np
from misfit import NOISES, SMOOTH, sigmoid, truth

from forecurve.science import Curve, fit
from server.metrics.curve import Point
from worker.early_fall import early_fall

X = np.linspace(0, 12_000, 81)
LOOKS = range(6, len(X) + 1, 3)
WHEN = datetime(2026, 1, 1, tzinfo=UTC)

Lost = Callable[[np.ndarray], np.ndarray]
SHAPES: dict[str, Lost] = {
    "at once": lambda since: (since >= 0).astype(float),
    "within 6": lambda since: np.clip(since / 6, 0, 1),
    "ramp to the end": lambda since: np.maximum(since, 0) / since[-1],
}
FALLS = {"at once": (0.3, 0.1, 0.03), "within 6": (0.3,), "ramp to the end": (0.3, 0.1)}


def rung_at(reward: np.ndarray) -> int | None:
    """The number of evaluations at the first warning; None without one."""
    points = [
        Point(at, 1, float(x), float(y), 1000, 16, None, WHEN) for at, (x, y) in enumerate(zip(X, reward, strict=True))
    ]
    for size in LOOKS:
        fitted = fit(Curve(X[:size], reward[:size], prompts=1000, samples=16, unit="GPU-hours"))
        if early_fall("run", points[:size], fitted, None, None) is not None:
            return size
    return None


def healthy(kind: str, rng: np.random.Generator) -> np.ndarray:
    """A curve that never falls."""
    return SMOOTH[kind](rng, X) if kind in SMOOTH else sigmoid(X, *truth(rng))


def cell(kind: str, noise: str, runs: int, lost: float = 0.0) -> dict[str, object]:
    """One row: runs of a kind of fall, or of a curve that never falls."""
    false, delays = 0, []
    for seed in range(runs):
        rng = np.random.default_rng([seed, 77])
        reward, at = healthy(kind, rng), len(X)
        if lost:
            at = int(rng.integers(8, 60))
            reward = reward - lost * SHAPES[kind](np.arange(len(X)) - at + 0.0)
        rung = rung_at(np.clip(np.clip(reward, 0.01, 1) + NOISES[noise](rng, len(X)), 0, 1))
        if rung is not None and rung > at:
            delays.append(rung - at)
        false += rung is not None and rung <= at
    middle, late = np.quantile(delays, (0.5, 0.9)) if delays else (None, None)
    row = {"kind": kind, "lost": lost, "noise": noise, "runs": runs, "rung": len(delays) / runs, "false": false / runs}
    return row | {"delay": middle, "delay 90 %": late}


def main() -> None:
    """Simulate and print."""
    asked = common.parser(__doc__, runs=60).parse_args()
    cells = [(kind, 0.0) for kind in ("none", *SMOOTH)] + [(kind, lost) for kind in FALLS for lost in FALLS[kind]]
    rows = []
    for kind, lost in cells:
        rows += [cell(kind, noise, asked.runs, lost) for noise in NOISES]
        common.note(f"{kind} {lost}: done")
    common.show(rows, as_json=asked.json)


if __name__ == "__main__":
    main()
