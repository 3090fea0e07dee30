"""The testbed task: walk on a torus and state the last cell.

A prompt is a start cell and k moves, `60E3W2E2E3S3=`; a response is the cell after every move, then `>` and
the last cell: `9070902027>27`. With `echo_start` it begins with the start cell. The verifier looks only at what
stands between the last `>` and the end token: it must be the right cell. How the model gets there is free. With
two robots a prompt begins with both start cells, the chain has the cell of whoever moved, and the answer is both
last cells.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from forecurve.recipes.schema import Interruption
from trainer.errors import ConfigurationError
from trainer.streams import Stream
from trainer.types import Prompt

from . import vocabulary as vocab
from .walks import LAYOUTS, MAX_MOVES, Cell, Layout, Walk, cells_text, is_held_out

ENOUGH_DRAWS = 10_000
"""Draws in a row without a new prompt after which there are taken to be no more."""
HELD_OUT_SEED, POOL_SEED = 20_251_013, 20_251_014
"""Seeds of the held-out set and of the pool: fixed, so that every run of every recipe has the same."""


class TorusTask:
    """Prompts and verifier of torus walks on a layout.

    A chain of k moves takes 2k + 6 tokens with `echo_start`, 2k + 4 without (two robots: 2k + 10, 2k + 6), so a
    generation budget bounds the pass rate that chains can reach: `ceiling()`. `pool` prompts are drawn once, the
    same for every run; without it the run's `seed` draws a new one for every index.
    """

    vocabulary_size = vocab.SIZE
    end_tokens: tuple[int, ...] = (vocab.END,)

    def __init__(
        self,
        min_moves: int = 3,
        max_moves: int = 12,
        echo_start: bool = True,
        layout: str = "open",
        pool: int | None = None,
        seed: int = 0,
    ):
        if not 1 <= min_moves <= max_moves <= MAX_MOVES:
            raise ValueError(f"needs 1 <= min_moves <= max_moves <= {MAX_MOVES}, got {min_moves} and {max_moves}")
        self.min_moves, self.max_moves, self.echo_start = min_moves, max_moves, echo_start
        self.layout = LAYOUTS[layout]
        self.training_count = pool
        self.prompt_length = 1 + 2 * self.layout.robots + 2 * MAX_MOVES + 1
        self.longest_prompt = self.prompt_length
        drawn_from = (layout, min_moves, max_moves, pool)  # and from the fixed seed of the pool
        self.training_digest = hashlib.sha256(repr(drawn_from).encode()).hexdigest()
        self._seed = seed

    def training_prompt(self, index: int) -> Prompt:
        """See `Task`."""
        if self.training_count:
            return replace(self.prompt(self._pool[index]), index=index)
        rng = np.random.default_rng((Stream.ENDLESS_PROMPTS, self._seed, index))
        return replace(self.prompt(self.training_walk(rng)), index=index)

    def training_walk(self, rng: np.random.Generator) -> Walk:
        """The next walk of `rng` that is not held out."""
        while True:
            walk = self.layout.draw(rng, self.min_moves, self.max_moves)
            if not is_held_out(walk.text):
                return walk

    def held_out_prompts(self, count: int) -> list[Prompt]:
        """See `Task`. Prompts are distinct; fewer come back where the task has fewer (very short walks)."""
        return [self.prompt(walk) for walk in self._distinct(count, HELD_OUT_SEED, held_out=True)]

    def downstream_prompts(self) -> dict[str, list[Prompt]]:
        """See `Task`: none."""
        return {}

    def start(self) -> None:
        """See `Task`: nothing to start."""

    def passed(self, prompt: Prompt, tokens: NDArray[np.int64], lengths: Sequence[int]) -> NDArray[np.bool_]:
        """See `Task`. A response that did not end itself within the budget has not passed."""
        answers = [text.rpartition(">") for text in vocab.texts(tokens, lengths)]
        return np.array([bool(mark) and tail == prompt.answer + "$" for _, mark, tail in answers])

    def encode(self, text: str) -> list[int]:
        """See `Task`."""
        try:
            return vocab.encode(text)
        except KeyError as error:
            raise ConfigurationError(
                f"{text!r} holds {error.args[0]!r}, which the torus has no token for; its characters are "
                f"{vocab.CHARACTERS}"
            ) from None

    def texts(self, tokens: NDArray[np.int64], lengths: Sequence[int]) -> list[str]:
        """See `Task`."""
        return vocab.texts(tokens, lengths)

    def metrics(self) -> dict[str, float]:
        """See `Task`: none."""
        return {}

    def cpu_seconds(self) -> float:
        """See `Task`: no process but this one."""
        return 0.0

    def close(self) -> None:
        """See `Task`: nothing to end."""

    def prompt(self, walk: Walk) -> Prompt:
        """A walk as padded tokens: `<bos>`, start, moves, dots, `=`. Its difficulty is the number of moves."""
        text = walk.text
        padded = text[:-1].ljust(self.prompt_length - 2, ".") + "="
        answer = cells_text(self.layout.last_cells(walk, self.layout.cells(walk)))
        tokens = np.array([vocab.BEGIN, *vocab.encode(padded)], dtype=np.int64)
        return Prompt(text, answer, tokens, difficulty=float(len(walk.moves)))

    def chain(self, walk: Walk, cells: list[Cell]) -> str:
        """A worked response with the given cells: start (if echoed), cells, `>`, where they end."""
        start = cells_text(walk.starts) if self.echo_start else ""
        return start + cells_text(cells) + ">" + cells_text(self.layout.last_cells(walk, cells))

    def cells_tokens(self, moves: int) -> int:
        """Tokens of a chain before its `>`."""
        return 2 * moves + 2 * self.layout.robots * self.echo_start

    def chain_tokens(self, moves: int) -> int:
        """Tokens of a full chain of `moves` moves, its `>`, answer and end token included."""
        return self.cells_tokens(moves) + 2 + 2 * self.layout.robots

    def ceiling(self, prompts: Sequence[Prompt], max_tokens: int, interruption: Interruption | None = None) -> float:
        """Share of prompts whose whole chain fits: the exact ceiling of answering by chains.

        The chain, its answer and its end token must fit into `max_tokens`. With interruption its cells must be written
        as well when the phrase `>` comes, uniformly between `after_low` and `after_high` tokens: a chain that is cut
        earlier can only guess, which counts as nothing here. One that has written its own `>` is left alone.
        """
        return float(np.mean([self._fits(round(prompt.difficulty), max_tokens, interruption) for prompt in prompts]))

    def _fits(self, moves: int, max_tokens: int, interruption: Interruption | None) -> float:
        """Probability that a chain of `moves` moves is whole before it is cut."""
        if self.chain_tokens(moves) > max_tokens:
            return 0.0
        if interruption is None:
            return 1.0
        own_mark = interruption.answer_tokens < 1 + 2 * self.layout.robots  # what follows the phrase would be cut
        needed, low, high = self.cells_tokens(moves) + own_mark, interruption.after_low, interruption.after_high
        return float(np.clip((high + 1 - needed) / (high + 1 - low), 0.0, 1.0))

    @cached_property
    def _pool(self) -> tuple[Walk, ...]:
        assert self.training_count
        walks = self._distinct(self.training_count, POOL_SEED, held_out=False)
        if len(walks) < self.training_count:
            raise ConfigurationError(
                f"task.pool is {self.training_count} but there are only about {len(walks)} different prompts of "
                f"{self.min_moves} to {self.max_moves} moves; ask for fewer, or allow more moves"
            )
        return walks

    def _distinct(self, count: int, seed: int, held_out: bool) -> tuple[Walk, ...]:
        """Up to `count` different walks of one side of the held-out rule; the first n are the same for any count."""
        return _distinct_walks(self.layout, self.min_moves, self.max_moves, count, seed, held_out)


@lru_cache(maxsize=4)  # a run checks, records and asks the same ones, each time by a task of its own
def _distinct_walks(
    layout: Layout, min_moves: int, max_moves: int, count: int, seed: int, held_out: bool
) -> tuple[Walk, ...]:
    rng = np.random.default_rng((Stream.TORUS_WALKS, seed, min_moves, max_moves))
    chosen: dict[str, Walk] = {}
    fruitless = 0
    while len(chosen) < count and fruitless < ENOUGH_DRAWS:
        walk = layout.draw(rng, min_moves, max_moves)
        fresh = is_held_out(walk.text) == held_out and walk.text not in chosen
        fruitless = 0 if fresh else fruitless + 1
        if fresh:
            chosen[walk.text] = walk
    return tuple(chosen.values())
