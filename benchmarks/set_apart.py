"""Runs of which some evaluations do not follow the curve: are these set apart, and does the forecast hold?

Sigmoids to 8,000 GPU-hours, R0 .25 to .35, A .5 to .7, B 1 to 2, C_mid 1,000 to 2,500. Heads: 3 of 20 to 35 of 200
evaluations at the beginning are off, all alike (lower or higher), fading out in a straight line, or jumping about.
Outages: 2 of 30 to 12 of 100 evaluations in the middle are lower, then the run is where it was. Half of the runs say
how large an evaluation is (1,000 prompts x 8 samples, noise .006), half say nothing (noise .0035). Beside each stands
the same run without those evaluations, left out by one who knows them.

`told` is the share of runs of which the fit sets some apart, `withheld` that with a misfit for which there is no
forecast, `held` how often the 90 % interval of the curve at 16,000 holds the truth, `width` the median width of it,
`error` the mean distance of its median from the truth. Healthy runs are in the last row.

    python benchmarks/set_apart.py [--runs 20] [--json]
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import common
import numpy as np

from forecurve.science import Curve, Fit, fit

HEADS = ((3, 20), (5, 30), (8, 30), (5, 60), (10, 60), (18, 60), (12, 100), (25, 100), (8, 200), (35, 200))
OUTAGES = ((4, 20), (2, 30), (4, 50), (8, 50), (3, 100), (12, 100))
LAST, LATER = 8000.0, 16_000.0


@dataclass(frozen=True)
class Kind:
    """How evaluations are off, how far, of which lengths, and from which share of the run on."""

    name: str
    sizes: tuple[float, ...]
    off: Callable[[np.random.Generator, int], np.ndarray]
    lengths: tuple[tuple[int, int], ...] = HEADS
    since: float = 0.0


SIZES = (0.03, 0.06, 0.12, 0.2)
KINDS = (
    Kind("head, lower", SIZES, lambda rng, count: -np.ones(count)),
    Kind("head, higher", SIZES, lambda rng, count: np.ones(count)),
    Kind("head, fading, lower", SIZES, lambda rng, count: np.arange(count) / count - 1),
    Kind("head, fading, higher", SIZES, lambda rng, count: 1 - np.arange(count) / count),
    Kind("head, jumping", SIZES, lambda rng, count: rng.normal(0, 1, count)),
    Kind("outage", (0.06, 0.12, 0.3, 1.0), lambda rng, count: -np.ones(count), OUTAGES, 0.5),
    Kind("none", (0.0,), lambda rng, count: np.zeros(count)),
)


def simulated(kind: Kind, size: float, count: int, points: int, seed: int) -> tuple[Curve, Curve, float]:
    """The run, the same without what is off, and where its curve is later."""
    rng = np.random.default_rng([seed, count, points])
    A, R0, B, C_mid = (rng.uniform(*ends) for ends in ((0.5, 0.7), (0.25, 0.35), (1, 2), (1000, 2500)))
    x = np.append(np.linspace(LAST / points, LAST, points), LATER)
    truth = R0 + (A - R0) / (1 + (C_mid / x) ** B)
    told = bool(seed % 2)
    reward = truth[:-1] + rng.normal(0, 0.006 if told else 0.0035, points)
    odd = np.arange(points) - int(kind.since * points)
    odd = (odd >= 0) & (odd < count)
    reward[odd] += size * kind.off(rng, count)
    sizes = {"prompts": 1000, "samples": 8} if told else {}
    whole, rest = (Curve(x[:-1][kept], np.clip(reward, 0, 1)[kept], **sizes) for kept in (slice(None), ~odd))
    return whole, rest, float(truth[-1])


def row(kind: Kind, size: float, runs: int) -> dict[str, object]:
    """All lengths together."""
    found = []
    for count, points in kind.lengths:
        for seed in range(runs):
            whole, rest, truth = simulated(kind, size, count, points, seed)
            ours = fit(whole)
            told = ours.cutoff is not None if kind.since == 0 else len(ours.outliers) > 0
            found.append([told, ours.withheld, *judged(ours, truth), *judged(fit(rest), truth)])
    columns = np.array(found, dtype=np.float64).T
    told, withheld, held, width, error, held_known, width_known, error_known = columns
    common.note(f"{kind.name} {size:g}: done")
    return {
        "off": kind.name,
        "size": size,
        "runs": len(found),
        "told": told.mean(),
        "withheld": withheld.mean(),
        "held": held.mean(),
        "width": float(np.median(width)),
        "error": error.mean(),
        "left out: held": held_known.mean(),
        "width ": float(np.median(width_known)),
        "error ": error_known.mean(),
    }


def judged(found: Fit, truth: float) -> tuple[bool, float, float]:
    """Whether the band holds the truth, its width, and how far its median lies off."""
    band = found.predict(LATER).at(0)
    return band.lower <= truth <= band.upper, band.width, abs(band.median - truth)


def main() -> None:
    """Simulate and print."""
    arguments = common.parser(__doc__, runs=20).parse_args()
    rows = [row(kind, size, arguments.runs) for kind in KINDS for size in kind.sizes]
    common.show(rows, as_json=arguments.json)


if __name__ == "__main__":
    main()
