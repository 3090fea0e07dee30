"""Runs whose first evaluations do not follow their sigmoid: are they set apart, and does the forecast hold?

Sigmoids to 8,000 GPU-hours, R0 .25 to .35, A .5 to .7, B 1 to 2, C_mid 1,000 to 2,500; 3 of 20 to 35 of 200
evaluations at the head are off: all alike (lower or higher), fading out in a straight line, or jumping about. Half of
the runs say how large an evaluation is (1,000 prompts x 8 samples, noise .006), half say nothing (noise .0035). Beside
each stands the same run without those evaluations, cut off by one who knows them.

`cut` is the share of runs of which the fit sets an early regime apart, `withheld` that with a misfit for which there is
no forecast, `held` how often the 90 % interval of the curve at 16,000 holds the truth, `error` the mean distance of its
median from there. Healthy runs are in the last row.

    python benchmarks/early_regime.py [--runs 20] [--json]
"""

from __future__ import annotations

from collections.abc import Callable

import common
import numpy as np

from forecurve.science import Curve, Fit, fit
from forecurve.science.departures.misfit import HOLDS

HEADS = ((3, 20), (5, 30), (8, 30), (5, 60), (10, 60), (18, 60), (12, 100), (25, 100), (8, 200), (35, 200))
SIZES = (0.03, 0.06, 0.12, 0.2)
LAST, LATER = 8000.0, 16_000.0
Head = Callable[[np.random.Generator, int], np.ndarray]
KINDS: dict[str, Head] = {
    "lower": lambda rng, count: -np.ones(count),
    "higher": lambda rng, count: np.ones(count),
    "fading, lower": lambda rng, count: np.arange(count) / count - 1,
    "fading, higher": lambda rng, count: 1 - np.arange(count) / count,
    "jumping": lambda rng, count: rng.normal(0, 1, count),
}


def simulated(off: Head, count: int, points: int, seed: int) -> tuple[Curve, Curve, float]:
    """The run, the same without its head, and where its curve is later."""
    rng = np.random.default_rng([seed, count, points])
    A, R0, B, C_mid = (rng.uniform(*ends) for ends in ((0.5, 0.7), (0.25, 0.35), (1, 2), (1000, 2500)))
    x = np.append(np.linspace(LAST / points, LAST, points), LATER)
    truth = R0 + (A - R0) / (1 + (C_mid / x) ** B)
    told = bool(seed % 2)
    reward = truth[:-1] + rng.normal(0, 0.006 if told else 0.0035, points)
    reward[:count] += off(rng, count)
    sizes = {"prompts": 1000, "samples": 8} if told else {}
    whole, rest = (Curve(x[at:-1], np.clip(reward, 0, 1)[at:], **sizes) for at in (0, count))
    return whole, rest, float(truth[-1])


def row(kind: str, size: float, off: Head, runs: int) -> dict[str, object]:
    """All lengths together."""
    found = []
    for count, points in HEADS:
        for seed in range(runs):
            whole, rest, truth = simulated(off, count, points, seed)
            ours, cut = fit(whole), fit(rest)
            found.append([ours.cutoff is not None, ours.misfit not in HOLDS, *judged(ours, truth), *judged(cut, truth)])
    names = ("cut", "withheld", "held", "error", "held, head cut", "error, head cut")
    means = np.mean(np.array(found, dtype=np.float64), axis=0).tolist()
    common.note(f"{kind} {size:g}: done")
    return {"head": kind, "size": size, "runs": len(found), **dict(zip(names, means, strict=True))}


def judged(found: Fit, truth: float) -> tuple[bool, float]:
    """Whether the band holds the truth, and how far its median lies off."""
    band = found.predict(LATER)
    return bool(band.lower90[0] <= truth <= band.upper90[0]), abs(float(band.median[0]) - truth)


def main() -> None:
    """Simulate and print."""
    arguments = common.parser(__doc__, runs=20).parse_args()
    cells = [
        (kind, size, lambda rng, count, make=make, size=size: size * make(rng, count))
        for kind, make in KINDS.items()
        for size in SIZES
    ]
    cells.append(("none", 0.0, lambda rng, count: np.zeros(count)))
    rows = [row(kind, size, off, arguments.runs) for kind, size, off in cells]
    if arguments.json:
        common.answer({"early": rows})
        return
    common.table(list(rows[0]), [list(one.values()) for one in rows])


if __name__ == "__main__":
    main()
