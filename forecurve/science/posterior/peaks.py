"""Peaks that lattices may step over: those of curves without their odd beginning, by least squares.

Lattices close in on the mass that their own nodes found. Where the first evaluations lie off the sigmoid, as on a curve
that rises twice, the peak of the others may lie elsewhere, and be narrower than a cell of the first lattice.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import pi

import numpy as np

from ..arrays import FloatArray, IntArray
from .point import search
from .prior import Box
from .problem import Problem

_FEWEST = 8  # evaluations: four parameters, and as many to tell how well they are known
_ODD = 2.0  # times the variance that neighbours show: with less one sigmoid and white noise describe all evaluations
_FLAT = 1e-9  # of what it would be if one direction told nothing of the other: a determinant that is none
_WIDEST = 0.25  # of the box: beyond, no lattice steps over it
_INSET = 1e-3  # of the box


@dataclass(frozen=True, eq=False)
class Peaks:
    """Where the least squares of curves without their first evaluations lie.

    Attributes:
        nodes: (ln B, ln C_mid) of each, in the box, (2, E).
        areas: under a normal with the curvature there, whose top is 1, (E,).
        cuts: how many evaluations are left out, (E,).
    """

    nodes: FloatArray
    areas: FloatArray
    cuts: IntArray


def other_peaks(problem: Problem) -> Peaks:
    """One for each odd beginning that the noise model knows, where one sigmoid and white noise do not describe all."""
    return problem.once(("other peaks", problem.setting.begins, problem.setting.box), lambda: _other_peaks(problem))


def _other_peaks(problem: Problem) -> Peaks:
    cuts = sorted({guess.early for guess in problem.setting.hypotheses if guess.early}) if _is_odd(problem) else []
    found = [(cut, search(problem.log_c[cut:], problem.reward[cut:])) for cut in cuts]
    known = [(cut, one, area) for cut, one in found if (area := _area(problem, one, cut)) is not None]
    return Peaks(
        np.array([_inside(problem.setting.box, one[2:4]) for _, one, _ in known]).reshape(-1, 2).T,
        np.array([area for *_, area in known]),
        np.array([cut for cut, *_ in known], dtype=np.int64),
    )


def _is_odd(problem: Problem) -> bool:
    """Whether evaluations lie further off the least squares of all than neighbours lie from one another."""
    reward = problem.reward
    if len(reward) < _FEWEST:
        return False
    neighbours = (np.diff(reward, 2) ** 2).mean() / 6  # about the line between the two beside
    return bool(problem.optimum[4] / (len(reward) - 4) > _ODD * neighbours)


def _inside(box: Box, node: FloatArray) -> FloatArray:
    """The place, or the nearest one in the box: a step is steeper than any sigmoid there."""
    low, high = np.transpose([box.log_b, box.log_mid])
    return np.clip(node, low + _INSET * (high - low), high - _INSET * (high - low))


def _area(problem: Problem, found: FloatArray, cut: int) -> float | None:
    """None where the evaluations behind the cut tell too little."""
    size, across, both, along = len(problem.reward) - cut, *found[5:8]
    determinant = across * along - both**2
    if size < _FEWEST or not determinant > _FLAT * across * along > 0:
        return None
    variance = max(found[4] / (size - 4), 0.3 * problem.setting.unit_variance)
    area = float(2 * pi * variance / np.sqrt(determinant))
    return area if area < _WIDEST * problem.setting.box.area else None
