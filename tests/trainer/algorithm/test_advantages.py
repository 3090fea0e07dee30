"""Advantages and the zero-variance filter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from trainer.algorithm.advantages import group_centre, has_variance, scaled
from trainer.algorithm.batching import training_batch
from trainer.learner.plan import length_buckets

REWARDS = np.array([[1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0]])


def test_advantages_are_rewards_minus_the_mean_of_their_group():
    assert_allclose(group_centre(REWARDS), [[0.75, -0.25, -0.25, -0.25], [0.5, 0.5, -0.5, -0.5]])


def test_batch_scale_divides_by_the_spread_of_centred_advantages_not_of_rewards():
    centred = group_centre(REWARDS)
    spread = np.sqrt((0.75**2 + 3 * 0.25**2 + 4 * 0.5**2) / 8)
    assert_allclose(scaled(centred, "batch"), centred / spread)
    assert not np.isclose(spread, REWARDS.std())


def test_prompt_scale_gives_every_prompt_a_spread_of_one():
    assert_allclose(scaled(group_centre(REWARDS), "prompt").std(axis=1), [1.0, 1.0])


def test_no_scale_changes_nothing():
    assert_allclose(scaled(group_centre(REWARDS), "none"), group_centre(REWARDS))


@pytest.mark.parametrize("scale", ["batch", "prompt", "none"])
def test_equal_rewards_give_no_advantage_and_no_division_by_zero(scale):
    assert_allclose(scaled(group_centre(np.full((2, 4), 0.7)), scale), 0.0, atol=1e-12)


@pytest.mark.parametrize("scale", ["batch", "prompt"])
def test_the_largest_rewards_that_a_recipe_takes_give_the_advantages_of_plus_and_minus_one(scale, recipe, group):
    def batch(size):
        knobs = recipe({"rewards.correct": size, "rewards.wrong": -size, "algorithm.advantage_scale": scale})
        signs = np.array([[1, -1, -1, -1], [1, 1, -1, -1]])
        groups = [group(knobs, i, (row * knobs.rewards.correct).tolist()) for i, row in enumerate(signs)]
        return training_batch(groups, knobs.algorithm).advantages

    assert_allclose(batch(1e6), batch(1.0), rtol=1e-6)


def test_a_prompt_has_variance_unless_all_its_rewards_are_equal():
    assert has_variance(np.array([[0, 0], [1, 1], [0, 1.0]])).tolist() == [False, False, True]


def test_the_filter_drops_prompts_and_the_scale_is_taken_over_those_kept(recipe, group):
    knobs = recipe().algorithm
    groups = [group(recipe(), 0, [1, 0, 0, 0]), group(recipe(), 1, [0, 0, 0, 0]), group(recipe(), 2, [1, 1, 0, 0])]
    batch = training_batch(groups, knobs)
    kept = scaled(group_centre(np.stack([groups[0].rewards, groups[2].rewards])), "batch")
    assert_allclose(batch.advantages, kept.reshape(-1), rtol=1e-6)
    assert len(batch.prompts) == 2
    assert (batch.prompts[1] == groups[2].prompt.tokens).all()


def test_without_the_filter_dropped_prompts_count_in_the_average(recipe, group):
    knobs = recipe({"algorithm.zero_variance_filter": "off"}).algorithm
    groups = [group(recipe(), 0, [1, 0], [4, 4]), group(recipe(), 1, [0, 0], [4, 4])]
    assert_allclose(training_batch(groups, knobs).weights, 1 / (2 * 8))


def test_a_batch_in_which_every_prompt_is_dropped_is_no_batch(recipe, group):
    assert training_batch([group(recipe(), 0, [1, 1, 1, 1])], recipe().algorithm) is None


@settings(deadline=None)
@given(st.lists(st.integers(1, 40), min_size=1, max_size=60), st.integers(1, 20))
def test_buckets_hold_every_row_once_in_rising_length(lengths, rows):
    buckets = length_buckets(np.array(lengths), rows)
    flat = np.concatenate(buckets)
    assert sorted(flat.tolist()) == list(range(len(lengths)))
    assert (np.diff(np.array(lengths)[flat]) >= 0).all()
    assert max(len(bucket) for bucket in buckets) <= rows
