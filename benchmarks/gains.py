"""What advice says of a gain, on recorded curves: is it as probable as that?

    python benchmarks/gains.py FOLDER_OR_FILES... [--runs 6] [--json]

Every file is one set, of which `--runs` series are taken, evenly spread. Of what each run had spent at 10, 25, 50 and
75 % it is forecast by itself, and with the others of its set as past runs, and what `advise` goes by is held against
what came: the mean of its last tenth of evaluations (three at least) less that of as many about the present. Both are
noisy, so that noise as large is added to what is said. `gain below .01`: of those that say so with a probability in a
range its mean, and the share that came so; `held` is how often the 90 % interval held what came.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np
from real_curves import read_sets, some

from forecurve.science import Curve, Fit, Siblings, fit
from forecurve.science.advice.case import case_of
from forecurve.science.backtesting.one_run import early_part
from forecurve.science.fitting.horizon import evaluation_noise
from forecurve.science.past.hindsight import Hindsight
from forecurve.science.posterior.evenly import Axis, normals

SHARES = (0.1, 0.25, 0.5, 0.75)
LEAST, DELTA = 4, 0.01
EDGES = (0.0, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0)


class Said(NamedTuple):
    """Of one forecast: P(gain < delta), its mean, whether the interval held the gain that came; shares of the range."""

    past: str
    p_small: float
    expected: float
    came: float
    held: bool


def main() -> None:
    parser = common.parser(__doc__, runs=6)
    parser.add_argument("files", nargs="+", type=Path, help="files of curves, or folders of them")
    options = parser.parse_args()
    found = [one for _, series in read_sets(options.files) for one in _of_set(some(series, options.runs))]
    common.show(list(_rows(found)), as_json=options.json)


def _of_set(curves: list[Curve]) -> Iterator[Said]:
    siblings = Siblings(curves)
    for at, curve in enumerate(curves):
        for share in SHARES:
            early = early_part(curve, share)
            if early is None or min(early.points, curve.points - early.points) < LEAST:
                continue
            yield from _judged("none", curve, fit(early), None)
            if len(curves) > 1:
                told = fit(early, prior=siblings.prior(at))
                yield from _judged("others", curve, told, siblings.hindsight(told, curve.now, at))


def _judged(past: str, curve: Curve, found: Fit, hindsight: Hindsight | None) -> Iterator[Said]:
    if found.withheld:
        return
    half, seen = max(3, curve.points // 10) // 2, found.points
    about = slice(max(seen - 1 - half, 0), seen + half)
    last = slice(-max(3, min(30, curve.points // 10)), None)
    came = float(curve.reward[last].mean() - curve.reward[about].mean())
    sizes = [len(curve.reward[part]) for part in (about, last)]
    noise = np.sqrt(evaluation_noise(found) * sum(1 / size for size in sizes))
    said = case_of(found, None, curve.now, None, None, None, hindsight).told
    said = said + noise * normals(Axis.NOISE, len(said))
    lower, upper = np.quantile(said, (0.05, 0.95))
    p_small = float((said < DELTA * curve.width).mean())
    yield Said(past, p_small, float(said.mean()) / curve.width, came / curve.width, bool(lower <= came <= upper))


def _rows(found: list[Said]) -> Iterator[dict[str, Any]]:
    for past in ("none", "others"):
        for low, high in (*pairwise(EDGES), (0.0, 1.0)):
            group = [
                one for one in found if one.past == past and low <= one.p_small and (one.p_small < high or high == 1)
            ]
            if group:
                yield _row(past, f"{low:g} to {high:g}", group)


def _row(past: str, said: str, group: list[Said]) -> dict[str, Any]:
    came = np.array([one.came for one in group])
    return {
        "past runs": past,
        "said": said,
        "number": len(group),
        "gain below .01": float(np.mean([one.p_small for one in group])),
        "came so": float((came < DELTA).mean()),
        "expected gain": float(np.mean([one.expected for one in group])),
        "came": float(came.mean()),
        "held": float(np.mean([one.held for one in group])),
    }


if __name__ == "__main__":
    main()
