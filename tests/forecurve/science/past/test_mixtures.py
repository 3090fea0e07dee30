"""Mixtures of very small numbers: to the last digit what they are as they are written."""

from __future__ import annotations

import numpy as np

from forecurve.science.past.mixtures import log_mixed


def test_a_mixture_of_very_small_numbers_keeps_every_digit() -> None:
    rng = np.random.default_rng(1)
    shares, kernels = np.exp(-rng.uniform(0, 700, (30, 12))), np.exp(-rng.uniform(0, 700, (3, 12, 8)))
    shares[0], shares[1, 0] = 0.0, 1.0
    found = list(log_mixed(shares, kernels))
    for kernel, one in zip(kernels, found, strict=True):
        assert np.array_equal(one, np.log(shares @ kernel + 1e-300))
    assert min(one.min() for one in found) == np.log(1e-300)
