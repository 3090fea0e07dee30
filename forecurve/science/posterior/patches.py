"""Finer nodes where a lattice is too coarse for the mass.

Some posteriors fit no lattice: a narrow peak and tails as wide as the box, as early and steep runs have them, or mass
in two places. The lattice is divided into tiles of 5 x 5 cells. Where the mass steps from node to node within one,
4 x 4 nodes take the place of each of its, and so on within these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays import BoolArray, FloatArray
from ..compiled import compiled
from .lattice import COLUMNS, ROWS, Lattice, centres

_TILE = 5  # rows and columns
_FINER = ROWS // _TILE
# Where a sum over cells is no integral any more. Cells of one standard deviation of a normal, bent by 1, are fine.
_BEND = 2.0  # of the log mass between a node and its two neighbours
_STEP = 3.0  # from one node to the next
ROUGH = 0.05  # of the mass may lie at such nodes,
_LITTLE = 0.005  # and so much in a tile that is not worth it,
_MOST = 12  # the roughest tiles at a time


def rough_tiles(log_mass: FloatArray) -> BoolArray:
    """Which tiles are to have finer nodes, (blocks, tiles across, tiles along); a block is what took a tile's place.

    Args:
        log_mass: of every node, (R * COLUMNS,).
    """
    coarse = np.zeros(len(log_mass), dtype=bool)
    compiled(coarse_loop, coarse_rows)(log_mass, ROWS, COLUMNS, coarse)
    mass = np.exp(log_mass - log_mass.max())
    side = ROWS // _TILE
    rough = (coarse * mass / mass.sum()).reshape(-1, side, _TILE, side, _TILE).sum(axis=(2, 4))
    least = max(_LITTLE, float(np.sort(rough, axis=None)[-_MOST - 1]) if rough.size > _MOST else 0.0)
    return np.asarray((rough > least) & (rough.sum() > ROUGH))


def tiles_at(lattice: Lattice, nodes: FloatArray) -> BoolArray:
    """The tiles in which these places lie, or next to which, as `rough_tiles` has them; nodes: (2, E)."""
    side = ROWS // _TILE
    tiles = np.zeros((len(lattice.log_b) // ROWS, side, side), dtype=bool)
    across, along = (np.repeat(cells, COLUMNS) for cells in lattice.cells)
    for log_b, log_mid in nodes.T:
        far = np.hypot((lattice.nodes[0] - log_b) / across, (lattice.nodes[1] - log_mid) / along)
        at = int(np.where(lattice.replaced, np.inf, far).argmin())
        block, within = divmod(at, ROWS * COLUMNS)
        tiles[block, within // COLUMNS // _TILE, within % COLUMNS // _TILE] = True
    return tiles


def patched(lattice: Lattice, tiles: BoolArray) -> tuple[Lattice, Lattice]:
    """The lattice with finer nodes in these tiles, and those nodes alone.

    Args:
        tiles: as `rough_tiles` has them, one at least.
    """
    block, across, along = np.nonzero(tiles)
    rows = ((block * ROWS + across * _TILE)[:, None] + np.arange(_TILE)).ravel()  # every row of every tile
    left = np.repeat(along * _TILE, _TILE)
    columns = left[:, None] + np.arange(_TILE)
    replaced = lattice.replaced.reshape(-1, COLUMNS).copy()
    replaced[rows[:, None], columns] = True
    tall, wide = lattice.cells[:, rows]
    within = centres(-0.5, 0.5, _FINER)
    log_b = (lattice.log_b[rows, None] + tall[:, None] * within).ravel()
    middle = lattice.log_mid[rows, left] + wide * (_TILE - 1) / 2
    log_mid = middle[:, None] + (wide * _TILE)[:, None] * centres(-0.5, 0.5, COLUMNS)
    log_mid, cells = np.repeat(log_mid, _FINER, axis=0), np.repeat(lattice.cells[:, rows] / _FINER, _FINER, axis=1)
    edges = lattice.edges.reshape(4, -1, COLUMNS)[:, rows[:, None], columns]
    edges = edges.repeat(_FINER, axis=1).repeat(_FINER, axis=2)
    fine = Lattice(log_b, log_mid, cells, 0, np.zeros(log_mid.size, dtype=bool), edges.reshape(4, -1))
    whole = Lattice(
        np.concatenate([lattice.log_b, log_b]),
        np.concatenate([lattice.log_mid, log_mid]),
        np.concatenate([lattice.cells, cells], axis=1),
        lattice.outer,
        np.concatenate([replaced.ravel(), fine.replaced]),
        np.concatenate([lattice.edges, fine.edges], axis=1),
    )
    return whole, fine


# --- where the mass is too rough, in two ways: plain enough for numba, and in numpy ---


def coarse_loop(log_mass: Any, rows: Any, columns: Any, coarse: Any) -> None:
    """Which nodes step or bend too much from neighbour to neighbour.

    Args:
        log_mass: of every node, (K,), blocks of so many rows and columns.
        coarse: (K,), made true where they do.
    """
    for k in range(len(log_mass)):
        for axis in range(2):
            far = 1 if axis else columns
            at, size = (k % columns, columns) if axis else (k // columns % rows, rows)
            if at == 0:
                continue
            step = log_mass[k] - log_mass[k - far]
            if not np.isfinite(step):  # beside a node that stands for nothing
                continue
            if abs(step) > _STEP:
                coarse[k] = coarse[k - far] = True
            if at == size - 1:
                continue
            bend = log_mass[k + far] - log_mass[k] - step
            if np.isfinite(bend) and abs(bend) > _BEND:
                coarse[k] = True


def coarse_rows(log_mass: Any, rows: Any, columns: Any, coarse: Any) -> None:
    """`coarse_loop`, all nodes at once."""
    blocks, found = log_mass.reshape(-1, rows, columns), coarse.reshape(-1, rows, columns)
    for axis in (1, 2):
        values, here = np.moveaxis(blocks, axis, 0), np.moveaxis(found, axis, 0)
        with np.errstate(invalid="ignore"):  # -inf beside -inf
            step = np.diff(values, axis=0)
            bend = np.abs(np.diff(step, axis=0))
        steep = np.isfinite(step) & (np.abs(step) > _STEP)
        here[1:-1] |= np.isfinite(bend) & (bend > _BEND)
        here[1:] |= steep
        here[:-1] |= steep
