"""The band of an evaluation to come, on recorded curves: how often does it hold the next one, and the next five?

    python benchmarks/next_evaluations.py FOLDER_OR_FILES... [--runs 8] [--json]

Every file is one set, of which `--runs` series are taken, evenly spread. Each run is fitted by itself, without past
runs, after a quarter, a half and three quarters of its evaluations, 6 at least; `predict_evaluation` is held against
those that follow. `below` and `above` are where the next one lay if not within. Asked: 0.9.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np
from real_curves import read_sets, some

from forecurve.science import Curve, fit

SHARES = (0.25, 0.5, 0.75)
LEAST, AHEAD = 6, 5


class Judged(NamedTuple):
    """One forecast: the share of the run's evaluations it has seen, how many they are, what their noise is known from;
    whether those that came lie below and above the band, each (m,)."""

    share: float
    seen: int
    source: str
    below: np.ndarray
    above: np.ndarray


def main() -> None:
    parser = common.parser(__doc__, runs=8)
    parser.add_argument("files", nargs="+", type=Path, help="files of curves, or folders of them")
    options = parser.parse_args()
    found: list[Judged] = []
    for file, series in read_sets(options.files):
        judged = [one for curve in some(series, options.runs) for one in _judged(curve)]
        common.note(f"{file.name}: {len(judged)} forecasts")
        found += judged
    groups = {"all": found}
    groups |= {f"after {share:g} of the run": [one for one in found if one.share == share] for share in SHARES}
    for low, high in pairwise((LEAST, 12, 25, 60)):
        groups[f"of {low} to {high - 1} evaluations"] = [one for one in found if low <= one.seen < high]
    groups["of 60 evaluations and more"] = [one for one in found if one.seen >= 60]
    sources = sorted({one.source for one in found})
    groups |= {f"noise by {source}": [one for one in found if one.source == source] for source in sources}
    common.show([_row(name, group) for name, group in groups.items() if group], as_json=options.json)


def _judged(curve: Curve) -> Iterator[Judged]:
    for share in SHARES:
        seen = round(share * curve.points)
        if not LEAST <= seen < curve.points:
            continue
        known = curve.until(float(curve.compute[seen - 1]))
        came = slice(seen, seen + AHEAD)
        band, reward = fit(known).predict_evaluation(curve.compute[came]), curve.reward[came]
        yield Judged(share, seen, known.noise.source, reward < band.lower90, reward > band.upper90)


def _row(name: str, group: list[Judged]) -> dict[str, Any]:
    below, above = (
        np.array([one[0] for one in sides]) for sides in zip(*((j.below, j.above) for j in group), strict=True)
    )
    five = np.concatenate([one.below | one.above for one in group])
    return {
        "forecasts": name,
        "number": len(group),
        "next held": float(1 - (below | above).mean()),
        "next five held": float(1 - five.mean()),
        "below": float(below.mean()),
        "above": float(above.mean()),
    }


if __name__ == "__main__":
    main()
