"""Float32 products of bfloat16: what a float32 matrix is cut into, and what devices without such a product do."""

from __future__ import annotations

import torch
from hypothesis import given
from hypothesis import strategies as st

from trainer.models.products import halves, product, sums_wide


@given(st.integers(0, 10**6), st.integers(-30, 30))
def test_two_bfloat16_numbers_are_a_float32_number_to_16_bits(seed, exponent):
    matrix = torch.randn(5, 7, generator=torch.Generator().manual_seed(seed)) * 2.0**exponent
    both = halves(matrix.clone())
    assert both.dtype == torch.bfloat16
    torch.testing.assert_close(both[:5].double() + both[5:].double(), matrix.double(), rtol=2**-16, atol=0)


def test_a_cpu_multiplies_in_the_type_that_is_asked_for():
    generator = torch.Generator().manual_seed(0)
    left, right = (torch.randn(shape, generator=generator).bfloat16() for shape in ((3, 64), (64, 5)))
    assert not sums_wide(left, right)
    exact = left.double() @ right.double()
    torch.testing.assert_close(product(left, right, torch.float32).double(), exact, rtol=1e-5, atol=1e-5)
    rounded = product(left, right, torch.bfloat16)
    assert rounded.dtype == torch.float32
    torch.testing.assert_close(rounded, rounded.bfloat16().float(), rtol=0, atol=0)
    torch.testing.assert_close(rounded.double(), exact, rtol=2**-7, atol=2**-7)
