"""How a training batch is cut: into micro-batches that fit into memory, and those into buckets of like length.

A prompt's responses stay together as far as they fit, so that the prompt runs once for all of them; of responses that
are the same, token by token, one is run for all. Ranks of a sharded
learner gather weights together, so each of them gets the same number of micro-batches, of one bucket each; where one
has less to do it runs a row that does not count. No cut changes the gradient: weights are global (see `batching`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainer.algorithm.batching import TrainingBatch

MICRO_TOKENS = 32_768
"""Tokens, padding that runs included, that run at once when the recipe leaves `batch.micro_tokens` open."""

ROWS_PER_BUCKET = 128
"""Responses run together: few enough to stay in a CPU's cache and to pad little."""

BUCKET_TOKENS = 8_192
"""A bucket with more padded tokens than this is not filled any further: long rows do not widen short ones."""

Rows = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class MicroBatch:
    """Row indices by bucket. One that does not count only keeps a rank in step with the others."""

    buckets: tuple[Rows, ...]
    counts: bool = True

    @property
    def rows(self) -> Rows:
        """All its rows."""
        return np.concatenate(self.buckets)


def micro_batches(
    batch: TrainingBatch, micro_tokens: int, rows_per_bucket: int = ROWS_PER_BUCKET, packs: bool = False
) -> list[MicroBatch]:
    """The whole batch for one process. `packs`: rows run without their padding, which then takes no room."""
    everything = batch.distinct
    if _cost(batch, packs, everything) <= micro_tokens:
        return [_bucketed(batch, everything, rows_per_bucket)]
    packed: list[MicroBatch] = []
    for unit in _units(batch, micro_tokens):
        if packed:
            joined = _bucketed(batch, np.concatenate([packed[-1].rows, unit]), rows_per_bucket)
            if _cost(batch, packs, *joined.buckets) <= micro_tokens:
                packed[-1] = joined
                continue
        packed.append(_bucketed(batch, unit, rows_per_bucket))
    return packed


def shares(batch: TrainingBatch, micro_tokens: int, ranks: int, packs: bool = False) -> list[list[MicroBatch]]:
    """The batch dealt out to ranks: by rank, equally many micro-batches of one bucket each. `packs`: as above."""
    units = sorted(_units(batch, micro_tokens), key=lambda unit: _cost(batch, packs, unit), reverse=True)
    dealt: list[list[Rows]] = [[] for _ in range(ranks)]
    load = [0] * ranks
    for unit in units:  # the largest first, to whoever has the least
        rank = load.index(min(load))
        dealt[rank].append(unit)
        load[rank] += _cost(batch, packs, unit)
    plans = [[MicroBatch((rows,)) for rows in _packed_by_length(batch, units, micro_tokens, packs)] for units in dealt]
    most = max(map(len, plans))
    idle = MicroBatch((np.argsort(batch.lengths, kind="stable")[:1],), counts=False)
    return [plan + [idle] * (most - len(plan)) for plan in plans]


def length_buckets(lengths: NDArray[np.int64], rows_per_bucket: int) -> list[Rows]:
    """Row indices by rising length, cut into buckets: each is padded only to its own longest row."""
    buckets: list[list[int]] = []
    for row in np.argsort(lengths, kind="stable").tolist():
        full = buckets and (
            len(buckets[-1]) >= rows_per_bucket or (len(buckets[-1]) + 1) * lengths[row] > BUCKET_TOKENS
        )
        if not buckets or full:
            buckets.append([])
        buckets[-1].append(row)
    return [np.array(bucket, dtype=np.int64) for bucket in buckets]


def _bucketed(batch: TrainingBatch, rows: Rows, rows_per_bucket: int) -> MicroBatch:
    return MicroBatch(tuple(rows[bucket] for bucket in length_buckets(batch.lengths[rows], rows_per_bucket)))


def _units(batch: TrainingBatch, limit: int) -> list[Rows]:
    """Rows that share a prompt and run together: all of a prompt's where they fit, else as many as do."""
    units: list[Rows] = []
    distinct = batch.distinct
    for prompt, tokens in enumerate(batch.prompts):
        rows = distinct[batch.prompt_of_row[distinct] == prompt]
        rows = rows[np.argsort(batch.lengths[rows], kind="stable")]
        start = 0
        for end in range(1, len(rows) + 1):
            if end == len(rows) or len(tokens) + (end + 1 - start) * batch.lengths[rows[end]] > limit:
                units.append(rows[start:end])
                start = end
    return units


def _packed_by_length(batch: TrainingBatch, units: list[Rows], limit: int, packs: bool) -> list[Rows]:
    """Units joined while what runs of them all stays within the limit."""
    packed: list[Rows] = []
    for unit in sorted(units, key=lambda unit: int(batch.lengths[unit].max())):
        joined = np.concatenate([packed[-1], unit]) if packed else unit
        if packed and _cost(batch, packs, joined) <= limit:
            packed[-1] = joined
        else:
            packed.append(unit)
    return packed


def _cost(batch: TrainingBatch, packs: bool, *buckets: Rows) -> int:
    """Tokens that run: a rectangle of all prompts, and one of each bucket's rows, or these without their padding."""
    lengths = [batch.lengths[rows] for rows in buckets]
    prompts = [len(batch.prompts[prompt]) for prompt in np.unique(batch.prompt_of_row[np.concatenate(buckets)])]
    responses = sum(int(each.sum() if packs else len(each) * each.max()) for each in lengths)
    return len(prompts) * max(prompts) + responses
