"""Sweeps to replay of recorded curves: random choices of at most 8 runs of a file, or of a group of it."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from forecurve.curve_files import read_curves
from forecurve.science import Curve
from forecurve.science.simulator import Sweep, recorded_sweep

ARMS = 8
_ALL = "(.*)"


def takes_recorded(made: ArgumentParser) -> None:
    """The files, and how their series fall into sweeps."""
    made.add_argument("files", nargs="*", type=Path, help="recorded curves")
    made.add_argument("--group", default=_ALL, help="regular expression; its first group names the sweep of a series")


def recorded_sweeps(files: Sequence[Path], group: str, runs: int, seed: int) -> Iterator[tuple[str, list[Sweep]]]:
    """Of each file that has enough of them: its name and at most `runs` sweeps, cut to the shortest run of each."""
    for file in files:
        groups: dict[str, list[Curve]] = {}
        for curve in read_curves(file):
            found = re.search(group, curve.name)
            groups.setdefault("" if found is None or group == _ALL else found.group(1), []).append(curve)
        sweeps = [sweep for curves in groups.values() for sweep in _samples(curves, runs, len(groups), seed)]
        if sweeps:
            yield file.stem, sweeps


def _samples(curves: list[Curve], runs: int, groups: int, seed: int) -> list[Sweep]:
    """Random sweeps of at most ARMS of the curves; runs much shorter than the others are left out."""
    typical = float(np.median([curve.now for curve in curves]))
    long = [curve for curve in curves if curve.now >= typical / 2 and curve.points >= 8]
    if len(long) < 3:
        return []
    rng = np.random.default_rng(seed)
    size = min(ARMS, len(long) - 1) if len(long) <= ARMS else ARMS
    wanted = max(runs // groups, 1)
    return [recorded_sweep([long[i] for i in rng.choice(len(long), size, replace=False)]) for _ in range(wanted)]
