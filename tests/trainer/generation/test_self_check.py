"""Engine and learner are compared before the first token counts; and what a generator makes of verdicts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from forecurve.recipes.schema import LengthPenalty
from trainer.algorithm.rewards import length_penalty, rewards
from trainer.engines import TorchEngine, build_engine, sampling_config
from trainer.generation.generator import Generator
from trainer.generation.self_check import EngineMismatch, check, compare
from trainer.tasks import TorusTask, build_task
from trainer.types import Responses, Wave


def noisy(policy, scale):
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter.add_(scale * torch.randn_like(parameter))
    return policy


def test_an_engine_with_the_learners_weights_agrees_to_rounding(model, recipe):
    small = recipe()
    found = check(small, build_task(small), build_engine(small, build_task(small), lambda: model(small)), model(small))
    assert found.mean <= found.largest < 1e-4
    assert found.tokens > 20


@pytest.mark.parametrize("difference", ["weights", "temperature"])
def test_an_engine_that_differs_ends_the_run_by_name_with_both_figures(model, recipe, difference):
    small = recipe({"generation.temperature": 0.6})
    task = build_task(small)
    if difference == "weights":
        engine = TorchEngine(noisy(model(small), 0.1), sampling_config(small, task))
    else:
        engine = TorchEngine(model(small), sampling_config(recipe({"generation.temperature": 1.0}), task))
    with pytest.raises(EngineMismatch, match=r"mean \|log-prob difference\| .*self_check_threshold 0\.05"):
        check(small, task, engine, model(small))


def test_the_threshold_is_the_recipes(model, recipe):
    small = recipe({"generation.self_check_threshold": 50.0})
    task = build_task(small)
    engine = TorchEngine(noisy(model(small), 0.1), sampling_config(small, task))
    assert compare(small, task, engine, model(small)).mean > 0.05
    check(small, task, TorchEngine(noisy(model(small), 0.1), sampling_config(small, task)), model(small))


def test_a_bfloat16_head_on_one_side_only_is_seen_in_the_figure(model, recipe):
    both, task = recipe(), build_task(recipe())
    rounded = TorchEngine(model(both), sampling_config(recipe({"algorithm.logits_precision": "bf16"}), task))
    apart = compare(both, task, rounded, model(both)).mean
    together = compare(both, task, build_engine(both, task, lambda: model(both)), model(both)).mean
    assert apart > 20 * together


def test_a_generator_checks_itself_once_and_tells_the_figure_with_its_first_evaluation(model, recipe, base):
    small = recipe()
    generator = Generator(small, build_task(small), lambda: model(small))
    assert generator.evaluate(0, base).details["self_check_logprob_diff"] < 1e-4
    assert "self_check_logprob_diff" not in generator.evaluate(1, base).details


def test_an_evaluation_takes_its_weights_once_when_the_self_check_is_made(model, recipe, base, monkeypatch):
    small, taken = recipe(), []
    load = TorchEngine.load_weights

    def counted(engine, version, tensors):
        taken.append(version)
        return load(engine, version, tensors)

    monkeypatch.setattr(TorchEngine, "load_weights", counted)
    generator = Generator(small, build_task(small), lambda: model(small))
    generator.check()
    for step in (0, 1):
        generator.evaluate(step, base)
    assert taken == [0, 1]


def test_the_figure_is_told_also_where_a_wave_came_before_the_first_evaluation(model, recipe, base):
    small = recipe()
    generator = Generator(small, build_task(small), lambda: model(small))
    generator.check()
    generator.generate(Wave(((0, 0),), 0), lambda held: None)
    assert generator.evaluate(0, base).details["self_check_logprob_diff"] < 1e-4


def test_a_generator_whose_engine_disagrees_generates_nothing(model, recipe, monkeypatch):
    small = recipe()
    generator = Generator(small, build_task(small), lambda: model(small))
    noisy(generator._engine.counted._policy, 0.1)
    with pytest.raises(EngineMismatch):
        generator.generate(Wave(((0, 0),), 0), lambda held: None)


def responses_of(lengths):
    shape = (len(lengths), max(lengths))
    zeros = np.zeros(shape, dtype=np.int64)
    flags = np.ones(len(lengths), dtype=bool)
    inside = np.arange(shape[1]) < np.array(lengths)[:, None]
    return Responses(
        0, zeros, zeros.astype(np.float32), zeros.astype(np.int32), np.array(lengths), flags, inside, ~flags
    )


def test_the_length_penalty_is_that_of_a_10_and_falls_on_right_answers_only(recipe):
    control = LengthPenalty(longest=14, cushion=2)
    lengths = np.array([2, 12, 13, 14, 15, 40])
    np.testing.assert_allclose(length_penalty(lengths, control), [0, 0, -0.5, -1, -1, -1])
    small = recipe(
        {"length_control.kind": "penalty", "length_control.longest": 14, "length_control.cushion": 2}
        | {"rewards.correct": 2.0, "rewards.wrong": -3.0}
    )
    passed = np.array([True, True, True, False, False, True])
    np.testing.assert_allclose(rewards(small, passed, responses_of(lengths.tolist())), [2, 2, 1.5, -3, -3, 1])


def test_groups_keep_what_passed_apart_from_what_is_trained_on(model, recipe):
    small = recipe({"rewards.correct": 5.0, "rewards.wrong": 1.0, "length_control.kind": "none"})
    wave = Wave(tuple((i, i) for i in range(12)), 0)
    groups = Generator(small, build_task(small), lambda: model(small)).generate(wave, lambda held: None).groups
    task = build_task(small)
    for group in groups:
        again = task.passed(group.prompt, group.responses.tokens, group.responses.lengths.tolist())
        assert (group.passed == again).all()
        assert (group.rewards == np.where(again, 5.0, 1.0)).all()
    assert any(group.passed.any() for group in groups)


def test_cpu_time_that_verifiers_took_in_other_processes_is_part_of_what_waves_and_evaluations_cost(
    model, recipe, base, monkeypatch
):
    small, judged, passed = recipe(), [], TorusTask.passed
    monkeypatch.setattr(TorusTask, "passed", lambda *given: judged.append(given) or passed(*given))
    monkeypatch.setattr(TorusTask, "cpu_seconds", lambda task: 1000.0 * len(judged))
    task = build_task(small)
    generator = Generator(small, task, lambda: model(small))
    result = generator.generate(Wave(((0, 0), (1, 1)), 0), lambda held: None)
    assert 2000.0 < result.cost.cpu_seconds < 2500.0
    assert sum(group.cpu_seconds for group in result.groups) == pytest.approx(result.cost.cpu_seconds)
    judged.clear()
    held_out = len(task.held_out_prompts(small.evaluation.prompts))
    assert 0 < generator.evaluate(4, base).cost.cpu_seconds - 1000.0 * held_out < 500.0


def test_downstream_sets_are_judged_apart_from_the_validation_set(model, recipe, base, monkeypatch):
    small = recipe()
    task = build_task(small)
    easy = [task.held_out_prompts(16)[0]] * 3
    plain = Generator(small, task, lambda: model(small)).evaluate(4, base)
    monkeypatch.setattr(task, "downstream_prompts", lambda: {"easy": easy})  # a task is shared by all who build it
    with_set = Generator(small, task, lambda: model(small)).evaluate(4, base)
    assert with_set.counts == plain.counts
    assert with_set.details["downstream/easy/prompts"] == 3
    assert 0 <= with_set.details["downstream/easy"] <= 1
    assert not any(name.startswith("downstream") for name in plain.details)
