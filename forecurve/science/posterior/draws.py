"""Draws of a curve's parameters, in the reward's own scale."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from ..arrays import FloatArray
from .sigmoid import reward_at


@dataclass(frozen=True, eq=False)
class Draws:
    """Equally weighted draws of the parameters, every array of shape (K,).

    Attributes:
        burr: the curve is that of `other_rise` and not the sigmoid.
        begins: compute from which the curve's own is counted, see `late_start`.
    """

    A: FloatArray
    B: FloatArray
    C_mid: FloatArray
    R0: FloatArray
    burr: bool = False
    begins: float = 0.0

    def reward_at(self, compute: npt.ArrayLike) -> FloatArray:
        """The curve at each compute (rows) under each draw (columns)."""
        x = np.maximum(np.atleast_1d(np.asarray(compute, dtype=np.float64)) - self.begins, 0.0)
        return reward_at(x, self.A, self.B, self.C_mid, self.R0, burr=self.burr)

    def each(self, step: int) -> Draws:
        """Each so-many-th of them."""
        A, B, C_mid, R0 = (values[::step] for values in (self.A, self.B, self.C_mid, self.R0))
        return Draws(A, B, C_mid, R0, self.burr, self.begins)
