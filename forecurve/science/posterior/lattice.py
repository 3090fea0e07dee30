"""Lattices over (ln B, ln C_mid): evenly spaced rows of one ln B, each shifted along the ridge of the posterior.

The ridge bends (a later midpoint goes with a smaller exponent), so the middle of each row follows a parabola in ln B.
A shift changes no area: every node stands for the same area, and the sum over nodes is the integral.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..compiled import compiled
from .kernels import FAR, Factors
from .prior import Box

ROWS = COLUMNS = 20
_CUT = 8.0  # nodes below exp(-8) of the best one (4 sd) are left out, unless they carry more than LOST together
LOST = 1e-3  # of the mass
_WIDEST = 1.5  # in ln B and ln C_mid: beyond, a normal approximation says little
CUT_OFF = 3e-3  # of the mass beyond an edge: too much,
_FURTHER = 8  # and the next lattice reaches so many cells further
_TEMPERED_CUT = 3.0  # while the lattice is too coarse to trust, in tempered units (many more of the true ones)


@dataclass(frozen=True, eq=False)
class Lattice:
    """Rows of nodes, and where they were too coarse finer rows in their place (see `patches`).

    Attributes:
        log_b: ln B of each row, (R,).
        log_mid: ln C_mid of each node, (R, COLUMNS).
        cells: distance to the next row and to the next node of each row, (2, R).
        outer: rows of the lattice as it was laid, which come first.
        replaced: nodes in whose place there are finer ones, (R * COLUMNS,).
        edges: nodes of the first and last row and of the first and last column as it was laid, and finer ones in their
            place, (4, R * COLUMNS).
    """

    log_b: FloatArray
    log_mid: FloatArray
    cells: FloatArray
    outer: int
    replaced: BoolArray
    edges: BoolArray

    @classmethod
    def plain(cls, log_b: FloatArray, log_mid: FloatArray) -> Lattice:
        """Evenly spaced rows, (R,), of evenly spaced nodes, (R, COLUMNS)."""
        cell = np.array([[log_b[1] - log_b[0]], [log_mid[0, 1] - log_mid[0, 0]]])
        edges = np.zeros((4, *log_mid.shape), dtype=bool)
        edges[0, 0] = edges[1, -1] = edges[2, :, 0] = edges[3, :, -1] = True
        nothing, edges = np.zeros(log_mid.size, dtype=bool), edges.reshape(4, -1)
        return cls(log_b, log_mid, cell.repeat(len(log_b), axis=1), len(log_b), nothing, edges)

    @cached_property
    def nodes(self) -> FloatArray:
        """(ln B, ln C_mid) of every node, (2, R * COLUMNS)."""
        return np.stack([np.repeat(self.log_b, self.log_mid.shape[1]), self.log_mid.ravel()])

    @cached_property
    def factors(self) -> Factors:
        """What the exponentials of g(C) share over all evaluations."""
        return factors_of(self.log_b, self.log_mid)

    @property
    def plainly_laid(self) -> bool:
        """Whether it has no finer nodes anywhere."""
        return len(self.log_b) == self.outer

    @property
    def cell(self) -> tuple[float, float]:
        """Distance between rows and between columns of the lattice as it was laid."""
        return float(self.cells[0, 0]), float(self.cells[1, 0])

    @property
    def cell_area(self) -> float:
        """The area that one node of it stands for."""
        across, along = self.cell
        return across * along

    def log_areas(self, box: Box) -> FloatArray:
        """Log of the area that each node stands for, -inf for one outside the box or replaced, (R, COLUMNS)."""
        (b_low, b_high), (mid_low, mid_high) = box.log_b, box.log_mid
        outside = (self.log_mid < mid_low) | (self.log_mid > mid_high) | self.replaced.reshape(self.log_mid.shape)
        row = np.log(self.cells[0] * self.cells[1])
        row[(self.log_b < b_low) | (self.log_b > b_high)] = -np.inf
        return np.where(outside, -np.inf, row[:, None])


def factors_of(log_b: FloatArray, log_mid: FloatArray) -> Factors:
    """What the exponentials of g(C) share over all evaluations, for rows of one ln B each, (R,), and nodes, (R, C)."""
    centre, B = float(log_mid.mean()), np.exp(log_b)
    log_mid = np.ascontiguousarray(log_mid)  # for another layout loops would be compiled once more
    exponent = B[:, None] * (log_mid - centre)
    return Factors(B, centre, np.exp(np.clip(exponent, -FAR, FAR)), log_mid, np.abs(exponent).max(axis=1))


def first_lattice(box: Box) -> Lattice:
    """Over the whole box."""
    flat = np.zeros(ROWS)
    return _lay(box.log_b, flat, box.log_mid)


def lattice_about(node: FloatArray, covariance: FloatArray, reach: float, box: Box) -> Lattice | None:
    """About a node, `reach` standard deviations to each side; None where that leaves the box or is too wide to trust.

    Args:
        node: (ln B, ln C_mid).
        covariance: of the two, roughly.
        reach: in standard deviations.
    """
    across = _rounded(reach * float(np.sqrt(covariance[0, 0])))
    slope = round(covariance[0, 1] / covariance[0, 0], 2)
    along = _rounded(reach * float(np.sqrt(max(covariance[1, 1] - slope * covariance[0, 1], 0.0))))
    corner = np.array([box.log_b[0], box.log_mid[0]])  # from there, so that the unit of compute has no say
    node = corner + np.round((node - corner) / (across, along), 2) * (across, along)
    far = along + abs(slope) * across
    log_b, log_mid = (node[0] - across, node[0] + across), (node[1] - far, node[1] + far)
    within = box.log_b[0] < log_b[0] and log_b[1] < box.log_b[1]
    within = within and box.log_mid[0] < log_mid[0] and log_mid[1] < box.log_mid[1]
    if not within or across > _WIDEST or far > _WIDEST:
        return None
    middle = node[1] + slope * (centres(*log_b, ROWS) - node[0])
    return _lay(log_b, middle, (-along, along))


def _rounded(value: float) -> float:
    """To a power of 1.1, so that the last digits of an optimum lay no other lattice."""
    return float(1.1 ** round(np.log(max(value, 1e-9)) / np.log(1.1)))


def mass_beyond(lattice: Lattice, log_mass: FloatArray, box: Box) -> FloatArray:
    """About what share of the mass lies beyond the first and last row and column, (4,), as far as the box goes on.

    As from the row before the last to the last one it goes on from there: a peak's tail ends soon, a plateau with the
    box.
    """
    beyond, limits = np.empty(4), np.array([*box.log_b, *box.log_mid])
    compiled(_beyond, _beyond)(lattice.log_b, lattice.log_mid, log_mass, lattice.cell, limits, beyond)
    return beyond


def _lay(log_b: tuple[float, float], middle: FloatArray, offsets: tuple[float, float]) -> Lattice:
    """Cell centres over a range of ln B and a range of offsets from each row's middle."""
    return Lattice.plain(centres(*log_b, ROWS), middle[:, None] + centres(*offsets, COLUMNS))


def centres(low: float, high: float, size: int) -> FloatArray:
    """Of so many equal cells of a range."""
    return low + (np.arange(size) + 0.5) / size * (high - low)


def closer_lattice(lattice: Lattice, log_mass: FloatArray, power: float, box: Box, edges: FloatArray) -> Lattice:
    """The next lattice: along the ridge of the (tempered) mass, or straight where that is smaller, just large enough.

    Args:
        lattice: the present one.
        log_mass: of its nodes, (ROWS * COLUMNS,).
        power: below 1 while too few nodes carry the mass.
        box: outside of which nothing is looked for.
        edges: `mass_beyond` it.
    """
    tempered = power * (log_mass - log_mass.max())
    lost = _depth(log_mass)
    cut = -max(_TEMPERED_CUT, power * max(_CUT, lost))  # never closer than that in true units: what is cut is lost
    cells = np.where(edges > CUT_OFF, float(_FURTHER), 1.0) * np.repeat(lattice.cell, 2)
    limits = np.array([*box.log_b, *box.log_mid])
    found = np.empty(9)
    parts = _ranges, _ridge, _offsets
    compiled(_outline, _outline, *parts)(lattice.log_b, lattice.log_mid, tempered, cut, cells, limits, found)
    low, high, straight, bent, ridge = found[0], found[1], (found[2], found[3]), (found[4], found[5]), found[6:]
    if bent[1] - bent[0] > straight[1] - straight[0]:  # mass that fills the box, which is straight, has no ridge
        return _lay((low, high), np.zeros(ROWS), straight)
    x = centres(-1.0, 1.0, ROWS)
    return _lay((low, high), ridge[0] + ridge[1] * x + ridge[2] * x * x, bent)


def _depth(log_mass: FloatArray) -> float:
    """How far below the best node those lie that carry LOST of the mass together."""
    mass = np.sort(np.exp(log_mass - log_mass.max()))
    cumulative = np.cumsum(mass)
    least = mass[np.searchsorted(cumulative, LOST * cumulative[-1])]
    return -float(np.log(least))


def least_log_mass(log_mass: FloatArray) -> float:
    """All that lie below it carry LOST of the mass together, at most."""
    top = float(log_mass.max())
    total = float(np.exp(log_mass - top).sum())
    return top + float(np.log(LOST * total / log_mass.size))


# --- where the mass lies; without twins in numpy, as nodes are few ---


def _beyond(log_b: Any, log_mid: Any, log_mass: Any, cell: Any, limits: Any, beyond: Any) -> None:
    """`mass_beyond`.

    Args:
        limits: of ln B and ln C_mid, (4,).
        beyond: (4,), filled.
    """
    rows, columns = log_mid.shape
    mass = np.exp(log_mass - log_mass.max()).reshape(log_mid.shape)
    edge, before, room = np.zeros(4), np.zeros(4), np.full(4, -np.inf)
    for i in range(rows):
        edge[2], edge[3] = edge[2] + mass[i, 0], edge[3] + mass[i, columns - 1]
        before[2], before[3] = before[2] + mass[i, 1], before[3] + mass[i, columns - 2]
        room[2] = max(room[2], (log_mid[i, 0] - limits[2]) / cell[1])
        room[3] = max(room[3], (limits[3] - log_mid[i, columns - 1]) / cell[1])
    for j in range(columns):
        edge[0], edge[1] = edge[0] + mass[0, j], edge[1] + mass[rows - 1, j]
        before[0], before[1] = before[0] + mass[1, j], before[1] + mass[rows - 2, j]
    room[0], room[1] = (log_b[0] - limits[0]) / cell[0], (limits[1] - log_b[rows - 1]) / cell[0]
    for at in range(4):
        ratio = min(edge[at] / max(before[at], 1e-300), 0.99)
        cells = room[at] - 0.5  # between the edge's own and the end of the box
        beyond[at] = min(ratio / (1.0 - ratio), cells) * edge[at] / mass.sum() if cells > 0.5 else 0.0


def _outline(log_b: Any, log_mid: Any, tempered: Any, cut: Any, cells: Any, limits: Any, found: Any) -> None:
    """Where the nodes above the cut lie: the range of ln B, that of ln C_mid, that of the offsets from the ridge, and
    the ridge itself.

    Args:
        cells: how far beyond the nodes a range goes: ln B below and above, ln C_mid below and above.
        limits: of ln B and ln C_mid, (4,).
        found: (9,), filled.
    """
    kept = (tempered > cut).reshape(log_mid.shape)
    weight = np.exp(tempered).reshape(log_mid.shape)
    low, high, least, most = _ranges(log_b, log_mid, kept)
    low, high = max(low - cells[0], limits[0]), min(high + cells[1], limits[1])
    x = (log_b - (low + high) / 2.0) / ((high - low) / 2.0)
    ridge = _ridge(x, log_mid, kept, weight)
    nearest, furthest, slack = _offsets(x, log_mid, kept, ridge)
    found[0], found[1] = low, high  # one by one: numba takes seconds to compile what a slice may be refused with
    found[2], found[3] = max(least - cells[2], limits[2]), min(most + cells[3], limits[3])
    found[4], found[5] = nearest - cells[2] - slack, furthest + cells[3] + slack
    found[6], found[7], found[8] = ridge[0], ridge[1], ridge[2]


def _ranges(log_b: Any, log_mid: Any, kept: Any) -> tuple[Any, Any, Any, Any]:
    """The least and largest ln B and ln C_mid of the nodes kept."""
    first, last, least, most = len(log_b), -1, np.inf, -np.inf
    for i in range(len(log_b)):
        for j in range(log_mid.shape[1]):
            if kept[i, j]:
                first, last = min(first, i), i
                least, most = min(least, log_mid[i, j]), max(most, log_mid[i, j])
    return log_b[first], log_b[last], least, most


def _ridge(x: Any, log_mid: Any, kept: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Height, slope and bend of the parabola of ln C_mid in x: weighted least squares.

    Args:
        x: ln B of each row, brought to [-1, 1].
    """
    mass, s1, s2, s3, s4, m0, m1, m2 = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for i in range(len(x)):
        for j in range(log_mid.shape[1]):
            if kept[i, j]:
                w, m = weight[i, j], log_mid[i, j]
                mass, m0, m1, m2 = mass + w, m0 + w * m, m1 + w * m * x[i], m2 + w * m * x[i] ** 2
                s1, s2, s3, s4 = s1 + w * x[i], s2 + w * x[i] ** 2, s3 + w * x[i] ** 3, s4 + w * x[i] ** 4
    s1, s2, s3, s4, m0, m1, m2 = s1 / mass, s2 / mass, s3 / mass, s4 / mass, m0 / mass, m1 / mass, m2 / mass
    a11, a12, a22 = s2 - s1 * s1 + 1e-4, s3 - s1 * s2, s4 - s2 * s2 + 1e-3  # a single row bends nothing
    b1, b2 = m1 - s1 * m0, m2 - s2 * m0
    bend = (b2 - a12 / a11 * b1) / (a22 - a12 / a11 * a12)
    slope = (b1 - a12 * bend) / a11
    return m0 - s1 * slope - s2 * bend, slope, bend


def _offsets(x: Any, log_mid: Any, kept: Any, ridge: Any) -> tuple[Any, Any, Any]:
    """The range of ln C_mid about the ridge, and by how much at most it steps otherwise than the rows between two."""
    height, slope, bend = ridge
    least, most, slack = np.inf, -np.inf, 0.0
    for i in range(len(x)):
        at = height + slope * x[i] + bend * x[i] ** 2
        for j in range(log_mid.shape[1]):
            if kept[i, j]:
                least, most = min(least, log_mid[i, j] - at), max(most, log_mid[i, j] - at)
        if i and x[i] >= -1.0 and x[i - 1] <= 1.0:
            before = height + slope * x[i - 1] + bend * x[i - 1] ** 2
            slack = max(slack, abs(at - before - (log_mid[i, 0] - log_mid[i - 1, 0])))
    return least, most, slack
