"""Matrix products in float32 of matrices that may hold bfloat16.

A GPU has units that multiply bfloat16 and sum in float32, and none such for float32. What bfloat16 numbers multiply to
is exact in float32. So matrices of them need not be widened, and a float32 one is taken as the sum of two:
that keeps 16 of its 24 bits.

Letters in shapes: N rows, K summed over, M columns.
"""

from __future__ import annotations

import torch
from torch import Tensor


def factor(matrix: Tensor, other: Tensor, dtype: torch.dtype) -> Tensor:
    """What `product` with the like of `other` takes `matrix` as; made once where several products share it."""
    return matrix if dtype == torch.float32 and sums_wide(matrix, other) else matrix.to(dtype)


def product(left: Tensor, right: Tensor, dtype: torch.dtype) -> Tensor:
    """left [N, K] @ right [K, M] in float32, of factors in `dtype`. A bfloat16 product is rounded to bfloat16 first."""
    if dtype == torch.float32 and sums_wide(left, right):
        return torch.mm(left, right, out_dtype=torch.float32)
    return (left.to(dtype) @ right.to(dtype)).float()


def sums_wide(*matrices: Tensor) -> bool:
    """Whether the device multiplies these as they are and gives float32."""
    return all(matrix.is_cuda and matrix.dtype == torch.bfloat16 for matrix in matrices)


def halves(matrix: Tensor) -> Tensor:
    """Float32 [N, M] as two bfloat16 matrices, one under the other [2 N, M], whose sum it is to 16 bits. The matrix is
    used up."""
    rows = len(matrix)
    both = matrix.new_empty(2 * rows, matrix.shape[1], dtype=torch.bfloat16)
    both[:rows] = matrix
    both[rows:] = matrix.sub_(both[:rows])
    return both
