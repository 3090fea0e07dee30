"""Speed of a fit at N = 100 evaluations beside the paper's 7,100 `curve_fit` calls, on one core, in one go.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/speed.py [--runs N] [--points 100] [--json]

A synthetic run (A .61, B 1.9, C_mid 2500, white noise .0035). `--runs` is how often the paper's procedure is timed; the
others are repeated for two seconds each, and the last fifth of the run is streamed point by point. Medians are shown.
"never worse" compares sums of squared residuals with the grid's winner on 40 curves of three lengths, R0 fixed at the
same value for both.

Asked: converged point fit 5,000x, full posterior with band 500x, one streamed point 10,000x.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import common
import numpy as np

from forecurve.science import Curve, fit, least_squares, paper_fit


def main() -> None:
    parser = common.parser(__doc__, runs=3)
    parser.add_argument("--points", type=int, default=100)
    options = parser.parse_args()
    curve = _curve(0, options.points, 16_000.0)
    reference = float(np.median([paper_fit(curve, exact=True).seconds for _ in range(options.runs)]))
    rows = [_row("paper's procedure, 7,100 curve_fit", reference, reference, None)]
    rows += [_row(name, _median(work), reference, asked) for name, work, asked in _works(curve)]
    usual, longest = _streamed(curve)
    rows.append(_row("one streamed point (fit.update), median", usual, reference, 10_000.0))
    rows.append(_row("one streamed point, the longest (a new grid)", longest, reference, None))
    worse, most = _against_the_grid()
    if options.json:
        common.answer({"points": options.points, "rows": rows, "sse": {"worse": worse, "largest_ratio": most}})
        return
    common.table(list(rows[0]), (list(row.values()) for row in rows))
    print(f"\nsum of squares: worse than the grid on {worse} of 40 curves (asked: 0); largest ratio {most:.6f}")


def _curve(seed: int, points: int, last: float) -> Curve:
    compute = np.linspace(0, last, points + 1)[1:]
    rng = np.random.default_rng(seed)
    reward = 0.2 + 0.41 / (1 + (2500.0 / compute) ** 1.9) + rng.normal(0, 0.0035, points)
    return Curve(compute, np.clip(reward, 0, 1), unit="GPU-hours", prompts=1000, samples=16)


def _works(curve: Curve) -> Iterator[tuple[str, Callable[[], Any], float | None]]:
    start = float(curve.reward[0])
    yield "point fit, converged (least_squares, R0 fixed)", lambda: least_squares(curve, R0=start), 5_000.0
    yield "point fit, converged (least_squares, R0 free)", lambda: least_squares(curve), 5_000.0
    yield "full posterior with band (fit + predict)", lambda: fit(curve).predict(32_000.0), 500.0


def _streamed(curve: Curve) -> tuple[float, float]:
    """Median and largest seconds of `fit.update`, point after point over the last fifth of the curve."""
    now = fit(curve.until(0.8 * curve.now))
    times = []
    for compute, reward in zip(curve.compute[now.points :], curve.reward[now.points :], strict=True):
        began = time.perf_counter()
        now = now.update((float(compute), float(reward)))
        times.append(time.perf_counter() - began)
    return float(np.median(times[1:])), max(times[1:])  # the first one lays the stream's foundations


def _median(work: Callable[[], Any], seconds: float = 2.0) -> float:
    work()  # whatever is compiled or cached on the first call
    times: list[float] = []
    until = time.perf_counter() + seconds
    while len(times) < 5 or time.perf_counter() < until:
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def _row(name: str, seconds: float, reference: float, asked: float | None) -> dict[str, Any]:
    ratio = reference / seconds
    return {
        "what": name,
        "milliseconds": 1000 * seconds,
        "times faster": ratio,
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
