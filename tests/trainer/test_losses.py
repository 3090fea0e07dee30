"""Losses and token weights against their closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from trainer.losses import cispo_loss, dapo_loss, token_weights

NEW = torch.tensor([[-0.2, -1.0, -3.0]])
OLD = torch.tensor([[-0.2, -2.0, -1.0]])  # ratios 1, e, e^-2
WEIGHTS = torch.tensor([[0.5, 0.3, 0.2]])


def test_cispo_equals_its_closed_form_with_a_capped_token():
    loss = cispo_loss(NEW, OLD, torch.tensor([[2.0]]), WEIGHTS, is_weight_cap=1.5)
    by_hand = -2.0 * (0.5 * 1.0 * -0.2 + 0.3 * 1.5 * -1.0 + 0.2 * np.exp(-2.0) * -3.0)
    assert_allclose(float(loss), by_hand, rtol=1e-6)


@pytest.mark.parametrize("advantage", [2.0, -2.0])
def test_the_gradient_of_cispo_flows_through_the_log_prob_only_and_through_capped_tokens_too(advantage):
    logprobs = NEW.clone().requires_grad_()
    cispo_loss(logprobs, OLD, torch.tensor([[advantage]]), WEIGHTS, is_weight_cap=1.5).backward()
    ratios = torch.tensor([[1.0, 1.5, np.exp(-2.0)]], dtype=torch.float32)  # capped above, never below
    torch.testing.assert_close(logprobs.grad, -WEIGHTS * ratios * advantage, rtol=1e-5, atol=0)


def test_dapo_equals_its_closed_form_and_a_clipped_token_has_no_gradient():
    logprobs = NEW.clone().requires_grad_()
    loss = dapo_loss(logprobs, OLD, torch.tensor([[2.0]]), WEIGHTS, clip_low=0.2, clip_high=0.26)
    # e is clipped to 1.26 for A > 0; e^-2 is below 0.8 but the minimum keeps it.
    assert_allclose(loss.item(), -2.0 * (0.5 * 1.0 + 0.3 * 1.26 + 0.2 * np.exp(-2.0)), rtol=1e-6)
    loss.backward()
    torch.testing.assert_close(
        logprobs.grad, torch.tensor([[-0.5 * 2.0, 0.0, -0.2 * 2.0 * np.exp(-2.0)]], dtype=torch.float32)
    )


def test_dapo_clips_from_below_when_the_advantage_is_negative():
    loss = dapo_loss(NEW, OLD, torch.tensor([[-1.0]]), WEIGHTS, clip_low=0.2, clip_high=0.26)
    assert_allclose(float(loss), 0.5 * 1.0 + 0.3 * np.exp(1.0) + 0.2 * 0.8, rtol=1e-6)


def test_one_absurd_token_does_not_make_the_loss_infinite():
    loss = cispo_loss(torch.tensor([[0.0]]), torch.tensor([[-1e9]]), torch.ones(1, 1), torch.ones(1, 1), 4.0)
    assert torch.isfinite(loss)


def test_token_weights_by_hand():
    lengths = np.array([[1, 3], [4, 4]])  # two prompts of two responses, 12 tokens
    assert_allclose(token_weights(lengths, "prompt"), [[1 / 8, 1 / 8], [1 / 16, 1 / 16]])
    assert_allclose(token_weights(lengths, "sample"), [[1 / 4, 1 / 12], [1 / 16, 1 / 16]])
    assert_allclose(token_weights(lengths, "token"), np.full((2, 2), 1 / 12))


def test_an_unknown_aggregation_is_refused_by_name():
    with pytest.raises(ValueError, match="'batch'"):
        token_weights(np.array([[1, 2]]), "batch")


@settings(deadline=None)
@given(st.lists(st.lists(st.integers(1, 30), min_size=3, max_size=3), min_size=1, max_size=6), st.data())
def test_token_weights_of_a_batch_sum_to_one_whatever_the_aggregation(lengths, data):
    aggregation = data.draw(st.sampled_from(["prompt", "sample", "token"]))
    array = np.array(lengths)
    assert_allclose((token_weights(array, aggregation) * array).sum(), 1.0, rtol=1e-12)
