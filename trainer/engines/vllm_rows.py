"""Responses put together from vLLM's completions: seeds, interruption, padding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainer.types import Responses

from .base import SamplingConfig
from .vllm_adapter import Completion


@dataclass(frozen=True, slots=True)
class Row:
    """One whole response; all arrays have shape [T]."""

    tokens: NDArray[np.int64]
    logprobs: NDArray[np.float32]
    versions: NDArray[np.int32]
    sampled: NDArray[np.bool_]
    interrupted: bool


def sample_seed(seed: tuple[int, ...], sample: int, part: int) -> int:
    """A seed of 63 bits for one row's thinking (`part` 0) or answer (1), from the request's own."""
    return int(np.random.SeedSequence((*seed, sample, part)).generate_state(1, np.uint64)[0] >> np.uint64(1))


def budget_after_interruption(
    thinking: NDArray[np.int64], at: int, sampling: SamplingConfig
) -> tuple[NDArray[np.int64], int] | None:
    """After a row's first `at` tokens: the phrase's tokens to put in (none when its thinking is over already) and how
    many more may be sampled; None when the row has ended."""
    interruption = sampling.interruption
    assert interruption is not None
    if len(thinking) and int(thinking[-1]) in sampling.end_tokens:
        return None
    left = sampling.max_tokens - at
    if interruption.closed(thinking[None])[0]:
        return np.zeros(0, dtype=np.int64), left
    phrase = np.array(interruption.phrase[:left], dtype=np.int64)
    return phrase, min(left - len(phrase), interruption.answer_tokens)


def row(parts: Sequence[Completion], phrase: NDArray[np.int64] | None = None) -> Row:
    """One response from one completion, or from two with the `phrase` between them."""
    first, rest = parts[0], parts[1:]
    forced = np.zeros(0, dtype=np.int64) if phrase is None else phrase
    quiet = Completion(forced, np.zeros(len(forced), np.float32), np.zeros(len(forced), np.int32))
    pieces = [first, quiet, *rest]
    return Row(
        tokens=np.concatenate([piece.tokens for piece in pieces]),
        logprobs=np.concatenate([piece.logprobs for piece in pieces]),
        versions=np.concatenate([piece.versions for piece in pieces]),
        sampled=np.concatenate([np.full(len(piece.tokens), piece is not quiet) for piece in pieces]),
        interrupted=len(forced) > 0,
    )


def to_responses(key: int, rows: Sequence[Row], end_tokens: Sequence[int]) -> Responses:
    """The rows of a request, padded to their longest."""
    lengths = np.array([len(row.tokens) for row in rows], dtype=np.int64)
    shape = (len(rows), int(lengths.max()))
    inside = np.arange(shape[1]) < lengths[:, None]
    tokens, logprobs = np.zeros(shape, np.int64), np.zeros(shape, np.float32)
    versions, sampled = np.zeros(shape, np.int32), np.zeros(shape, np.bool_)
    tokens[inside] = np.concatenate([row.tokens for row in rows])
    logprobs[inside] = np.concatenate([row.logprobs for row in rows])
    versions[inside] = np.concatenate([row.versions for row in rows])
    sampled[inside] = np.concatenate([row.sampled for row in rows])
    finished = [bool(row.sampled[-1]) and int(row.tokens[-1]) in end_tokens for row in rows]
    return Responses(
        key=key,
        tokens=tokens,
        logprobs=logprobs,
        versions=versions,
        lengths=lengths,
        finished=np.array(finished),
        sampled=sampled,
        interrupted=np.array([row.interrupted for row in rows]),
    )
