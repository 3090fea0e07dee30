"""Which norms are replaced by one that is written out."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from trainer.models.norms import is_written_out, write_out_norms


class UsualRMSNorm(nn.Module):
    """As most models have it."""

    def __init__(self, width):
        super().__init__()
        self.weight, self.variance_epsilon = nn.Parameter(torch.zeros(width)), 1e-6

    def forward(self, x):
        normed = x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * normed.to(x.dtype)


class ShiftedRMSNorm(UsualRMSNorm):
    """As Gemma has it: the weight counts from 1. With weights of 0, as both are made, only this one passes anything."""

    def forward(self, x):
        return super().forward(x) + (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True))).to(x.dtype)


class AskingRMSNorm(UsualRMSNorm):
    """One that wants more than states."""

    def forward(self, x, gate):
        return super().forward(x) * gate


@pytest.mark.parametrize("width", [16, 8192])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_norm_is_replaced_only_where_it_follows_the_formula(dtype, width):
    model = nn.ModuleList([UsualRMSNorm(width), ShiftedRMSNorm(width), AskingRMSNorm(width)]).to(dtype)
    write_out_norms(model)
    assert [is_written_out(norm) for norm in model] == [True, False, False]
    x = torch.randn(3, width).to(dtype)
    with torch.no_grad():
        model[0].weight.normal_()
    torch.testing.assert_close(model[0](x), UsualRMSNorm.forward(model[0], x), rtol=2**-7, atol=1e-5)
