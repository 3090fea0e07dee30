"""What each piece of the forecast is worth on recorded curves: the same backtest without it.

    python benchmarks/ablation.py FOLDER_OR_FILES... [--without PIECE ...] [--prior siblings] [--runs 8] [--json]

Every file is one set, of which `--runs` series are taken, evenly spread. A piece is taken out by putting what does
nothing in its place, in a process of its own. Told is by how much the error and Winkler's score (width, plus twenty
times what is missed by) grow without it: the mean over sets of the logarithm of their ratio, in %, with its standard
error over sets, and the change of coverage. A set's error counts as .005 at least, its score as .02. Sets on which
nothing changes count too.

What a piece is for may be none of this: misfits are there for advice, the watch and attribution, and are judged by
benchmarks/misfit.py, advice.py and early_falls.py.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import common
import numpy as np
from real_curves import read_sets, some

from forecurve.science.backtesting.backtest import backtest
from forecurve.science.posterior.prior import FLAT

FRACTIONS = (0.1, 0.25, 0.5)
LEAST_ERROR, LEAST_SCORE = 0.005, 0.02
MISS = 20.0  # Winkler's, of a 90 % interval
NEXT_TO_NONE = 1e-12


class Put(NamedTuple):
    """What is put in place of a piece: module within forecurve.science, name, what it is instead."""

    module: str
    name: str
    instead: Any


def _none(*_: object, **__: object) -> None:
    return None


def _no_variance(reward: np.ndarray, variance: np.ndarray) -> np.ndarray:
    return np.zeros(len(reward))


def _all_told(fit: Any) -> np.ndarray:
    """As `untold`, of a run that past ones tell of: all of it."""
    told = import_module("forecurve.science.departures.drift").past_runs_tell(fit.prior)
    return np.full(len(fit.posterior.A), not told)


def _flat(fits: object, arm: object = None) -> Any:
    return FLAT


def _nothing_taken(wrong: object, correction: object) -> float:
    return 0.0


PIECES: dict[str, tuple[Put, ...]] = {
    "drift": (Put("departures.drift", "DRIFT_SD", 0.0),),
    "slower end": (Put("departures.other_rise", "P_BURR", NEXT_TO_NONE),),
    "late start": (Put("fitting.fit", "late_start", _none), Put("departures.other_rise", "late_start", _none)),
    "unlike its past": (
        Put("departures.drift", "untold", _all_told),
        Put("departures.other_rise", "untold", _all_told),
    ),
    "early regime": (Put("curves.wandering", "_EARLY_COUNTS", ()),),
    "rise in odds": (Put("posterior.usual_rise", "_USUAL", 0.0),),
    "usual exponents": (Put("posterior.prior", "USUAL_LOG_B", (0.61, 50.0)),),
    "spikes": (Put("curves.outliers", "spike_variance", _no_variance),),
    "stretches": (Put("curves.outliers", "stretch_variance", _no_variance),),
    "sizes by rewards": (
        Put("curves.curve", "answers_told_by", _none),
        Put("past.family", "answers_of_all", _none),
    ),
    "sizes by siblings": (Put("past.family", "answers_of_all", _none),),
    "misfits": (
        Put("fitting.fit", "find_misfit", _none),
        Put("fitting.fit", "degenerate", _none),
        Put("fitting.fit", "lost_all", _none),
        Put("fitting.fit", "lost_at_last", _none),
        Put("fitting.fit", "begins_late", _none),
    ),
    "siblings' curves": (Put("past.family", "parameter_prior", _flat),),
    "siblings' noise": (Put("past.family", "noise_known", _none),),
    "past errors": (Put("past.hindsight", "share_taken", _nothing_taken),),
    "likeness": (
        Put("past.analogues", "_NO_LIKENESS", 1 - NEXT_TO_NONE),
        Put("past.analogues", "_ENDS_NO_LIKENESS", 1 - NEXT_TO_NONE),
    ),
    "past ends": (Put("past.analogues", "_BY_ENDS", NEXT_TO_NONE),),
    "overstatement": (Put("past.analogues", "_NO_OVERSTATEMENT", 1 - NEXT_TO_NONE),),
}

Figures = dict[tuple[str, float], tuple[float, float, float, int]]  # (set, seen): error, score, held, forecasts


def main() -> None:
    parser = common.parser(__doc__, runs=8)
    parser.add_argument("files", nargs="+", type=Path, help="files of curves, or folders of them")
    parser.add_argument("--without", nargs="+", choices=list(PIECES), default=list(PIECES), metavar="PIECE")
    parser.add_argument("--prior", choices=("none", "siblings"), default="siblings")
    options = parser.parse_args()
    whole = _apart((), options)
    common.note(f"whole: {len(whole)} sets and shares")
    rows = []
    for name in options.without:
        found = _compared(name, whole, _apart(PIECES[name], options))
        said = ", ".join(f"{row['error %']:+.1f} %" for row in found)
        common.note(f"without {name}: error {said}")
        rows += found
    common.show(rows, as_json=options.json)


def _apart(puts: tuple[Put, ...], options: Any) -> Figures:
    """Measured in a new process: what was compiled, or kept, with a piece in it must not serve without it."""
    with (
        tempfile.TemporaryDirectory() as own,
        patch.dict(os.environ, {"NUMBA_CACHE_DIR": own} if puts else {}),
        ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool,
    ):
        return pool.submit(_measured, puts, options.files, options.runs, options.prior).result()


def _measured(puts: tuple[Put, ...], files: list[Path], runs: int, prior: str) -> Figures:
    for put in puts:
        module = import_module(f"forecurve.science.{put.module}")
        assert hasattr(module, put.name), f"{put.module} has no {put.name}"
        setattr(module, put.name, put.instead)
    found: Figures = {}
    for file, series in read_sets(files):
        rows = backtest(some(series, runs), fractions=FRACTIONS, prior=prior, baselines=()).rows
        for fraction in FRACTIONS:
            made = [row for row in rows if row.fraction == fraction and row.predicted is not None]
            if made:
                wrong = np.array([abs(row.predicted - row.actual) for row in made])
                missed = np.array([max(row.lower - row.actual, row.actual - row.upper, 0.0) for row in made])
                score = np.array([row.upper - row.lower for row in made]) + MISS * missed
                held = float((missed == 0).sum())
                found[file.stem, fraction] = float(wrong.mean()), float(score.mean()), held, len(made)
    return found


def _compared(name: str, whole: Figures, without: Figures) -> list[dict[str, Any]]:
    rows = []
    for fraction in FRACTIONS:
        keys = [key for key in whole if key[1] == fraction and key in without]
        if not keys:
            continue
        errors = _growth(keys, whole, without, lambda one: max(one[0], LEAST_ERROR))
        scores = _growth(keys, whole, without, lambda one: max(one[1], LEAST_SCORE))
        held = [sum(found[key][2] for key in keys) / sum(found[key][3] for key in keys) for found in (whole, without)]
        rows.append(
            {
                "without": name,
                "seen": fraction,
                "sets": len(keys),
                "changed": sum(whole[key] != without[key] for key in keys),
                "error %": errors[0],
                "error +-": errors[1],
                "score %": scores[0],
                "score +-": scores[1],
                "coverage": held[1] - held[0],
            }
        )
    return rows


def _growth(
    keys: list[tuple[str, float]],
    whole: Figures,
    without: Figures,
    figure: Callable[[tuple[float, float, float, int]], float],
) -> tuple[float, float | None]:
    """By how many % a figure is larger without, and the standard error over sets."""
    ratios = np.array([np.log(figure(without[key]) / figure(whole[key])) for key in keys])
    error = float(ratios.std(ddof=1) / np.sqrt(len(ratios))) if len(ratios) > 1 else None
    return 100 * float(np.expm1(ratios.mean())), None if error is None else 100 * error


if __name__ == "__main__":
    main()
