"""Finer nodes in the place of coarse ones: they tile the same area, and sums over them are integrals."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from forecurve.science.arrays import FloatArray
from forecurve.science.posterior.lattice import COLUMNS, ROWS, Lattice, first_lattice, mass_beyond
from forecurve.science.posterior.patches import patched, rough_tiles
from forecurve.science.posterior.prior import Box

BOX = Box((-1.6, 2.3), (2.0, 12.0))
AREA = 3.9 * 10.0


@pytest.fixture(params=["numba", "numpy"], autouse=True)
def loops(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numba":
        pytest.importorskip("numba")
    else:
        monkeypatch.setattr("forecurve.science.posterior.patches.compiled", lambda loop, twin, *parts: twin)


def _finest(density: Callable[[FloatArray, FloatArray], FloatArray], times: int = 4) -> tuple[Lattice, FloatArray]:
    """The lattice and the log mass of its nodes, made finer where it is too rough."""
    lattice = first_lattice(BOX)
    for _ in range(times + 1):
        with np.errstate(divide="ignore"):
            log_mass = lattice.log_areas(BOX).ravel() + density(*lattice.nodes)
        tiles = rough_tiles(log_mass)
        if not tiles.any():
            break
        lattice, _ = patched(lattice, tiles)
    return lattice, log_mass


def _peak(at: tuple[float, float], sd: float, plateau: float) -> Callable[[FloatArray, FloatArray], FloatArray]:
    def density(log_b: FloatArray, log_mid: FloatArray) -> FloatArray:
        far = ((log_b - at[0]) ** 2 + (log_mid - at[1]) ** 2) / sd**2
        return np.asarray(np.log((1 + far / 8) ** -4 + plateau))

    return density


@pytest.mark.parametrize("at", [(0.0, 7.0), (0.31, 6.02), (2.29, 4.4)])
@pytest.mark.parametrize("sd", [0.06, 0.2])
def test_a_narrow_peak_on_a_plateau_is_integrated(at: tuple[float, float], sd: float) -> None:
    """A peak with heavy tails that lies between the nodes, or on one, and a plateau that is as wide as the box."""
    plateau = 0.2 * 2 * np.pi * sd**2 / AREA
    lattice, log_mass = _finest(_peak(at, sd, plateau))
    dense = Lattice.plain(np.linspace(-1.6, 2.3, 1951)[:-1] + 0.001, np.tile(np.linspace(2, 12, 2001), (1950, 1)))
    expected = np.exp(_peak(at, sd, plateau)(*dense.nodes)).mean() * AREA
    assert np.exp(log_mass).sum() == pytest.approx(expected, rel=0.03)
    near = np.hypot(lattice.nodes[0] - at[0], lattice.nodes[1] - at[1]) < 4 * sd
    assert near.sum() > 25, "the finer nodes are at the peak"


def test_finer_nodes_take_up_the_area_of_those_in_whose_place_they_are() -> None:
    lattice = first_lattice(BOX)
    tiles = np.zeros((1, 4, 4), dtype=bool)
    tiles[0, 3, 1] = tiles[0, 0, 0] = True
    once, fine = patched(lattice, tiles)
    assert fine.log_mid.shape == (2 * ROWS, COLUMNS)
    assert np.exp(once.log_areas(BOX)).sum() == pytest.approx(AREA)
    deeper = np.zeros((3, 4, 4), dtype=bool)
    deeper[2, 2, 2] = True
    twice, _ = patched(once, deeper)
    areas = np.exp(twice.log_areas(BOX))
    assert areas.sum() == pytest.approx(AREA)
    assert (areas.ravel()[: len(once.replaced)][once.replaced] == 0).all()
    assert np.ptp(twice.log_b[-ROWS:]) < np.ptp(lattice.log_b) / 15


def test_finer_nodes_at_an_edge_take_up_its_area() -> None:
    lattice = first_lattice(BOX)
    tiles = np.zeros((1, 4, 4), dtype=bool)
    tiles[0, 3, 1] = tiles[0, 0, 0] = True
    once, _ = patched(lattice, tiles)
    deeper = np.zeros((3, 4, 4), dtype=bool)
    deeper[1, 0, 0] = deeper[2, 3, 3] = True  # of the first tile, which comes first, and of the other
    twice, _ = patched(once, deeper)
    for finer in (once, twice):
        areas = np.exp(finer.log_areas(BOX)).ravel()
        assert finer.edges @ areas == pytest.approx(AREA / 20)
        assert (finer.edges & ~finer.replaced)[:, 400:].any(axis=1).tolist() == [True, True, True, False]


def test_finer_nodes_follow_a_bent_row() -> None:
    """Rows are shifted along a ridge, and what takes a row's place is shifted as far."""
    rows = np.linspace(-1.0, 1.0, ROWS)
    lattice = Lattice.plain(rows, 7 + rows[:, None] ** 2 + np.linspace(-0.5, 0.5, COLUMNS))
    tiles = np.ones((1, 4, 4), dtype=bool)
    _, fine = patched(lattice, tiles)
    of_row = np.abs(fine.log_b[:, None] - rows).argmin(axis=1)
    middle = np.array([fine.log_mid[of_row == row].mean() for row in range(ROWS)])
    np.testing.assert_allclose(middle, lattice.log_mid.mean(axis=1), atol=1e-12)


def test_a_lattice_that_is_fine_enough_stays_as_it_is() -> None:
    lattice = first_lattice(BOX)
    log_mass = lattice.log_areas(BOX).ravel() + _peak((0.3, 7.0), 0.6, 1e-9)(*lattice.nodes)
    assert not rough_tiles(log_mass).any()


def test_a_plateau_goes_on_beyond_an_edge_and_a_tail_ends_there() -> None:
    small = Box((-0.5, 0.5), (6.0, 8.0))
    lattice = first_lattice(small)
    plateau = mass_beyond(lattice, np.zeros(lattice.log_mid.size), BOX)
    expected = np.array([1.1, 1.8, 4.0, 4.0]) / (1.0, 1.0, 2.0, 2.0)
    np.testing.assert_allclose(plateau, expected, rtol=0.1)
    tail = _peak((0.0, 7.0), 0.06, 0.0)(*lattice.nodes)
    assert mass_beyond(lattice, tail, BOX).max() < 1e-3
    assert (mass_beyond(lattice, np.zeros(lattice.log_mid.size), small) == 0).all(), "the box ends there"
