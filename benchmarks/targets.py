"""When a run reaches a target, on recorded curves: how good are the probability and the interval of that?

    python benchmarks/targets.py FOLDER_OR_FILES... [--runs 14] [--fractions 0.1,0.25,0.5] [--json]

Every file is one set, of which `--runs` series are taken, evenly spread. Of what each run had spent at these shares it
is forecast by itself, and with the others of its set as past runs. It is asked when it will be .02, .05, .1 and .2 of
the range of rewards above the mean of its last three evaluations, as far as it has not been there. It has, where the
mean of a tenth of its evaluations, three at least, that lie about one is there.

`Brier` is the mean square of the probability that it is there before the run ends less what came, 1 or 0: ours, of the
sigmoid's posterior alone, of the paper's procedure, whose one curve is there or not, and of the last value (never).
`held`: the interval of the compute at which it is there holds it, `early` and `late` where it came if not; what did not
come before the end is held by an interval that does not end before. `below .05` and `above .95`: how many were said to
be there by the end with such a probability, and how many of them were. Sets count alike.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np
from real_curves import read_sets, some

from forecurve.science import Curve, CurveError, Fit, Siblings, fit
from forecurve.science.backtesting.one_run import early_part
from forecurve.science.backtesting.paper import paper_fit, scaled_grid
from forecurve.science.past.hindsight import Hindsight
from forecurve.science.posterior.sigmoid import compute_at

ABOVE = (0.02, 0.05, 0.1, 0.2)
LATEST = 3


class Asked(NamedTuple):
    """One target: of which set, known from what, at which share; when it was reached, inf for not; what was said."""

    file: str
    past: str
    share: float
    reached: float
    by_end: dict[str, float]
    lower: float
    upper: float


def main() -> None:
    parser = common.parser(__doc__, runs=14)
    parser.add_argument("files", nargs="+", type=Path, help="files of curves, or folders of them")
    parser.add_argument("--fractions", default="0.1,0.25,0.5")
    options = parser.parse_args()
    shares = [float(text) for text in options.fractions.split(",")]
    found: list[Asked] = []
    for file, series in read_sets(options.files):
        began = time.perf_counter()
        judged = list(_of_set(file.stem, some(series, options.runs), shares))
        common.note(f"{file.name}: {len(judged)} targets, {time.perf_counter() - began:.0f} s")
        found += judged
    groups = {(past, share): [] for past in ("none", "others") for share in shares}
    for one in found:
        groups[one.past, one.share].append(one)
    common.show([_row(*key, group) for key, group in groups.items() if group], as_json=options.json)


def _of_set(name: str, curves: list[Curve], shares: list[float]) -> Iterator[Asked]:
    siblings = Siblings(curves)
    for at, curve in enumerate(curves):
        for share in shares:
            early = early_part(curve, share)
            if early is None or early.points == curve.points:
                continue
            alone = fit(early)
            if not alone.withheld:
                yield from _of_forecast(name, "none", share, curve, alone, None)
            told = fit(early, prior=siblings.prior(at))
            if len(curves) > 1 and not told.withheld:
                yield from _of_forecast(name, "others", share, curve, told, siblings.hindsight(told, curve.now, at))


def _of_forecast(
    file: str, past: str, share: float, curve: Curve, found: Fit, hindsight: Hindsight | None
) -> Iterator[Asked]:
    seen, level = found.points, _level(curve)
    here = float(curve.reward[:seen][-LATEST:].mean())
    for above in ABOVE:
        target = here + above * curve.width
        if target >= curve.bounds[1] or level[seen - 1] >= target:
            continue
        when = found.compute_to_reach(target, curve.now, hindsight)
        said = {
            "ours": when.p_by_budget or 0.0,
            "sigmoid": _by_sigmoid(found, target, curve.now),
            "paper": _by_paper(found.curve, target, curve.now),
            "last value": 0.0,
        }
        yield Asked(file, past, share, _first_at(curve, level, seen, target), said, when.lower, when.upper)


def _level(curve: Curve) -> np.ndarray:
    """The mean of the evaluations about each, (N,)."""
    half = max(LATEST, curve.points // 10) // 2
    sums, at = np.concatenate([[0.0], np.cumsum(curve.reward)]), np.arange(curve.points)
    first, after = np.maximum(at - half, 0), np.minimum(at + half + 1, curve.points)
    return (sums[after] - sums[first]) / (after - first)


def _first_at(curve: Curve, level: np.ndarray, seen: int, target: float) -> float:
    """Compute at which the level is there for the first time, between two evaluations; inf for never."""
    there = np.flatnonzero(level[seen:] >= target)
    if not len(there):
        return float("inf")
    at = seen + int(there[0])
    return float(np.interp(target, level[at - 1 : at + 1], curve.compute[at - 1 : at + 1]))


def _by_sigmoid(found: Fit, target: float, end: float) -> float:
    d = found.all_draws
    return float((compute_at(target, d.A, d.B, d.C_mid, d.R0) <= end).mean())


def _by_paper(early: Curve, target: float, end: float) -> float:
    try:
        grid = scaled_grid(float(early.reward[0]), end, early.bounds)
        return float(paper_fit(early, grid=grid).reward_at(end)[0] >= target)
    except CurveError:
        return 0.0


def _row(past: str, share: float, group: list[Asked]) -> dict[str, Any]:
    of_set = Counter(one.file for one in group)
    weight = np.array([1 / of_set[one.file] for one in group])
    weight /= weight.sum()
    when = np.array([one.reached for one in group])
    came = np.isfinite(when)
    early, late = (when < [one.lower for one in group]), (when > [one.upper for one in group])
    row: dict[str, Any] = {"past runs": past, "seen": share, "sets": len(of_set), "targets": len(group)}
    row["reached"] = float(weight @ came)
    for method in group[0].by_end:
        said = np.array([one.by_end[method] for one in group])
        row[f"Brier {method}"] = float(weight @ (said - came) ** 2)
    ours, alone = (np.array([one.by_end[method] for one in group]) for method in ("ours", "sigmoid"))
    row |= {"held": float(weight @ ~(early | late)), "early": float(weight @ early), "late": float(weight @ late)}
    for name, said in (("", ours), ("sigmoid ", alone)):
        row[f"{name}below .05"] = _so_many(came, said < 0.05)
        row[f"{name}above .95"] = _so_many(came, said > 0.95)
    return row


def _so_many(came: np.ndarray, of: np.ndarray) -> str:
    return f"{int(came[of].sum())} of {int(of.sum())}"


if __name__ == "__main__":
    main()
