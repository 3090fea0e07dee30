"""The gradient of a batch is one number per weight, however the batch is cut, ordered, dealt out or padded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.trainer.models.packing import pack_anywhere
from trainer.algorithm.batching import TrainingBatch, training_batch
from trainer.learner import Learner
from trainer.learner.plan import micro_batches, shares

CLOSE = 3e-6  # what float32 rounds in another order of sums
ONE_RUN = 10**9
"""More tokens than any batch has: everything at once."""

cases = settings(deadline=None, max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
losses = st.sampled_from(["cispo", "gspo", "dapo", "grpo"])
aggregations = st.sampled_from(["prompt", "sample"])


@pytest.fixture
def some(recipe, model, group):
    """A learner and a batch of a few groups of random lengths, with forced and with not finite tokens."""

    def make(seed: int, loss: str = "cispo", aggregation: str = "prompt", groups: int = 4):
        changes = {"algorithm.loss": loss, "algorithm.aggregation": aggregation, "algorithm.kl_coefficient": 0.1}
        if loss == "gspo":
            changes |= {"algorithm.clip_low": 0.05, "algorithm.clip_high": 0.05}
        knobs = recipe(changes)
        made = [group(knobs, 100 * seed + i, [1, 0, i % 2, 0]) for i in range(groups)]
        rng = np.random.default_rng(seed)
        for each in made:
            each.responses.sampled[0, 1] = False
            each.responses.logprobs[1, 0] = rng.choice([np.nan, -np.inf])
        learner = Learner(knobs, model(knobs))
        with torch.no_grad():
            learner.policy.head_weight.mul_(1.1)  # away from the reference
        return learner, training_batch(made, knobs.algorithm)

    return make


def gradient(learner, batch, plan):
    sums = learner.gradients(batch, plan)
    return sums[:-1], torch.cat([p.grad.flatten() for p in learner.policy.parameters()])


def same(ours, theirs):
    for mine, other in zip(ours, theirs, strict=True):
        assert float((mine - other).abs().max()) <= CLOSE * max(1.0, float(other.abs().max()))


@cases
@given(st.integers(0, 50), losses, st.integers(20, 400), st.integers(1, 9))
def test_rows_end_to_end_give_the_gradient_of_rows_in_buckets(some, seed, loss, room, rows):
    learner, batch = some(seed, loss)
    whole = gradient(learner, batch, micro_batches(batch, ONE_RUN))
    with pytest.MonkeyPatch.context() as patched:
        pack_anywhere(patched)
        packing, _ = some(seed, loss)
        plan = micro_batches(batch, room, rows, packs=True)
        same(gradient(packing, batch, plan), whole)
        same(gradient(packing, batch, [part for rank in shares(batch, room, 2, packs=True) for part in rank]), whole)


@cases
@given(st.integers(0, 50), losses, aggregations, st.integers(20, 400), st.integers(1, 9))
def test_micro_batches_and_buckets_of_any_size_give_the_gradient_of_the_whole(
    some, seed, loss, aggregation, room, rows
):
    learner, batch = some(seed, loss, aggregation)
    whole = gradient(learner, batch, micro_batches(batch, ONE_RUN, rows_per_bucket=1000))
    same(gradient(learner, batch, micro_batches(batch, room, rows)), whole)


@cases
@given(st.integers(0, 50), losses, aggregations, st.integers(20, 400), st.integers(1, 6))
def test_the_gradients_of_all_ranks_sum_to_that_of_one(some, seed, loss, aggregation, room, ranks):
    learner, batch = some(seed, loss, aggregation)
    whole = gradient(learner, batch, micro_batches(batch, ONE_RUN))
    plans = shares(batch, room, ranks)
    assert len({len(plan) for plan in plans}) == 1
    assert all(len(micro.buckets) == 1 for plan in plans for micro in plan)
    same(gradient(learner, batch, [micro for plan in plans for micro in plan]), whole)


@cases
@given(st.integers(0, 50), losses, st.permutations(range(16)))
def test_the_order_of_rows_does_not_matter(some, seed, loss, order):
    learner, batch = some(seed, loss)
    rows = np.array(order)
    by_row = ("prompt_of_row", "tokens", "generator_logprobs", "trained", "lengths", "advantages", "weights")
    mixed = replace(batch, **{name: getattr(batch, name)[rows] for name in by_row})
    whole = gradient(learner, batch, micro_batches(batch, ONE_RUN))
    same(gradient(learner, mixed, micro_batches(mixed, ONE_RUN)), whole)


@cases
@given(st.integers(0, 50), losses, st.integers(1, 12))
def test_padding_does_not_matter_whatever_is_in_it(some, seed, loss, extra):
    learner, batch = some(seed, loss)

    def wide(rows, fill):
        return np.pad(rows, ((0, 0), (0, extra)), constant_values=fill)

    padded = replace(
        batch,
        tokens=wide(batch.tokens, 9),
        generator_logprobs=wide(batch.generator_logprobs, -3.0),
        trained=wide(batch.trained, False),
        lengths=np.full_like(batch.lengths, batch.tokens.shape[1] + extra),
    )
    whole = gradient(learner, batch, micro_batches(batch, ONE_RUN))
    same(gradient(learner, padded, micro_batches(padded, ONE_RUN)), whole)


def apart(batch):
    """The batch with every row run by itself."""
    each = replace(batch)
    vars(each)["runs_as"] = np.arange(len(batch.lengths))
    return each


@cases
@given(st.integers(0, 50), losses, aggregations, st.integers(20, 400), st.lists(st.integers(0, 3), min_size=8))
def test_responses_that_are_the_same_run_once_and_weigh_what_they_do_by_themselves(
    some, seed, loss, aggregation, room, copied
):
    learner, batch = some(seed, loss, aggregation)
    for group, source in enumerate(copied[:4]):  # the last row of a group as one of its first, with its own log-probs
        row, other = 4 * group + 3, 4 * group + source % 3
        batch.tokens[row], batch.lengths[row] = batch.tokens[other], batch.lengths[other]
        inside = np.arange(batch.tokens.shape[1]) < batch.lengths[row]
        batch.trained[row] = inside & (np.arange(len(inside)) != 2)  # and a token less, or more, that counts
        batch.generator_logprobs[row] = np.where(batch.trained[row], -0.5, 0)
    plan, each = micro_batches(batch, room), apart(batch)
    whole = gradient(learner, each, micro_batches(each, ONE_RUN))
    same(gradient(learner, batch, plan), whole)
    assert sorted(np.concatenate([micro.rows for micro in plan])) == [row for row in range(16) if row % 4 < 3]


def test_the_same_tokens_after_another_prompt_or_before_more_are_not_the_same(recipe, group):
    first, second = (group(recipe(), seed, [1, 0], lengths=[4, 6]) for seed in range(2))
    for each in (first, second):
        each.responses.tokens[:] = 5
    batch = training_batch([first, second], recipe().algorithm)
    assert batch.runs_as.tolist() == [0, 1, 2, 3]


def rows_of(lengths, prompt_lengths):
    """A batch of which only sizes matter: four rows a prompt."""
    count = len(lengths)
    return TrainingBatch(
        prompts=tuple(np.zeros(n, dtype=np.int64) for n in prompt_lengths),
        prompt_of_row=np.repeat(np.arange(len(prompt_lengths)), count // len(prompt_lengths)),
        tokens=np.repeat(np.arange(count)[:, None], max(lengths), axis=1),  # no two alike
        generator_logprobs=np.zeros((count, max(lengths)), dtype=np.float32),
        trained=np.arange(max(lengths)) < np.array(lengths)[:, None],
        lengths=np.array(lengths),
        advantages=np.zeros(count, dtype=np.float32),
        weights=np.zeros(count, dtype=np.float32),
        not_finite_tokens=0,
    )


sizes = st.integers(1, 6).flatmap(
    lambda prompts: st.tuples(
        st.lists(st.integers(1, 60), min_size=4 * prompts, max_size=4 * prompts),
        st.lists(st.integers(1, 20), min_size=prompts, max_size=prompts),
    )
)


@settings(deadline=None)
@given(sizes, st.integers(30, 500), st.integers(1, 5), st.booleans())
def test_every_row_is_run_once_and_within_the_room_unless_it_is_alone(sizes, room, ranks, packs):
    batch = rows_of(*sizes)
    for plans in ([micro_batches(batch, room, packs=packs)], shares(batch, room, ranks, packs)):
        counted = [micro for plan in plans for micro in plan if micro.counts]
        assert sorted(np.concatenate([micro.rows for micro in counted])) == list(range(len(batch.lengths)))
        for micro in counted:
            owners = np.unique(batch.prompt_of_row[micro.rows])
            run = len(owners) * max(len(batch.prompts[owner]) for owner in owners)
            lengths = [batch.lengths[rows] for rows in micro.buckets]
            run += sum(int(each.sum()) if packs else len(each) * int(each.max()) for each in lengths)
            assert len(micro.rows) == 1 or run <= room


def test_rows_end_to_end_take_no_room_for_padding():
    batch = rows_of([10] * 3 + [50], [5])
    assert len(micro_batches(batch, 5 + 80, packs=True)) == 1
    assert len(micro_batches(batch, 5 + 80, rows_per_bucket=4)) == 2


def test_long_rows_do_not_widen_short_ones():
    batch = rows_of([10] * 4 + [5000] * 4, [5, 5])
    (micro,) = micro_batches(batch, 10**6)
    padded = sum(len(rows) * int(batch.lengths[rows].max()) for rows in micro.buckets)
    assert padded == 4 * 10 + 4 * 5000


def test_a_prompt_runs_once_for_all_its_responses_where_they_fit():
    batch = rows_of([10] * 8, [5, 5])
    assert [len(micro.rows) for micro in micro_batches(batch, 50)] == [4, 4]


def test_forced_and_not_finite_tokens_weigh_nothing_and_count_in_no_denominator(recipe, group):
    each = group(recipe(), 0, [1, 0], lengths=[4, 6])
    each.responses.sampled[0, 1] = False
    each.responses.logprobs[1, 2] = np.nan
    batch = training_batch([each], recipe().algorithm)
    assert (batch.token_count, batch.not_finite_tokens) == (8, 1)
    np.testing.assert_allclose(batch.weights, [1 / 8, 1 / 8], rtol=1e-6)
    assert not batch.trained[0, 1]
    assert not batch.trained[1, 2]
    assert float((batch.weights[:, None] * batch.trained).sum()) == pytest.approx(1.0)


def test_a_batch_of_which_no_token_can_be_trained_on_is_no_batch(recipe, group):
    each = group(recipe(), 0, [1, 0], lengths=[4, 6])
    each.responses.logprobs[:] = np.nan
    assert training_batch([each], recipe().algorithm) is None
