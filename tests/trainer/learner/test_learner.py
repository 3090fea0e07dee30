"""The learner: agrees with the engine, does not care how a batch is cut, and survives a step that is not finite."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import psutil
import pytest
import torch

from forecurve.recipes.schema import LearningRateMilestone
from trainer.algorithm.batching import training_batch
from trainer.algorithm.schedule import learning_rate
from trainer.errors import CheckpointError
from trainer.generation.generator import Generator
from trainer.learner import Learner
from trainer.models import TinyConfig, TinyDecoder, build_model
from trainer.tasks import build_task
from trainer.types import Wave


def sampled(recipe, model, ordinals=range(8)):
    generator = Generator(recipe, build_task(recipe), lambda: model(recipe))
    return generator.generate(Wave(tuple((ordinal, ordinal) for ordinal in ordinals), 0), lambda held: None).groups


def gradients(recipe, model, groups, rows):
    learner = Learner(recipe, model(recipe), rows_per_bucket=rows)
    batch = training_batch(groups, recipe.algorithm)
    sums = learner.gradients(batch, learner.plan(batch))
    return float(sums[0]), torch.cat([p.grad.flatten() for p in learner.policy.parameters()])


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_learner_and_engine_agree_on_the_log_probs_of_every_sampled_token(recipe, model, precision):
    small = recipe({"algorithm.logits_precision": precision, "algorithm.zero_variance_filter": "off"})
    result = Learner(small, model(small)).step(sampled(small, model))
    assert result.metrics["policy/logprob_diff_mean"] < (1e-5 if precision == "fp32" else 1e-2)
    assert result.metrics["policy/ratio_mean"] == pytest.approx(1.0, abs=1e-4 if precision == "fp32" else 1e-2)


def test_a_step_says_how_much_memory_its_process_has_taken(recipe, model, group):
    learner = Learner(recipe(), model(recipe()))
    before = learner.step([group(recipe(), 0, [1, 0, 0, 1])]).memory
    held = np.ones(before.peak // 8 + 2**24)  # beyond what the process ever had
    after = learner.step([group(recipe(), 1, [1, 0, 0, 1])]).memory
    assert (before.total, after.total) == (None, None)
    assert after.peak - before.peak >= 0.9 * (held.nbytes - before.peak)
    assert psutil.Process().memory_info().rss <= after.peak + 2**24


@pytest.mark.parametrize("aggregation", ["prompt", "sample", "token"])
@pytest.mark.parametrize("loss", ["cispo", "dapo"])
def test_the_gradient_does_not_depend_on_how_the_batch_is_cut(recipe, model, group, loss, aggregation):
    small = recipe({"algorithm.loss": loss, "algorithm.aggregation": aggregation})
    groups = [group(small, i, [1, 0, i % 2, 0]) for i in range(6)]
    whole_loss, whole = gradients(small, model, groups, rows=1000)
    for rows in (1, 5, 8):
        cut_loss, cut = gradients(small, model, groups, rows)
        assert cut_loss == pytest.approx(whole_loss, rel=1e-5)
        torch.testing.assert_close(cut, whole, rtol=1e-4, atol=1e-6 * float(whole.abs().max()))


def test_the_gradient_does_not_depend_on_padding(recipe, model, group):
    groups = [group(recipe(), i, [1, 0, 0, 1]) for i in range(3)]
    padded = [
        replace(
            g, responses=replace(g.responses, tokens=np.pad(g.responses.tokens, ((0, 0), (0, 7)), constant_values=9))
        )
        for g in groups
    ]
    _, plain = gradients(recipe(), model, groups, rows=100)
    _, wide = gradients(recipe(), model, padded, rows=100)
    torch.testing.assert_close(wide, plain)


def test_a_step_moves_the_policy_towards_what_was_rewarded(recipe, model):
    small = recipe(
        {"optimizer.warmup_steps": 0, "algorithm.loss": "dapo"}
    )  # DAPO's loss is an objective; CISPO's is not
    learner = Learner(small, model(small))
    groups = sampled(small, model, range(12))
    before = learner.step(groups).metrics["train/loss"]
    assert learner.step(groups).metrics["train/loss"] < before - 0.01


def test_a_gradient_that_is_not_finite_leaves_the_weights_alone_and_is_counted(recipe, model, group):
    small = recipe({"algorithm.zero_variance_filter": "off"})
    learner = Learner(small, model(small))
    bad = group(small, 0, [1, 0, float("nan"), 0])
    before = learner.weights()
    result = learner.step([bad])
    assert (result.not_finite, result.applied) == (True, False)
    assert result.metrics["train/skipped"] == 1
    assert all((value == before[name]).all() for name, value in learner.weights().items())
    good = learner.step([group(recipe(), 1, [1, 0, 0, 0])])
    assert (good.not_finite, good.applied, good.version) == (False, True, 2)
    assert np.isfinite(good.metrics["train/loss"])


def test_a_reward_that_is_not_a_number_is_counted_and_not_trained_on(recipe, model, group):
    learner = Learner(recipe(), model(recipe()))
    result = learner.step([group(recipe(), 0, [1, 0, float("nan"), 0]), group(recipe(), 1, [1, 0, 0, 0])])
    assert all(np.isfinite(value).all() for value in learner.weights().values())
    assert result.metrics["train/kept_prompts"] == 1  # the group is dropped, the rest is trained on


def test_a_batch_without_anything_to_learn_changes_nothing_but_the_version(recipe, model, group):
    learner = Learner(recipe(), model(recipe()))
    before = learner.weights()
    result = learner.step([group(recipe(), 0, [1, 1, 1, 1])])
    assert (result.applied, result.not_finite, result.version) == (False, False, 1)
    assert all((value == before[name]).all() for name, value in learner.weights().items())


@pytest.mark.parametrize("before", [0, 1, 3])
@pytest.mark.parametrize("loss", ["cispo", "dapo"])
def test_a_learner_put_back_to_a_state_goes_on_bit_for_bit(recipe, model, group, before, loss):
    recipe = partial(recipe, {"algorithm.loss": loss})
    batches = [[group(recipe(), 10 * step + i, [1, 0, 0, 1]) for i in range(3)] for step in range(before + 2)]
    straight = Learner(recipe(), model(recipe()))
    for batch in batches[:before]:
        straight.step(batch)
    state = straight.state()
    resumed = Learner(recipe(), build_model(recipe()))
    resumed.load_state(state)
    for batch in batches[before:]:
        ours, theirs = straight.step(batch), resumed.step(batch)
        assert ours.metrics == theirs.metrics
    assert all((value == straight.weights()[name]).all() for name, value in resumed.weights().items())


def test_a_rehearsal_leaves_no_trace(recipe, model, group):
    knobs = recipe()
    rehearsed, other = (Learner(knobs, model(knobs)) for _ in range(2))
    groups = [group(knobs, i, [1, 0, 0, 1]) for i in range(4)]
    for _ in range(2):
        rehearsed.rehearse()
        found, expected = (learner.step(groups) for learner in (rehearsed, other))
        assert found.metrics == expected.metrics
        for name, value in expected.weights.source.items():
            np.testing.assert_array_equal(found.weights.source[name], value)


def test_the_state_of_another_model_is_refused(recipe, model):
    learner = Learner(recipe(), model(recipe()))
    with pytest.raises(CheckpointError, match="do not fit"):
        learner.load_state(Learner(recipe(), TinyDecoder(TinyConfig(width=32))).state())


def test_the_learning_rate_warms_up_stays_and_follows_milestones(recipe):
    optimizer = recipe().optimizer.model_copy(
        update={
            "learning_rate": 1e-3,
            "warmup_steps": 10,
            "milestones": (LearningRateMilestone(step=50, factor=30), LearningRateMilestone(step=60, factor=0.1)),
        }
    )
    rates = [learning_rate(optimizer, step, 2000) for step in (1, 5, 10, 49, 50, 59, 60, 1000)]
    np.testing.assert_allclose(rates, [1e-4, 5e-4, 1e-3, 1e-3, 3e-2, 3e-2, 1e-4, 1e-4])


@pytest.mark.parametrize(
    ("schedule", "rates"),
    [
        ("linear", [0.25, 1.0, 1.0, 0.5, 0.1, 0.0]),
        ("cosine", [0.25, 1.0, 1.0, 0.5, 0.5 * (1 + np.cos(0.9 * np.pi)), 0.0]),
    ],
)
def test_a_falling_schedule_starts_after_the_warm_up_and_still_moves_at_the_last_step(recipe, schedule, rates):
    knobs = {"learning_rate": 1.0, "warmup_steps": 4, "schedule": schedule}
    optimizer = recipe().optimizer.model_copy(update=knobs)
    found = [learning_rate(optimizer, step, 14) for step in (1, 4, 5, 10, 14, 15)]
    np.testing.assert_allclose(found, rates, atol=1e-12)


def test_a_milestone_multiplies_a_falling_schedule(recipe):
    milestone = LearningRateMilestone(step=10, factor=0.1)
    knobs = {"learning_rate": 1.0, "warmup_steps": 4, "schedule": "linear", "milestones": (milestone,)}
    assert learning_rate(recipe().optimizer.model_copy(update=knobs), 10, 14) == pytest.approx(0.05)
