"""Walks on a 10 x 10 torus: cells, moves, and the layouts on which they are made.

Cells are (x, y) in 0..9, N adds to y and E to x, everything wraps. A move is a direction and 1 to 3 steps. On a
layout with walls a robot stops before the first blocked cell. With two robots the moves are theirs in turn, the
first robot's first.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

SIDE = 10
MAX_MOVES = 12
LONGEST_MOVE = 3
STEPS = {"N": (0, 1), "S": (0, -1), "E": (1, 0), "W": (-1, 0)}
HELD_OUT_ONE_IN = 10

Cell = tuple[int, int]
Move = tuple[str, int]

WALLS = """
..........
.##....#..
.#.....#..
.......#..
....#.....
...##.....
........#.
.#......##
.##.......
.....#....
"""
"""The map of the layout `walls`, north up: the first line is y = 9, its first place x = 0. Never shown to the model."""


@dataclass(frozen=True, slots=True)
class Walk:
    """Start cell of each robot, and the moves."""

    starts: tuple[Cell, ...]
    moves: tuple[Move, ...]

    @property
    def text(self) -> str:
        """The prompt without padding, `60E3W2=`: what the held-out hash is taken of."""
        return cells_text(self.starts) + "".join(f"{direction}{count}" for direction, count in self.moves) + "="


@dataclass(frozen=True, slots=True)
class Layout:
    """How many robots there are and which cells are blocked."""

    name: str
    robots: int = 1
    blocked: frozenset[Cell] = frozenset()

    def moved(self, cell: Cell, move: Move) -> Cell:
        """The cell that one move leads to."""
        dx, dy = STEPS[move[0]]
        for _ in range(move[1]):
            ahead = (cell[0] + dx) % SIDE, (cell[1] + dy) % SIDE
            if ahead in self.blocked:
                break
            cell = ahead
        return cell

    def cells(self, walk: Walk) -> list[Cell]:
        """The cell of the robot that moved, after every move."""
        here, visited = list(walk.starts), []
        for turn, move in enumerate(walk.moves):
            robot = turn % self.robots
            here[robot] = self.moved(here[robot], move)
            visited.append(here[robot])
        return visited

    def last_cells(self, walk: Walk, cells: list[Cell]) -> tuple[Cell, ...]:
        """Where each robot ends when `cells` are those after every move; at its start if it never moved."""
        ends = list(walk.starts)
        for turn, cell in enumerate(cells):
            ends[turn % self.robots] = cell
        return tuple(ends)

    def draw(self, rng: np.random.Generator, min_moves: int, max_moves: int) -> Walk:
        """A walk with a uniform number of uniform moves from uniform free cells."""
        count = int(rng.integers(min_moves, max_moves + 1))
        starts = tuple(self._free_cell(rng) for _ in range(self.robots))
        directions = rng.integers(0, 4, count).tolist()
        lengths = rng.integers(1, LONGEST_MOVE + 1, count).tolist()
        return Walk(starts, tuple(("NSEW"[d], n) for d, n in zip(directions, lengths, strict=True)))

    def _free_cell(self, rng: np.random.Generator) -> Cell:
        while True:
            x, y = rng.integers(0, SIDE, 2).tolist()
            if (x, y) not in self.blocked:
                return x, y


def _blocked(drawing: str) -> frozenset[Cell]:
    rows = drawing.split()[::-1]
    return frozenset((x, y) for y, row in enumerate(rows) for x, place in enumerate(row) if place == "#")


LAYOUTS = {
    layout.name: layout
    for layout in (Layout("open"), Layout("walls", blocked=_blocked(WALLS)), Layout("two-robots", robots=2))
}
"""Layouts by name."""


def cells_text(cells: tuple[Cell, ...] | list[Cell]) -> str:
    """Two digits a cell, x then y."""
    return "".join(f"{x}{y}" for x, y in cells)


def is_held_out(text: str) -> bool:
    """True for one prompt text in HELD_OUT_ONE_IN, by hash: a rule, so no list has to be carried around."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) % HELD_OUT_ONE_IN == 0
