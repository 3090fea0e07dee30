"""Where rows stand among those of their prompt, for products of a prompt with all its rows at once.

Letters in shapes: P prompts, R most rows of a prompt, N rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Slots:
    """Rows, sorted by prompt, in a rectangle of P prompts and R places: `place` [N] is prompt * R + place of the row.

    `starts` [P + 1] are the first row of each prompt and the number of rows; `most` is R.
    """

    place: Tensor
    starts: Tensor
    most: int

    @classmethod
    def of(cls, owners: Tensor, prompts: int) -> Slots:
        """owners [N]: each row's prompt, rising."""
        counts = torch.bincount(owners, minlength=prompts)
        starts = torch.zeros(prompts + 1, dtype=torch.long, device=owners.device)
        torch.cumsum(counts, 0, out=starts[1:])
        most = int(counts.max()) if len(owners) else 0
        return cls(owners * most + torch.arange(len(owners), device=owners.device) - starts[owners], starts, most)

    @property
    def prompts(self) -> int:
        """P."""
        return len(self.starts) - 1

    @property
    def full(self) -> bool:
        """Whether every prompt has as many rows."""
        return len(self.place) == self.prompts * self.most

    def spread(self, x: Tensor) -> Tensor:
        """[N, ...] -> [P, R, ...], 0 where there is no row."""
        if not self.full:
            x = x.new_zeros(self.prompts * self.most, *x.shape[1:]).index_copy_(0, self.place, x)
        return x.view(self.prompts, self.most, *x.shape[1:])

    def gather(self, x: Tensor) -> Tensor:
        """[P, R, ...] -> [N, ...]"""
        x = x.flatten(0, 1)
        return x if self.full else x.index_select(0, self.place)
