"""How near a fit comes to its own model's posterior, and an update to a refit.

    python benchmarks/posterior.py [FOLDER_OR_FILES...] [--runs 20] [--updates 3] [--json]

Synthetic runs of 60 evaluations, stopped anywhere from 5 on: white noise, noise that wanders, two outliers, a fall, an
outage; and --runs series of every file of curves, likewise. The posterior is summed over a lattice of 240 x 240 nodes
that leaves out 1e-4 of the mass, with 100 times the draws. What is compared: the median and the ends of the 90 %
interval of the ceiling and of the curve at twice the present compute, in widths of that interval (.002 of the range at
least); the largest of the six counts. `mean`, `90 %`, `99 %` and `most` are of that, `over .1` and `over .2` the share
of fits so far off.

Then --updates runs of each kind and file are streamed from their ninth evaluation to their end, and every update is
compared with a refit in the same way; `verdicts` is the share of them whose misfit has another name.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import common
import numpy as np

from forecurve.curve_files import read_curves
from forecurve.science import Curve, Evaluation, Fit, fit
from forecurve.science.arrays import FloatArray
from forecurve.science.posterior.drawing import draw
from forecurve.science.posterior.draws import Draws
from forecurve.science.posterior.integral import Table, tabulate
from forecurve.science.posterior.lattice import Lattice, centres

KINDS = ("white", "wandering", "outliers", "fall", "outage")
SHORTEST, LONGEST = 5, 400
FIRST_STREAMED = 9
SCOUTED, CLOSER, DENSE, LEFT_OUT = 150, 2, 240, 1e-4
COLUMNS = ("set", "fits", "mean", "90 %", "99 %", "most", "over .1", "over .2")
QUANTILES = (0.05, 0.5, 0.95)


def main() -> None:
    parser = common.parser(__doc__, runs=20)
    parser.add_argument("files", nargs="*", type=Path, help="files of curves, or folders of them")
    parser.add_argument("--updates", type=int, default=3, help="runs of each kind that are streamed")
    options = parser.parse_args()
    rng = np.random.default_rng(5)
    sets = list(_sets(options.files, options.runs, rng))
    fits = [(name, *_beside_dense([_stopped(curve, rng) for curve in curves])) for name, curves in sets]
    long = [(name, [curve for curve in curves if curve.points > FIRST_STREAMED]) for name, curves in sets]
    streams = [(name, *_streamed(curves[: options.updates])) for name, curves in long if curves]
    if options.json:
        common.answer({
            "fits": [{**_row(name, off), "missed": missed} for name, off, missed in fits],
            "updates": [{**_row(name, off), "verdicts": verdicts} for name, off, verdicts in streams],
        })  # fmt: skip
        return
    every = np.concatenate([off for _, off, _ in fits])
    whole = [*fits, ("all", every, max(missed for *_, missed in fits))]
    common.table((*COLUMNS, "missed"), [(*_row(name, off).values(), missed) for name, off, missed in whole])
    print()
    rows = [(*_row(name, off).values(), verdicts) for name, off, verdicts in streams]
    every = np.concatenate([off for _, off, _ in streams])
    verdict = float(np.average([row[-1] for row in rows], weights=[row[1] for row in rows]))
    common.table((*COLUMNS, "verdicts"), [*rows, (*_row("all", every).values(), verdict)])


def _row(name: str, off: FloatArray) -> dict[str, Any]:
    far = [float((off > limit).mean()) for limit in (0.1, 0.2)]
    quantiles = [float(value) for value in np.quantile(off, (0.9, 0.99, 1.0))]
    return dict(zip(COLUMNS, (name, len(off), float(off.mean()), *quantiles, *far), strict=True))


# --- the runs ---


def _sets(files: list[Path], runs: int, rng: np.random.Generator) -> Iterator[tuple[str, list[Curve]]]:
    for kind in KINDS:
        yield kind, [_synthetic(kind, rng) for _ in range(runs)]
    for path in files:
        for file in sorted(path.glob("*.csv")) if path.is_dir() else [path]:
            usable = [c for c in read_curves(file) if SHORTEST < c.points <= LONGEST and np.ptp(c.reward) > 0]
            chosen = rng.choice(len(usable), min(runs, len(usable)), replace=False)
            if usable:
                yield file.stem, [usable[at] for at in chosen]


def _synthetic(kind: str, rng: np.random.Generator) -> Curve:
    size, sd = 60, 0.01
    compute = np.arange(1, size + 1) * 100.0
    ceiling, exponent, middle = rng.uniform(0.4, 0.8), rng.uniform(0.8, 2.0), rng.uniform(500, 3000)
    start = rng.uniform(0.1, 0.3)
    reward = start + (ceiling - start) / (1 + (middle / compute) ** exponent) + rng.normal(0, sd, size)
    if kind == "wandering":
        steps = rng.normal(0, 0.6 * sd, size)
        reward += [np.sum(steps[: at + 1] * 0.8 ** np.arange(at, -1, -1)) for at in range(size)]
    if kind == "outliers":
        reward[rng.integers(15, 55, 2)] -= rng.uniform(0.1, 0.4)
    if kind in ("fall", "outage"):
        at = rng.integers(20, 45)
        reward[at : at + 5 if kind == "outage" else size] -= 0.2
    return Curve(compute, np.clip(reward, 0, 1), prompts=200, samples=8, name=kind)


def _stopped(curve: Curve, rng: np.random.Generator) -> Curve:
    stopped = curve.until(curve.compute[rng.integers(SHORTEST - 1, curve.points)])
    return stopped if np.ptp(stopped.reward) > 0 else curve


# --- against the posterior ---


def _beside_dense(curves: list[Curve]) -> tuple[FloatArray, float]:
    """How far each fit is off, and the most log evidence that one of them missed."""
    off, missed = [], 0.0
    for found in map(fit, curves):
        dense, evidence = _dense(found)
        off.append(_off(_read(found), dense, found.curve.width))
        missed = max(missed, evidence - _log_evidence(found.table))
    return np.array(off), missed


def _read(found: Fit) -> FloatArray:
    """Median and ends of the ceiling and of the curve at twice the present compute, (2, 3)."""
    at = found.predict([2 * found.curve.now])
    curve = [float(ends[0]) for ends in (at.lower90, at.median, at.upper90)]
    return np.array([[found.A.lower, found.A.median, found.A.upper], curve])


def _dense(found: Fit) -> tuple[FloatArray, float]:
    """The same of a sum over very many nodes, and its log evidence."""
    log_b, log_mid = found.setting.box.log_b, found.setting.box.log_mid
    for _ in range(CLOSER):
        log_b, log_mid = _where_the_mass_is(_laid(found, log_b, log_mid, SCOUTED))
    table = _laid(found, log_b, log_mid, DENSE)
    drawn = draw(found.setting, table, found.problem.filtered.last[table.alive], times=100)
    low, width = found.curve.bounds[0], found.curve.width
    draws = Draws(low + width * drawn.A, drawn.B, drawn.C_mid, low + width * drawn.R0)
    curve = draws.reward_at(2 * found.curve.now)[0]
    return np.array([np.quantile(draws.A, QUANTILES), np.quantile(curve, QUANTILES)]), _log_evidence(table)


def _where_the_mass_is(table: Table) -> tuple[tuple[float, float], tuple[float, float]]:
    """The range of ln B and that of ln C_mid that leave out LEFT_OUT of it, a cell more on each side: a peak that is
    narrower than a cell may lie between two nodes."""
    lattice = table.lattice
    mass = np.exp(table.masses.nodes - table.masses.nodes.max())
    ordered = np.sort(mass)
    least = ordered[np.searchsorted(np.cumsum(ordered), LEFT_OUT * ordered.sum())]
    kept = (mass >= least).reshape(lattice.log_mid.shape)
    along_b, along_mid = np.flatnonzero(kept.any(axis=1)), np.flatnonzero(kept.any(axis=0))
    return _about(lattice.log_b, along_b, lattice.cell[0]), _about(lattice.log_mid[0], along_mid, lattice.cell[1])


def _about(centres_of: FloatArray, kept: Any, cell: float) -> tuple[float, float]:
    return float(centres_of[kept[0]] - cell), float(centres_of[kept[-1]] + cell)


def _log_evidence(table: Table) -> float:
    return float(np.logaddexp.reduce(table.masses.nodes))


def _laid(found: Fit, log_b: tuple[float, float], log_mid: tuple[float, float], size: int) -> Table:
    lattice = Lattice.plain(centres(*log_b, size), np.tile(centres(*log_mid, size), (size, 1)))
    return tabulate(found.problem, lattice, np.arange(len(found.setting.hypotheses)))


def _off(ours: FloatArray, true: FloatArray, width: float) -> float:
    """The largest difference in widths of the true interval."""
    return float((np.abs(ours - true) / np.maximum(true[:, 2] - true[:, 0], 0.002 * width)[:, None]).max())


# --- updates against refits ---


def _streamed(curves: list[Curve]) -> tuple[FloatArray, float]:
    off, otherwise = [], 0
    for curve in curves:
        streamed = fit(curve.until(curve.compute[FIRST_STREAMED - 1]))
        for at in range(streamed.points, curve.points):
            streamed = streamed.update(_evaluation(curve, at))
            again = fit(streamed.curve)
            off.append(_off(_read(streamed), _read(again), curve.width))
            otherwise += streamed.misfit != again.misfit
    return np.array(off), otherwise / len(off)


def _evaluation(curve: Curve, at: int) -> Evaluation:
    size = {
        name: None if column is None else float(column[at])
        for name, column in (("prompts", curve.prompts), ("samples", curve.samples), ("variance", curve.variance))
    }
    return Evaluation(float(curve.compute[at]), float(curve.reward[at]), **size)


if __name__ == "__main__":
    main()
