"""Does the interval of an arm's end that `plan` tells hold what comes, and is the best arm as probable as it says?

    python benchmarks/plan_ends.py FOLDER_OR_FILES... [--runs 8] [--json]

Every file is a sweep of `--runs` series at most, evenly spread, that have gone as far as half of them have. Cut at a
quarter and at a half of that compute they are planned to it as arms of their own. What came is the mean of the last
tenth of a run's evaluations up to there (30 at most), whose noise is added to the interval. Winkler's score is the
interval's width and 20 times what lies outside of it; shares of the range of rewards. `forecast` is the run's own
forecast of the same (`predict_ending`), for comparison.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np
from real_curves import read_sets, some

from forecurve.science import Curve, Estimate, fit, plan, predict_ending
from forecurve.science.fitting.horizon import evaluation_noise
from forecurve.science.fitting.outcome import stood_at, tail_size

SHARES = (0.25, 0.5)
EDGES = (0.0, 0.05, 0.2, 0.5, 0.8, 1.0)
LEAST_SEEN, LEAST_LEFT, OUTSIDE, SDS = 5, 3, 20.0, 1.645


class Judged(NamedTuple):
    """One end that was told."""

    share: float
    by: str
    held: bool
    width: float
    winkler: float
    error: float


class Best(NamedTuple):
    """Of one arm: P(best) that was told, and whether it was; arms that ended alike share it."""

    share: float
    said: float
    came: float


def main() -> None:
    parser = common.parser(__doc__, runs=8)
    parser.add_argument("files", nargs="+", type=Path, help="files of curves, or folders of them")
    options = parser.parse_args()
    sets = [some(series, options.runs) for _, series in read_sets(options.files)]
    found = [one for curves in sets for share in SHARES for one in _of_sweep(curves, share)]
    ends, bests = ([one for one in found if isinstance(one, kind)] for kind in (Judged, Best))
    if options.json:
        common.answer({"ends": list(_rows(ends)), "best": list(_rows_of_best(bests))})
        return
    common.show(list(_rows(ends)), as_json=False)
    common.show(list(_rows_of_best(bests)), as_json=False)


def _of_sweep(curves: list[Curve], share: float) -> Iterator[Judged | Best]:
    horizon = float(np.median([curve.now for curve in curves]))
    pairs = [(_early(curve, share * horizon), _end(curve, horizon)) for curve in curves]
    seen = [(early, end) for early, end in pairs if early is not None and end is not None]
    if len(seen) < 2:
        return
    arms = {str(at): early for at, (early, _) in enumerate(seen)}
    planned = {arm.arm: arm for arm in plan(arms, budget=2 * horizon * len(arms), horizon=horizon).arms}
    ends = [came for _, came in seen]
    best = {max(ends): 1 / ends.count(max(ends))}
    for at, (early, came) in enumerate(seen):
        alone = fit(early)
        noise = SDS * np.sqrt(evaluation_noise(alone) / tail_size(early.points))
        yield _judged(share, "plan", planned[str(at)].end, came, noise, early.width)
        yield Best(share, planned[str(at)].p_best, best.get(came, 0.0))
        yield _judged(share, "forecast", predict_ending(alone, horizon), came, 0.0, early.width)


def _early(curve: Curve, upto: float) -> Curve | None:
    seen = int(np.searchsorted(curve.compute, upto, side="right"))
    enough = seen >= LEAST_SEEN and curve.points - seen >= LEAST_LEFT
    return curve.until(float(curve.compute[seen - 1])) if enough else None


def _end(curve: Curve, horizon: float) -> float | None:
    return stood_at(curve.compute, curve.reward, horizon)


def _judged(share: float, by: str, said: Estimate, came: float, noise: float, width: float) -> Judged:
    lower = said.median - np.hypot(said.median - said.lower, noise)
    upper = said.median + np.hypot(said.upper - said.median, noise)
    outside = max(lower - came, came - upper, 0.0)
    score = (upper - lower + OUTSIDE * outside) / width
    return Judged(share, by, outside == 0, (upper - lower) / width, score, abs(said.median - came) / width)


def _rows(found: list[Judged]) -> Iterator[dict[str, Any]]:
    for share in SHARES:
        for by in ("plan", "forecast"):
            group = [one for one in found if (one.share, one.by) == (share, by)]
            if group:
                means = {name: float(np.mean([getattr(one, name) for one in group])) for name in Judged._fields[2:]}
                yield {"seen": share, "by": by, "number": len(group), **means}


def _rows_of_best(found: list[Best]) -> Iterator[dict[str, Any]]:
    for share in SHARES:
        for low, high in (*pairwise(EDGES), (0.0, 1.0)):
            group = [one for one in found if one.share == share and low <= one.said and (one.said < high or high == 1)]
            if group:
                said, came = (np.array([getattr(one, name) for one in group], float) for name in ("said", "came"))
                row = {"seen": share, "P(best)": f"{low:g} to {high:g}", "number": len(group)}
                yield {**row, "said": said.mean(), "came": came.mean(), "brier": ((said - came) ** 2).mean()}


if __name__ == "__main__":
    main()
