""" "Decide at about C": is the ceiling known by then?

    python benchmarks/decide_at.py [FOLDER_OR_FILES...] [--runs N] [--seed S] [--json]

Runs are fitted by themselves where they had spent 5, 10 and 25 % (recorded ones 10, 25 and 50 %) and `decide_at` is
asked where the ceiling is not identified. From there on each is fitted again at up to 24 places, evenly spread in the
log of its evaluations, to see when it is. Without files the runs are simulated: sigmoids as far apart as ScaleRL's
Table 1, 80 evaluations of 1,000 prompts x 16, with white noise and with noise that wanders (60 runs). Of files
`--runs` series are taken each (6), evenly spread.

`within` are those told a compute before the run's end: `known then` how many of them were identified at the first
place from there on, `known by the end` at any; `ratio` is the compute that it took over what was said (quartiles; a
dash where it was not by the end). `beyond`: of those told a later one, or none, how many were identified all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np
from real_curves import read_sets, some

from forecurve.science import Curve, fit
from forecurve.science.backtesting.one_run import early_part
from forecurve.science.simulator.sweeps import SPREADS, synthetic_run

SIMULATED, RECORDED = (0.05, 0.1, 0.25), (0.1, 0.25, 0.5)
LEAST, PLACES = 4, 24


class Asked(NamedTuple):
    """One question: of which runs, at which share; what was said and when the run ends; where it was looked again and
    whether the ceiling was identified there."""

    runs: str
    share: float
    said: float
    end: float
    looked: list[tuple[float, bool]]

    @property
    def known(self) -> float:
        return next((compute for compute, known in self.looked if known), np.inf)

    @property
    def known_then(self) -> bool:
        return next((known for compute, known in self.looked if compute >= self.said), False)


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("files", nargs="*", type=Path, help="files of curves, or folders of them")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    runs = (
        _recorded(options.files, options.runs or 6) if options.files else _simulated(options.runs or 60, options.seed)
    )
    shares = RECORDED if options.files else SIMULATED
    found = [one for name, curve in runs for share in shares for one in _asked(name, curve, share)]
    found.sort(key=lambda one: (one.runs, one.share))
    rows = [_row(*key, list(group)) for key, group in groupby(found, key=lambda one: (one.runs, one.share))]
    common.show([*rows, _row("all", None, found)], as_json=options.json)


def _simulated(runs: int, seed: int) -> Iterator[tuple[str, Curve]]:
    for at in range(runs):
        rng, noise = np.random.default_rng([seed, at]), "ar" if at % 2 else "white"
        theta = SPREADS["table"].draw(rng, 1)[0]
        yield f"{noise} noise", synthetic_run(theta, 0.2, rng, horizon=16_000.0, evaluations=80, noise=noise).curve


def _recorded(files: list[Path], runs: int) -> Iterator[tuple[str, Curve]]:
    for _, series in read_sets(files):
        for curve in some(series, runs):
            yield "recorded", curve


def _asked(name: str, curve: Curve, share: float) -> Iterator[Asked]:
    part = early_part(curve, share)
    if part is None or min(part.points, curve.points - part.points) < LEAST:
        return
    early = fit(part)
    if early.withheld or early.ceiling_identified:
        return
    places = np.unique(np.geomspace(part.points + 1, curve.points, PLACES).astype(int)).tolist()
    looked = [(float(curve.compute[upto - 1]), _known(_first(curve, upto))) for upto in places]
    yield Asked(name, share, early.decide_at() or np.inf, curve.now, looked)


def _first(curve: Curve, evaluations: int) -> Curve:
    return curve.until(float(curve.compute[evaluations - 1]))


def _known(curve: Curve) -> bool:
    found = fit(curve)
    return found.ceiling_identified and not found.withheld


def _row(runs: str, share: float | None, asked: list[Asked]) -> dict[str, Any]:
    within = [one for one in asked if one.said <= one.end]
    beyond = [one for one in asked if one.said > one.end]
    ratio = np.sort([one.known / one.said for one in within])
    quartiles = [float(ratio[int(q * len(ratio))]) for q in (0.25, 0.5, 0.75)] if len(ratio) else []
    return {
        "runs": runs,
        "seen": share,
        "asked": len(asked),
        "within": len(within),
        "known then": sum(one.known_then for one in within),
        "known by the end": sum(one.known <= one.end for one in within),
        "ratio": ", ".join(f"{one:.2f}" if np.isfinite(one) else "-" for one in quartiles),
        "beyond": len(beyond),
        "known all the same": sum(one.known <= one.end for one in beyond),
    }


if __name__ == "__main__":
    main()
