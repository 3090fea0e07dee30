"""Losses and token weights against their closed forms."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from forecurve.recipes import SCALERL, with_changes
from trainer.algorithm.losses import (
    cispo_loss,
    dapo_loss,
    grpo_loss,
    gspo_loss,
    importance_ratio,
    reference_kl,
    sequence_ratio,
    token_weights,
)
from trainer.learner.objective import SUMS, Tokens, objective, token_sums

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


def test_grpo_clips_by_the_same_amount_on_both_sides():
    up = grpo_loss(NEW, OLD, torch.tensor([[2.0]]), WEIGHTS, clip=0.3)
    assert_allclose(float(up), -2.0 * (0.5 * 1.0 + 0.3 * 1.3 + 0.2 * np.exp(-2.0)), rtol=1e-6)
    down = grpo_loss(NEW, OLD, torch.tensor([[-1.0]]), WEIGHTS, clip=0.3)
    assert_allclose(float(down), 0.5 * 1.0 + 0.3 * np.exp(1.0) + 0.2 * 0.7, rtol=1e-6)


def test_the_ratio_of_a_sequence_is_the_geometric_mean_over_its_trained_tokens():
    weights = torch.tensor([[0.25, 0.25, 0.0], [0.0, 0.0, 0.0]])
    ratio = sequence_ratio(NEW.expand(2, -1), OLD.expand(2, -1), weights)
    assert_allclose(ratio[:, 0].numpy(), [np.exp(0.5), 1.0], rtol=1e-6)  # log-ratios 0 and 1; a row of none is 1


@pytest.mark.parametrize(("advantage", "ratio"), [(2.0, np.exp(-1 / 3)), (-2.0, 0.9)])
def test_gspo_equals_its_closed_form_and_clips_whole_sequences(advantage, ratio):
    # Log-ratios 0, 1 and -2: their mean is -1/3. Below the clip at 0.9 only a negative advantage is clipped.
    logprobs = NEW.clone().requires_grad_()
    loss = gspo_loss(logprobs, OLD, torch.tensor([[advantage]]), torch.full((1, 3), 0.1), clip_low=0.1, clip_high=0.2)
    assert_allclose(loss.item(), -0.3 * ratio * advantage, rtol=1e-6)
    loss.backward()
    slope = -0.3 * ratio * advantage / 3 if advantage > 0 else 0.0
    assert_allclose(logprobs.grad.numpy(), np.full((1, 3), slope), rtol=1e-5, atol=1e-12)


def test_gspo_clips_from_above_when_the_advantage_is_positive():
    loss = gspo_loss(OLD, NEW, torch.tensor([[1.0]]), torch.full((1, 3), 0.1), clip_low=0.1, clip_high=0.2)
    assert_allclose(float(loss), -0.3 * 1.2, rtol=1e-6)


def test_the_kl_to_the_reference_equals_its_closed_form_and_is_nothing_for_equal_policies():
    d = (OLD - NEW).numpy()
    assert_allclose(reference_kl(NEW, OLD).numpy(), np.exp(d) - d - 1, rtol=1e-5, atol=1e-6)
    assert float(reference_kl(NEW, NEW).abs().max()) == 0.0


def test_the_mean_of_the_kl_estimates_under_the_policy_is_the_kl():
    policy, reference = torch.tensor([0.6, 0.3, 0.1]), torch.tensor([0.2, 0.5, 0.3])
    estimate = (policy * reference_kl(policy.log(), reference.log())).sum()
    assert_allclose(float(estimate), float((policy * (policy / reference).log()).sum()), rtol=1e-5)


@settings(deadline=None)
@given(st.lists(st.tuples(*[st.floats(-6, 0)] * 2, st.floats(-3, 3)), min_size=1, max_size=8))
def test_on_policy_all_losses_have_the_gradient_of_reinforce(rows):
    now, _, advantage = (torch.tensor(column)[None] for column in zip(*rows, strict=True))
    advantage = advantage[:, :1]
    weights = torch.full_like(now, 1 / now.numel())
    for loss in (
        lambda x: cispo_loss(x, now, advantage, weights, 4.0),
        lambda x: dapo_loss(x, now, advantage, weights, 0.2, 0.3),
        lambda x: grpo_loss(x, now, advantage, weights, 0.2),
        lambda x: gspo_loss(x, now, advantage, weights, 1e-3, 1e-3),
    ):
        x = now.clone().requires_grad_()
        loss(x).backward()
        torch.testing.assert_close(x.grad, -weights * advantage.expand_as(weights), rtol=1e-5, atol=1e-7)


def test_tokens_without_weight_change_no_loss_whatever_they_are():
    wide = [torch.cat([x, torch.tensor([[-7.0, -0.01]])], 1) for x in (NEW, OLD)]
    weights = torch.cat([WEIGHTS, torch.zeros(1, 2)], 1)
    wide[1][0, -1] = -50.0
    one = torch.ones(1, 1)
    for loss in (
        lambda a, b, w: cispo_loss(a, b, one, w, 4.0),
        lambda a, b, w: dapo_loss(a, b, one, w, 0.2, 0.3),
        lambda a, b, w: grpo_loss(a, b, one, w, 0.2),
        lambda a, b, w: gspo_loss(a, b, one, w, 0.2, 0.3),
    ):
        assert_allclose(float(loss(*wide, weights)), float(loss(NEW, OLD, WEIGHTS)), rtol=1e-6)


def test_the_ratio_is_that_of_the_probabilities():
    assert_allclose(importance_ratio(NEW, OLD).numpy(), [[1.0, np.e, np.exp(-2)]], rtol=1e-6)


def test_one_absurd_token_does_not_make_the_loss_infinite():
    loss = cispo_loss(torch.tensor([[0.0]]), torch.tensor([[-1e9]]), torch.ones(1, 1), torch.ones(1, 1), 4.0)
    assert torch.isfinite(loss)


def test_token_weights_by_hand():
    lengths = np.array([[1, 3], [4, 4]])  # two prompts of two responses, 12 tokens
    assert_allclose(token_weights(lengths, "prompt"), [[1 / 8, 1 / 8], [1 / 16, 1 / 16]])
    assert_allclose(token_weights(lengths, "sample"), [[1 / 4, 1 / 12], [1 / 16, 1 / 16]])
    assert_allclose(token_weights(lengths, "token"), np.full((2, 2), 1 / 12))


def test_a_response_without_trained_tokens_counts_in_no_denominator():
    counts = np.array([[0, 3], [4, 4], [0, 0]])  # one response of three, one whole prompt of three without any
    assert_allclose(token_weights(counts, "prompt"), [[0, 1 / 6], [1 / 16, 1 / 16], [0, 0]])
    assert_allclose(token_weights(counts, "sample"), [[0, 1 / 9], [1 / 12, 1 / 12], [0, 0]])
    assert_allclose(token_weights(counts, "token"), [[0, 1 / 11], [1 / 11, 1 / 11], [0, 0]])
    assert_allclose(token_weights(np.zeros((1, 2), dtype=int), "token"), 0.0)


def test_an_unknown_aggregation_is_refused_by_name():
    with pytest.raises(ValueError, match="'batch'"):
        token_weights(np.array([[1, 2]]), "batch")


@settings(deadline=None)
@given(
    st.lists(st.lists(st.integers(0, 30), min_size=3, max_size=3), min_size=1, max_size=6).filter(
        lambda rows: any(map(any, rows))
    ),
    st.data(),
)
def test_token_weights_of_a_batch_sum_to_one_whatever_the_aggregation(lengths, data):
    aggregation = data.draw(st.sampled_from(["prompt", "sample", "token"]))
    array = np.array(lengths)
    assert_allclose((token_weights(array, aggregation) * array).sum(), 1.0, rtol=1e-12)


@pytest.mark.parametrize("loss", ["dapo", "grpo"])
@pytest.mark.parametrize("advantage", [-1.0, 1.0])
def test_the_tokens_that_count_as_clipped_are_those_without_gradient(loss, advantage):
    algorithm = with_changes(SCALERL, {"algorithm.loss": loss}).algorithm
    shift = torch.tensor([[0.5, -0.5, 0.1, -0.1]])
    logprobs = shift.clone().requires_grad_()
    ones = torch.ones_like(shift)
    tokens = Tokens(logprobs, torch.zeros_like(shift), torch.tensor([[advantage]]), ones, ones, ones)
    objective(algorithm, tokens).backward()
    capped = token_sums(algorithm, tokens, torch.tensor(0.0))[SUMS.index("capped")]
    assert int(capped) == int((logprobs.grad == 0).sum()) == 1
