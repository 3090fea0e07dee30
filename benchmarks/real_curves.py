"""Backtest on recorded curves: forecasts from 10, 25 and 50 % of each run, beside the paper's procedure.

    python benchmarks/real_curves.py FOLDER_OR_FILES... [--prior siblings] [--runs N] [--json]

Every file is one set. Ours (median and 90 % interval for the mean of the last 10 % of the evaluations; the other series
of the file are the past runs that give the prior, adjust the interval from 3 on and scale it from 9 on), the paper's
grid of A.5 scaled to the run, a power law and the last value all see the same points. `--runs N` takes N series a
file, evenly spread.

Asked: MAE below the paper's at every fraction; MAE at 25 % below the paper's at 50 %; coverage 0.80 to 0.97 with
conformal scaling where there are 9 or more past runs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import common
import numpy as np

from forecurve.curve_cells import CurveFileError
from forecurve.curve_files import read_curves
from forecurve.curve_formats import FORMATS
from forecurve.science import Curve
from forecurve.science.backtesting.backtest import BASELINES, backtest
from forecurve.science.backtesting.one_run import OURS
from forecurve.science.backtesting.rows import Backtest, Summary
from forecurve.science.past.reach import RANKS_FROM

COLUMNS = ("set", "seen", "method", "n", "MAE", "median", "max", "posterior MAE", "coverage", "width", "posterior's",
           "its width", "withheld", "past runs")  # fmt: skip


def main() -> None:
    parser = common.parser(__doc__)
    parser.add_argument("files", nargs="+", type=Path, help="files of curves, or folders of them")
    parser.add_argument("--prior", choices=("none", "paper", "siblings"), default="siblings")
    parser.add_argument("--fractions", default="0.1,0.25,0.5")
    options = parser.parse_args()
    fractions = [float(text) for text in options.fractions.split(",")]
    sets: dict[str, Backtest] = {}
    for file, series in read_sets(options.files):
        began = time.perf_counter()
        curves = some(series, options.runs)
        sets[file.stem] = backtest(curves, fractions=fractions, prior=options.prior, baselines=BASELINES)
        common.note(f"{file.name}: {len(curves)} series, {time.perf_counter() - began:.0f} s")
    if options.json:
        common.answer({name: [one.to_dict() for one in found.summary] for name, found in sets.items()})
        return
    common.table(COLUMNS, (_row(name, one, found) for name, found in sets.items() for one in found.summary))
    print()
    common.table(
        ("set", "level", "asked", "reached", "met"), (row for name in sets for row in _levels(name, sets[name]))
    )


def read_sets(paths: list[Path]) -> Iterator[tuple[Path, list[Curve]]]:
    for path in paths:
        if not path.is_dir():
            yield path, read_curves(path)
            continue
        for file in sorted(file for file in path.iterdir() if file.suffix.lower() in FORMATS):
            try:
                yield file, read_curves(file)
            except CurveFileError as error:  # what lies beside them, such as an index of them
                common.note(f"{file.name} passed over: {error}")


def some(curves: list[Curve], most: int | None) -> list[Curve]:
    if most is None or len(curves) <= most:
        return curves
    return [curves[at] for at in np.linspace(0, len(curves) - 1, most).astype(int)]


def _row(name: str, one: Summary, found: Backtest) -> tuple[Any, ...]:
    return (
        name, one.fraction, one.method, one.n, one.mae, one.median, one.max, one.raw_mae, one.coverage, one.width,
        one.raw_coverage, one.raw_width, one.withheld, _past_runs(found, one),
    )  # fmt: skip


def _past_runs(found: Backtest, one: Summary) -> int | None:
    """The fewest past runs that a scaled interval of this group rests on; None where one is not scaled."""
    if one.method != OURS:
        return None
    labels = [row.calibration or "" for row in found.rows if row.method == OURS and row.fraction == one.fraction]
    counts = [int(label.split("(")[1].split()[0]) if "(" in label else 0 for label in labels if label]
    return min(counts) if counts and min(counts) else None


def _levels(name: str, found: Backtest) -> Iterator[tuple[Any, ...]]:
    by = {(one.fraction, one.method): one for one in found.summary}
    for fraction in dict.fromkeys(one.fraction for one in found.summary):
        ours, paper = by[fraction, OURS], by[fraction, "paper-grid"]
        if ours.mae is None or paper.mae is None:
            continue
        yield name, f"MAE at {fraction:g}, paper's", f"< {paper.mae:.4f}", ours.mae, _word(ours.mae < paper.mae)
        if (_past_runs(found, ours) or 0) >= RANKS_FROM and ours.coverage is not None:
            fine = 0.80 <= ours.coverage <= 0.97
            yield name, f"coverage at {fraction:g}, conformal", "0.80 to 0.97", ours.coverage, _word(fine)
    early, late = by.get((0.25, OURS)), by.get((0.5, "paper-grid"))
    if early and late and early.mae is not None and late.mae is not None:
        yield name, "MAE at 0.25, paper's at 0.5", f"< {late.mae:.4f}", early.mae, _word(early.mae < late.mae)


def _word(met: bool) -> str:
    return "yes" if met else "NO"


if __name__ == "__main__":
    main()
