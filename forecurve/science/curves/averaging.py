"""Curves of more evaluations than a fit needs: neighbours averaged."""

from __future__ import annotations

import numpy as np

from ..arrays import FloatArray, IntArray
from .curve import Curve

MOST_FITTED = 400  # beyond, neighbouring evaluations are averaged: the curve is smooth, the cost is not
_WIDEST_BLOCK = 1.1  # last compute of a block of neighbours over its first


def averaged(curve: Curve) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(compute, reward, nominal variance); neighbours averaged where there are more than the fit needs."""
    variance = curve.noise.variance
    if curve.points <= MOST_FITTED:
        return curve.compute, curve.reward, variance
    head = 1 if curve.compute[0] == 0 else 0  # the start stays by itself
    edges = _block_edges(curve.compute, head)
    sizes = np.diff(np.append(edges, curve.points))
    middle = np.add.reduceat(curve.compute, edges) / sizes
    mean = np.add.reduceat(curve.reward, edges) / sizes
    spread = np.add.reduceat(variance, edges) / sizes**2
    return (
        np.concatenate([curve.compute[:head], middle]),
        np.concatenate([curve.reward[:head], mean]),
        np.concatenate([variance[:head], spread]),
    )


def _block_edges(compute: FloatArray, head: int) -> IntArray:
    """Where each block of neighbours begins: equal numbers of them, but fewer where a block would span so much compute
    that the curve bends within it, as the first ones of a long run do."""
    equal = np.linspace(head, len(compute), MOST_FITTED - head + 1).astype(int)
    first, last = equal[:-1], equal[1:] - 1
    wide = np.flatnonzero(compute[last] > _WIDEST_BLOCK * compute[first])
    grid = np.arange(0.0, np.log(compute[-1] / compute[head]), np.log(_WIDEST_BLOCK))
    finer = np.searchsorted(compute, compute[head] * np.exp(grid))
    inside = np.isin(np.searchsorted(first, finer, side="right") - 1, wide)
    return np.unique(np.concatenate([first, finer[inside]]))
