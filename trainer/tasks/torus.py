"""The testbed task: walk on a 10 x 10 torus and state the last cell.

A prompt is a start cell and k moves, `60E3W2E2E3S3=`; a response is the cell after every move, then `>` and
the last cell: `9070902027>27`. With `echo_start` it begins with the start cell. The reward looks only at the
text before the end token: exactly one `>`, with the right cell behind it. How the model gets there is free.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trainer.types import Prompt

from . import vocabulary as vocab

SIDE = 10
MAX_MOVES = 12
STEPS = {"N": (0, 1), "S": (0, -1), "E": (1, 0), "W": (-1, 0)}
HELD_OUT_ONE_IN = 10
FRUITLESS_DRAWS = 10_000
"""Draws in a row without a new held-out prompt after which there are taken to be no more."""
HELD_OUT_SEED = 20_251_013
"""Seed of the held-out set: fixed, so that every run of every recipe is judged on the same prompts."""


@dataclass(frozen=True, slots=True)
class Walk:
    """A start cell and its moves; cells are (x, y) in 0..9."""

    start: tuple[int, int]
    moves: tuple[tuple[str, int], ...]

    @property
    def text(self) -> str:
        """The prompt without padding, `60E3W2=`: what the held-out hash is taken of."""
        return cell_text(self.start) + "".join(f"{direction}{count}" for direction, count in self.moves) + "="

    def cells(self) -> list[tuple[int, int]]:
        """The cell after every move."""
        here, visited = self.start, []
        for move in self.moves:
            here = moved(here, move)
            visited.append(here)
        return visited


def moved(cell: tuple[int, int], move: tuple[str, int]) -> tuple[int, int]:
    """The cell that one move leads to; the torus wraps."""
    dx, dy = STEPS[move[0]]
    return (cell[0] + dx * move[1]) % SIDE, (cell[1] + dy * move[1]) % SIDE


def cell_text(cell: tuple[int, int]) -> str:
    """Two digits, x then y."""
    return f"{cell[0]}{cell[1]}"


def draw_walk(rng: np.random.Generator, min_moves: int, max_moves: int) -> Walk:
    """A walk with a uniform number of uniform moves of 1 to 3 steps from a uniform cell."""
    count = int(rng.integers(min_moves, max_moves + 1))
    x, y = rng.integers(0, SIDE, 2).tolist()
    directions = rng.integers(0, 4, count).tolist()
    lengths = rng.integers(1, 4, count).tolist()
    return Walk((x, y), tuple(("NSEW"[d], n) for d, n in zip(directions, lengths, strict=True)))


def is_held_out(text: str) -> bool:
    """True for one prompt text in HELD_OUT_ONE_IN, by hash: a rule, so no list has to be carried around."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) % HELD_OUT_ONE_IN == 0


def answered_cell(response: str) -> str | None:
    """The cell a response states: the two digits behind its only `>`; None when the form is wrong."""
    head, mark, tail = response.partition(">")
    del head
    return tail if mark and len(tail) == 2 and tail.isdigit() else None


class TorusTask:
    """Prompts and reward of the torus walk.

    A chain of k moves takes 2k + 6 tokens with `echo_start`, 2k + 4 without, so a generation budget bounds the
    pass rate that chains can reach: `ceiling()`.
    """

    vocabulary_size = vocab.SIZE
    prompt_length = 1 + 2 + 2 * MAX_MOVES + 1
    end_token = vocab.END

    def __init__(self, min_moves: int = 3, max_moves: int = 12, echo_start: bool = True):
        if not 1 <= min_moves <= max_moves <= MAX_MOVES:
            raise ValueError(f"needs 1 <= min_moves <= max_moves <= {MAX_MOVES}, got {min_moves} and {max_moves}")
        self.min_moves, self.max_moves, self.echo_start = min_moves, max_moves, echo_start

    def training_prompt(self, seed: int, ordinal: int) -> Prompt:
        """See `Task`."""
        return replace(self.prompt(self.training_walk(np.random.default_rng((1, seed, ordinal)))), index=ordinal)

    def training_walk(self, rng: np.random.Generator) -> Walk:
        """The next walk of `rng` that is not held out."""
        while True:
            walk = draw_walk(rng, self.min_moves, self.max_moves)
            if not is_held_out(walk.text):
                return walk

    def held_out_prompts(self, count: int) -> list[Prompt]:
        """See `Task`. Prompts are distinct; fewer come back where the task has fewer (very short walks)."""
        rng = np.random.default_rng((2, HELD_OUT_SEED, self.min_moves, self.max_moves))
        chosen: dict[str, Walk] = {}
        fruitless = 0
        while len(chosen) < count and fruitless < FRUITLESS_DRAWS:
            walk = draw_walk(rng, self.min_moves, self.max_moves)
            fresh = is_held_out(walk.text) and walk.text not in chosen
            fruitless = 0 if fresh else fruitless + 1
            if fresh:
                chosen[walk.text] = walk
        return [self.prompt(walk) for walk in chosen.values()]

    def rewards(self, prompt: Prompt, tokens: NDArray[np.int64], lengths: Sequence[int]) -> NDArray[np.float64]:
        """1 where the stated cell is right and the response ended itself within the budget, else 0."""
        rows = zip(vocab.texts(tokens, lengths), tokens, lengths, strict=True)
        return np.array([self._reward(prompt, text, int(row[n - 1])) for text, row, n in rows])

    def _reward(self, prompt: Prompt, text: str, last_token: int) -> float:
        return float(last_token == self.end_token and answered_cell(text[:-1]) == prompt.answer)

    def prompt(self, walk: Walk) -> Prompt:
        """A walk as padded tokens: `<bos>`, cell, moves, dots, `=`."""
        text = walk.text
        padded = text[:-1].ljust(self.prompt_length - 2, ".") + "="
        last = walk.cells()[-1] if walk.moves else walk.start
        return Prompt(text, cell_text(last), np.array([vocab.BEGIN, *vocab.encode(padded)], dtype=np.int64))

    def chain(self, walk: Walk, cells: list[tuple[int, int]]) -> str:
        """A worked response with the given cells: start (if echoed), cells, `>`, last cell."""
        start = [walk.start] if self.echo_start else []
        return "".join(map(cell_text, [*start, *cells])) + ">" + cell_text(cells[-1])

    def chain_tokens(self, moves: int) -> int:
        """Tokens of a full chain of `moves` moves, its end token included."""
        return 2 * moves + (6 if self.echo_start else 4)

    def ceiling(self, prompts: Sequence[Prompt], max_tokens: int) -> float:
        """Share of prompts whose full chain fits into `max_tokens`: the exact ceiling of answering by chains."""
        fits = [self.chain_tokens((len(prompt.text) - 3) // 2) <= max_tokens for prompt in prompts]
        return sum(fits) / len(fits)
