"""Speed of a fit at N = 100 evaluations beside the paper's 7,100 `curve_fit` calls, on one core, in one go.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/speed.py [--runs N] [--points 100] [--json]

A synthetic run (A .61, B 1.9, C_mid 2500, white noise .0035). `--runs` rounds; in each the paper's procedure is timed
once, the others are repeated for half a second each, and the last fifth of the run is streamed point by point five
times. Medians of a round's times and of the rounds' ratios are shown: a machine that slows down slows both sides.
"never worse" compares sums of squared residuals with the grid's winner on 40 curves of three lengths, R0 fixed at the
same value for both.

Asked: converged point fit 5,000x, full posterior with band 500x, one streamed point 10,000x.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import common
import numpy as np

from forecurve.science import Curve, fit, least_squares, paper_fit
from forecurve.science.warm_up import warm_up

PAPER = "paper's procedure, 7,100 curve_fit"
R0_FIXED = "point fit, converged (least_squares, R0 fixed)"
R0_FREE = "point fit, converged (least_squares, R0 free)"
POSTERIOR = "full posterior with band (fit + predict)"
STREAMED = "one streamed point (fit.update), median"
LONGEST = "one streamed point, the longest (a new grid)"
ASKED: dict[str, float | None] = {
    PAPER: None,
    R0_FIXED: 5_000.0,
    R0_FREE: 5_000.0,
    POSTERIOR: 500.0,
    STREAMED: 10_000.0,
    LONGEST: None,
}


def main() -> None:
    parser = common.parser(__doc__, runs=5)
    parser.add_argument("--points", type=int, default=100)
    options = parser.parse_args()
    warm_up()
    curve = _curve(0, options.points, 16_000.0)
    rounds = [_round(curve) for _ in range(options.runs)]
    rows = [_row(name, asked, rounds) for name, asked in ASKED.items()]
    worse, most = _against_the_grid()
    if options.json:
        common.answer({"points": options.points, "rows": rows, "sse": {"worse": worse, "largest_ratio": most}})
        return
    common.table(list(rows[0]), (list(row.values()) for row in rows))
    print(f"\nsum of squares: worse than the grid on {worse} of 40 curves (asked: 0); largest ratio {most:.6f}")


def _round(curve: Curve) -> dict[str, float]:
    """Seconds of everything, one after the other."""
    start = float(curve.reward[0])
    usual, longest = _streamed(curve)
    return {
        PAPER: paper_fit(curve, exact=True).seconds,
        R0_FIXED: _median(lambda: least_squares(curve, R0=start)),
        R0_FREE: _median(lambda: least_squares(curve)),
        POSTERIOR: _median(lambda: fit(curve).predict(32_000.0)),
        STREAMED: usual,
        LONGEST: longest,
    }


def _curve(seed: int, points: int, last: float) -> Curve:
    compute = np.linspace(0, last, points + 1)[1:]
    rng = np.random.default_rng(seed)
    reward = 0.2 + 0.41 / (1 + (2500.0 / compute) ** 1.9) + rng.normal(0, 0.0035, points)
    return Curve(compute, np.clip(reward, 0, 1), unit="GPU-hours", prompts=1000, samples=16)


def _streamed(curve: Curve) -> tuple[float, float]:
    """Median and largest seconds of `fit.update`, point after point over the last fifth of the curve, five times."""
    times: list[float] = []
    for _ in range(5):
        now = fit(curve.until(0.8 * curve.now))
        points = list(zip(curve.compute[now.points :].tolist(), curve.reward[now.points :].tolist(), strict=True))
        now = now.update(points[0])  # the first one lays the stream's foundations
        for point in points[1:]:
            began = time.perf_counter()
            now = now.update(point)
            times.append(time.perf_counter() - began)
    return float(np.median(times)), max(times)


def _median(work: Callable[[], Any], seconds: float = 0.5) -> float:
    work()  # whatever is compiled or cached on the first call
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < until:
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def _row(name: str, asked: float | None, rounds: list[dict[str, float]]) -> dict[str, Any]:
    ratios = [one[PAPER] / one[name] for one in rounds]
    ratio = float(np.median(ratios))
    return {
        "what": name,
        "milliseconds": 1000 * float(np.median([one[name] for one in rounds])),
        "times faster": ratio,
        "least": min(ratios),
        "most": max(ratios),
        "asked": asked,
        "met": None if asked is None else "yes" if ratio >= asked else "NO",
    }


def _against_the_grid() -> tuple[int, float]:
    """(curves on which least squares is worse than the paper's grid, largest ratio of the sums of squares)."""
    ratios = []
    for seed in range(40):
        curve = _curve(seed, (12, 40, 100)[seed % 3], (2_500.0, 8_000.0, 16_000.0)[seed % 3])
        start = float(curve.reward[0])
        ratios.append(least_squares(curve, R0=start).sse / paper_fit(curve, R0=start).sse)
    return sum(ratio > 1 + 1e-9 for ratio in ratios), max(ratios)


if __name__ == "__main__":
    main()
