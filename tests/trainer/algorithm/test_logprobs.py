"""The chunked log-probs against the naive ones, values and gradients."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as F

from trainer.algorithm.logprobs import token_logprobs


def parts(tokens, width, vocabulary, seed, dtype=torch.float32):
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(tokens, width, generator=generator).to(dtype).requires_grad_()
    weight = (torch.randn(vocabulary, width, generator=generator) * 0.3).to(dtype).requires_grad_()
    return hidden, weight, torch.randint(vocabulary, (tokens,), generator=generator)


def naive(hidden, weight, targets, temperature, dtype=torch.float64):
    distribution = (F.linear(hidden.to(dtype), weight.to(dtype)) / temperature).log_softmax(-1)
    return distribution.gather(-1, targets[:, None])[:, 0], -(distribution.exp() * distribution).sum(-1)


def slopes(logprobs, hidden, weight, pull):
    return torch.autograd.grad((logprobs * pull).sum(), [hidden, weight])


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 23), st.integers(1, 9), st.integers(2, 40), st.integers(1, 200), st.sampled_from([0.5, 1.0, 1.7]))
def test_chunked_log_probs_and_their_gradients_equal_the_naive_ones(tokens, width, vocabulary, chunk, temperature):
    hidden, weight, targets = parts(tokens, width, vocabulary, seed=tokens)
    pull = torch.linspace(-1, 1, tokens)
    ours, entropy = token_logprobs(hidden, weight, targets, temperature, chunk_elements=chunk)
    theirs, their_entropy = naive(hidden, weight, targets, temperature)
    # a logit is rounded in proportion to its size, and log-prob and entropy are differences of such numbers
    largest = (F.linear(hidden, weight) / temperature).abs().max().item()
    rounding = 8 * torch.finfo(torch.float32).eps * max(1.0, largest)
    torch.testing.assert_close(ours.double(), theirs, rtol=0, atol=rounding)
    torch.testing.assert_close(entropy.double(), their_entropy, rtol=0, atol=rounding)
    for slope, expected in zip(slopes(ours, hidden, weight, pull), slopes(theirs, hidden, weight, pull), strict=True):
        torch.testing.assert_close(slope, expected, rtol=1e-5, atol=2e-6)


def test_the_gradient_passes_the_numerical_check_where_it_is_not_zero():
    hidden, weight, targets = parts(5, 4, 7, seed=0)
    ours, _ = token_logprobs(hidden, weight, targets, chunk_elements=14)
    to_hidden, _ = slopes(ours, hidden, weight, torch.ones(5))
    step = 1e-2
    with torch.no_grad():
        for i, j in ((0, 0), (3, 2)):
            moved = hidden.clone()
            moved[i, j] += step
            risen = float(token_logprobs(moved, weight, targets)[0].double().sum())
            moved[i, j] -= 2 * step
            fallen = float(token_logprobs(moved, weight, targets)[0].double().sum())
            assert (risen - fallen) / (2 * step) == pytest.approx(float(to_hidden[i, j]), abs=1e-3)


def test_a_bf16_head_gives_what_a_bf16_product_gives_and_fp32_is_closer_to_the_truth():
    hidden, weight, targets = parts(64, 32, 50, seed=1)
    exact, _ = naive(hidden, weight, targets, 1.0)
    half, _ = token_logprobs(hidden, weight, targets, precision="bf16", chunk_elements=500)
    product = F.linear(hidden.bfloat16(), weight.bfloat16()).float().log_softmax(-1)
    torch.testing.assert_close(half, product.gather(-1, targets[:, None])[:, 0], rtol=0, atol=2e-2)
    whole, _ = token_logprobs(hidden, weight, targets)
    assert (whole - exact).abs().max() < 1e-5 < 1e-3 < (half - exact).abs().max()


def test_a_bf16_model_under_an_fp32_head_gets_gradients_of_its_own_type():
    hidden, weight, targets = parts(9, 8, 20, seed=2, dtype=torch.bfloat16)
    ours, _ = token_logprobs(hidden, weight, targets, chunk_elements=40)
    theirs, _ = naive(hidden, weight, targets, 1.0, torch.float32)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    pull = torch.ones(9)
    for slope, expected in zip(slopes(ours, hidden, weight, pull), slopes(theirs, hidden, weight, pull), strict=True):
        assert slope.dtype == torch.bfloat16
        torch.testing.assert_close(slope, expected, rtol=2e-2, atol=1e-3)


def test_the_entropy_carries_no_gradient():
    hidden, weight, targets = parts(3, 4, 5, seed=3)
    assert not token_logprobs(hidden, weight, targets)[1].requires_grad


def test_an_impossible_token_costs_no_other_token_its_entropy():
    weight = torch.tensor([[0.0], [0.0], [-torch.inf]])
    logprobs, entropy = token_logprobs(torch.ones(1, 1), weight, torch.tensor([0]))
    torch.testing.assert_close(entropy, torch.tensor([2.0]).log())
    torch.testing.assert_close(logprobs, -torch.tensor([2.0]).log())


def test_no_tokens_give_no_log_probs_and_no_gradient():
    hidden, weight, targets = parts(0, 4, 5, seed=4)
    logprobs, _ = token_logprobs(hidden, weight, targets)
    _, to_weight = slopes(logprobs, hidden, weight, torch.ones(0))
    assert (logprobs.shape, float(to_weight.abs().sum())) == ((0,), 0.0)


def test_an_unknown_precision_is_refused_by_name():
    hidden, weight, targets = parts(1, 2, 3, seed=5)
    with pytest.raises(ValueError, match="'fp8'"):
        token_logprobs(hidden, weight, targets, precision="fp8")
