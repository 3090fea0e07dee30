"""Does the interval of an arm's end that `plan` tells hold what comes, and is the best arm as probable as it says?

    python benchmarks/plan_ends.py FOLDER_OR_FILES... [--runs 8] [--json]

Every file is a sweep of `--runs` series at most, evenly spread, that have gone as far as half of them have. Cut at a
quarter and at a half of that compute they are planned to it as arms of their own. What came is the mean of the last
tenth of a run's evaluations up to there (30 at most). Winkler's score is the interval's width and 20 times what lies
outside of it; shares of the range of rewards. `told` is what is told of an end; `joint` are the draws by which arms are
chosen, of curves that inform one another, with the noise of what came added; `alone` is each run's own forecast, and
`beside` that with the others, as they stood, as its prior.

P(best) is of curves, and no curve's end is seen: which arm measures highest also depends on the noise of the mean that
is its end. So the same draws with that noise added say how probable each arm is to measure highest (`as`: "measured"),
and this is what can be held against what came. `as`: "told" is `p_best` as it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np
from real_curves import read_sets, some

from forecurve.science import Curve, Estimate, Fit, fit, plan, predict_ending, sibling_prior
from forecurve.science.fitting.horizon import evaluation_noise
from forecurve.science.fitting.outcome import stood_at, tail_size
from forecurve.science.planning.standing import Standing, enter, standing
from forecurve.science.planning.worth import p_best
from forecurve.science.values import estimate_of

SHARES = (0.25, 0.5)
EDGES = (0.0, 0.05, 0.2, 0.5, 0.8, 1.0)
LEAST_SEEN, LEAST_LEFT, OUTSIDE, SEED = 5, 3, 20.0, 7


class Seen(NamedTuple):
    """A run as it stood, the mean of the evaluations that are its end, and how many these are."""

    early: Curve
    end: float
    size: int


class Judged(NamedTuple):
    """One end that was told."""

    share: float
    by: str
    held: bool
    width: float
    winkler: float
    error: float


class Best(NamedTuple):
    """Of one arm: P(best), whether it was, and of what; arms that ended alike share it."""

    share: float
    of: str
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
    seen = [one for one in (_seen(curve, share, horizon) for curve in curves) if one is not None]
    if len(seen) < 2:
        return
    fits = {str(at): fit(one.early) for at, one in enumerate(seen)}
    told = plan(fits, budget=2 * horizon * len(fits), horizon=horizon).arms
    joint = _measured(list(fits.values()), horizon, [one.size for one in seen])
    odds = p_best(joint.ends)
    highest = max(one.end for one in seen)
    share_of_best = 1 / sum(one.end == highest for one in seen)
    for at, (arm, one) in enumerate(zip(told, seen, strict=True)):
        came = share_of_best if one.end == highest else 0.0
        yield Best(share, "told", arm.p_best, came)
        yield Best(share, "measured", float(odds[at]), came)
        yield _judged(share, "told", arm.end, one)
        yield _judged(share, "joint", estimate_of(joint.ends[:, at]), one)
        yield _judged(share, "alone", predict_ending(fits[arm.arm], horizon), one)
        prior = sibling_prior([other for name, other in fits.items() if name != arm.arm], finished=0)
        yield _judged(share, "beside", predict_ending(fit(one.early, prior=prior), horizon), one)


def _seen(curve: Curve, share: float, horizon: float) -> Seen | None:
    seen, upto = np.searchsorted(curve.compute, [share * horizon, horizon * (1 + 1e-9)], side="right")
    end = stood_at(curve.compute, curve.reward, horizon)
    if end is None or seen < LEAST_SEEN or curve.points - seen < LEAST_LEFT:
        return None
    return Seen(curve.until(float(curve.compute[seen - 1])), end, tail_size(int(upto)))


def _measured(fits: list[Fit], horizon: float, sizes: list[int]) -> Standing:
    """Where the arms stand, with the noise of the mean of so many evaluations in each end, (K,)."""
    here = standing([enter(one, horizon) for one in fits], horizon)
    sd = np.sqrt([evaluation_noise(one) / size for one, size in zip(fits, sizes, strict=True)])
    noise = sd * np.random.default_rng(SEED).standard_normal(here.ends.shape)
    return replace(here, ends=np.clip(here.ends + noise, *fits[0].curve.bounds))


def _judged(share: float, by: str, said: Estimate, seen: Seen) -> Judged:
    outside = max(said.lower - seen.end, seen.end - said.upper, 0.0)
    width, scale = said.width, seen.early.width
    error = abs(said.median - seen.end) / scale
    return Judged(share, by, outside == 0, width / scale, (width + OUTSIDE * outside) / scale, error)


def _rows(found: list[Judged]) -> Iterator[dict[str, Any]]:
    for share in SHARES:
        for by in ("told", "joint", "alone", "beside"):
            group = [one for one in found if (one.share, one.by) == (share, by)]
            if group:
                means = {name: float(np.mean([getattr(one, name) for one in group])) for name in Judged._fields[2:]}
                yield {"seen": share, "by": by, "number": len(group), **means}


def _rows_of_best(found: list[Best]) -> Iterator[dict[str, Any]]:
    for share, of in product(SHARES, ("told", "measured")):
        every = [one for one in found if (one.share, one.of) == (share, of)]
        for low, high in (*pairwise(EDGES), (0.0, 1.0)):
            group = [one for one in every if low <= one.said and (one.said < high or high == 1)]
            if group:
                said, came = (np.array([getattr(one, name) for one in group], float) for name in ("said", "came"))
                row = {"seen": share, "as": of, "P(best)": f"{low:g} to {high:g}", "number": len(group)}
                yield {**row, "said": said.mean(), "came": came.mean(), "brier": ((said - came) ** 2).mean()}


if __name__ == "__main__":
    main()
