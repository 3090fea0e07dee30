"""Lattices over (ln B, ln C_mid): evenly spaced rows of one ln B, each shifted along the ridge of the posterior.

The ridge bends (a later midpoint goes with a smaller exponent), so the middle of each row follows a parabola in ln B.
A shift changes no area: every node stands for the same area, and the sum over nodes is the integral.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ..arrays import BoolArray, FloatArray, IntArray
from .kernels import HUGE, Factors
from .prior import Box

ROWS = COLUMNS = 20
CUT = 8.0  # nodes below exp(-8) of the best one (4 sd) are left out
_WIDEST = 1.5  # in ln B and ln C_mid: beyond, a normal approximation says little
CUT_OFF = 3e-3  # of the mass on an edge: there is more beyond it,
FURTHER = 8  # so many cells of which the next lattice reaches
_TEMPERED_CUT = 3.0  # while the lattice is too coarse to trust, in tempered units (many more of the true ones)


@dataclass(frozen=True, eq=False)
class Lattice:
    """ln B of each row, (ROWS,), and ln C_mid of each node, (ROWS, COLUMNS)."""

    log_b: FloatArray
    log_mid: FloatArray

    @cached_property
    def nodes(self) -> FloatArray:
        """(ln B, ln C_mid) of every node, (2, ROWS * COLUMNS)."""
        return np.stack([np.repeat(self.log_b, self.log_mid.shape[1]), self.log_mid.ravel()])

    @cached_property
    def factors(self) -> Factors:
        """What the exponentials of g(C) share over all evaluations."""
        centre = float(self.log_mid.mean())
        B = np.exp(self.log_b)
        with np.errstate(over="ignore"):
            return Factors(B, centre, np.clip(np.exp(B[:, None] * (self.log_mid - centre)), 1 / HUGE, HUGE))

    @property
    def cell(self) -> tuple[float, float]:
        """Distance between rows and between columns."""
        return float(self.log_b[1] - self.log_b[0]), float(self.log_mid[0, 1] - self.log_mid[0, 0])

    @property
    def cell_area(self) -> float:
        """The area that one node stands for."""
        across, along = self.cell
        return across * along

    def inside(self, box: Box) -> BoolArray:
        """Which nodes lie in the box, (ROWS * COLUMNS,)."""
        log_b, log_mid = self.nodes
        (b_low, b_high), (mid_low, mid_high) = box.log_b, box.log_mid
        return np.asarray((log_b >= b_low) & (log_b <= b_high) & (log_mid >= mid_low) & (log_mid <= mid_high))


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
    node = np.array([round(node[0] / across, 2) * across, round(node[1] / along, 2) * along])
    far = along + abs(slope) * across
    log_b, log_mid = (node[0] - across, node[0] + across), (node[1] - far, node[1] + far)
    within = box.log_b[0] < log_b[0] and log_b[1] < box.log_b[1]
    within = within and box.log_mid[0] < log_mid[0] and log_mid[1] < box.log_mid[1]
    if not within or across > _WIDEST or far > _WIDEST:
        return None
    middle = node[1] + slope * (_centres(*log_b, ROWS) - node[0])
    return _lay(log_b, middle, (-along, along))


def _rounded(value: float) -> float:
    """To a power of 1.1, so that the last digits of an optimum lay no other lattice."""
    return float(1.1 ** round(np.log(max(value, 1e-9)) / np.log(1.1)))


def open_edges(lattice: Lattice, log_mass: FloatArray, box: Box) -> FloatArray:
    """The share of the mass on the first and last row and column, (4,), as far as the box goes on beyond them."""
    mass = np.exp(log_mass - log_mass.max()).reshape(lattice.log_mid.shape)
    (across, along), log_b, log_mid = lattice.cell, lattice.log_b, lattice.log_mid
    (b_low, b_high), (mid_low, mid_high) = box.log_b, box.log_mid
    edges = (
        mass[0].sum() * (log_b[0] - across > b_low),
        mass[-1].sum() * (log_b[-1] + across < b_high),
        mass[:, 0] @ (log_mid[:, 0] - along > mid_low),
        mass[:, -1] @ (log_mid[:, -1] + along < mid_high),
    )
    return np.asarray(np.array(edges) / mass.sum())


def _lay(log_b: tuple[float, float], middle: FloatArray, offsets: tuple[float, float], finer: int = 1) -> Lattice:
    """Cell centres over a range of ln B and a range of offsets from each row's middle."""
    rows = _centres(*log_b, finer * ROWS)
    return Lattice(rows, middle[:, None] + _centres(*offsets, finer * COLUMNS))


def _centres(low: float, high: float, size: int) -> FloatArray:
    return low + (np.arange(size) + 0.5) / size * (high - low)


def closer_lattice(lattice: Lattice, log_mass: FloatArray, power: float, box: Box, finer: int = 1) -> Lattice:
    """The next lattice: along the ridge of the (tempered) mass, or straight where that is smaller, just large enough.

    Args:
        lattice: the present one.
        log_mass: of its nodes, (ROWS * COLUMNS,).
        power: below 1 while too few nodes carry the mass.
        box: outside of which nothing is looked for.
        finer: times as many rows and columns.
    """
    tempered = power * (log_mass - log_mass.max())
    kept = tempered > -max(_TEMPERED_CUT, power * CUT)  # never closer than CUT in true units: what is cut is lost
    log_b, log_mid = lattice.nodes[:, kept]
    across, along = lattice.cell
    cells = np.where(open_edges(lattice, log_mass, box) > CUT_OFF, FURTHER, 1)
    low, high = _reaching(log_b, across, cells[:2], box.log_b)
    straight = _reaching(log_mid, along, cells[2:], box.log_mid)
    ridge = _ridge(log_b, log_mid, np.exp(tempered[kept]), low, high)
    offsets = log_mid - ridge(log_b)
    slack = np.abs(np.diff(ridge(lattice.log_b)) - np.diff(lattice.log_mid[:, 0])).max(
        initial=0.0, where=_between(lattice.log_b, low, high)
    )
    bent = offsets.min() - cells[2] * along - slack, offsets.max() + cells[3] * along + slack
    if bent[1] - bent[0] > straight[1] - straight[0]:  # mass that fills the box, which is straight, has no ridge
        return _lay((low, high), np.zeros(finer * ROWS), straight, finer)
    return _lay((low, high), ridge(_centres(low, high, finer * ROWS)), bent, finer)


def _reaching(values: FloatArray, cell: float, cells: IntArray, limits: tuple[float, float]) -> tuple[float, float]:
    """The range of the values and so many cells more to each side, within limits."""
    return max(values.min() - cells[0] * cell, limits[0]), min(values.max() + cells[1] * cell, limits[1])


def _between(log_b: FloatArray, low: float, high: float) -> BoolArray:
    return (log_b[1:] >= low) & (log_b[:-1] <= high)


@dataclass(frozen=True, eq=False)
class _Ridge:
    """A parabola of ln C_mid in ln B."""

    centre: float
    half: float
    coefficients: FloatArray

    def __call__(self, log_b: FloatArray) -> FloatArray:
        x = (log_b - self.centre) / self.half
        return np.asarray(self.coefficients[0] + self.coefficients[1] * x + self.coefficients[2] * x * x)


def _ridge(log_b: FloatArray, log_mid: FloatArray, weight: FloatArray, low: float, high: float) -> _Ridge:
    centre, half = (low + high) / 2, (high - low) / 2
    x = (log_b - centre) / half
    columns = np.stack([np.ones_like(x), x, x * x])
    share = weight / weight.sum()
    normal = (columns * share) @ columns.T + np.diag([0.0, 1e-4, 1e-3])  # a single row bends nothing
    return _Ridge(centre, half, np.linalg.solve(normal, (columns * share) @ log_mid))
