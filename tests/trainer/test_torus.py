"""The torus task: prompts, rewards, the held-out share, the exact ceiling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.tasks import TorusTask
from trainer.tasks import vocabulary as vocab
from trainer.tasks.torus import Walk, is_held_out

EXAMPLE = Walk((6, 0), (("E", 3), ("W", 2), ("E", 2), ("E", 3), ("S", 3)))


def reward(task: TorusTask, walk: Walk, response: str) -> float:
    tokens = np.array([vocab.encode(response.removesuffix("$")) + ([vocab.END] if response.endswith("$") else [])])
    return float(task.rewards(task.prompt(walk), tokens, [tokens.shape[1]])[0])


def test_a_walk_wraps_around_and_its_prompt_is_padded_before_the_equals_sign():
    task = TorusTask()
    prompt = task.prompt(EXAMPLE)
    assert prompt.text == "60E3W2E2E3S3="
    assert prompt.answer == "27"
    assert vocab.texts(prompt.tokens[None], [28]) == ["^60E3W2E2E3S3..............="]


def test_the_worked_response_begins_with_the_start_cell_only_when_it_is_echoed():
    assert TorusTask(echo_start=True).chain(EXAMPLE, EXAMPLE.cells()) == "609070902027>27"
    assert TorusTask(echo_start=False).chain(EXAMPLE, EXAMPLE.cells()) == "9070902027>27"


@pytest.mark.parametrize(
    ("response", "right"),
    [
        ("9070902027>27$", 1),
        (">27$", 1),  # how it gets there is free
        ("9070902027>28$", 0),
        ("9070902027>27", 0),  # did not end itself
        ("9070902027$", 0),
        ("90>70>27$", 0),
        (">2$", 0),
        (">27.$", 0),
        ("$", 0),
    ],
)
def test_the_reward_wants_one_mark_the_right_cell_and_an_end(response, right):
    assert reward(TorusTask(), EXAMPLE, response) == right


def test_training_prompts_are_a_function_of_seed_and_ordinal_and_never_held_out():
    task = TorusTask()
    drawn = [task.training_prompt(3, ordinal) for ordinal in range(300)]
    assert not any(is_held_out(prompt.text) for prompt in drawn)
    assert drawn[17].text == TorusTask().training_prompt(3, 17).text
    assert drawn[17].text != task.training_prompt(4, 17).text
    assert {(len(prompt.text) - 3) // 2 for prompt in drawn} == set(range(3, 13))


def test_the_held_out_set_is_fixed_distinct_and_grows_by_appending():
    task = TorusTask()
    few, many = task.held_out_prompts(32), task.held_out_prompts(64)
    assert [prompt.text for prompt in few] == [prompt.text for prompt in many[:32]]
    assert len({prompt.text for prompt in many}) == 64
    assert all(is_held_out(prompt.text) for prompt in many)


def test_a_tenth_of_all_prompts_is_held_out():
    rng = np.random.default_rng(0)
    texts = [f"{rng.integers(1e9)}" for _ in range(5000)]
    assert 0.08 < np.mean([is_held_out(text) for text in texts]) < 0.12


@pytest.mark.parametrize(("echo", "budget", "moves"), [(True, 24, 9), (True, 30, 12), (False, 24, 10)])
def test_the_generation_budget_sets_an_exact_ceiling(echo, budget, moves):
    task = TorusTask(echo_start=echo)
    prompts = task.held_out_prompts(200)
    fits = np.mean([(len(prompt.text) - 3) // 2 <= moves for prompt in prompts])
    assert task.ceiling(prompts, budget) == pytest.approx(fits)


def test_a_task_without_enough_held_out_prompts_gives_those_it_has():
    prompts = TorusTask(1, 1).held_out_prompts(4000)
    assert 50 < len(prompts) < 1200  # 100 cells x 12 moves, a tenth of them


@settings(deadline=None)
@given(
    st.integers(0, 9),
    st.integers(0, 9),
    st.lists(st.tuples(st.sampled_from("NSEW"), st.integers(1, 3)), min_size=1, max_size=12),
)
def test_the_worked_response_always_earns_the_reward_and_its_length_is_known(x, y, moves):
    task, walk = TorusTask(1, 12), Walk((x, y), tuple(moves))
    chain = task.chain(walk, walk.cells()) + "$"
    assert reward(task, walk, chain) == 1
    assert len(chain) == task.chain_tokens(len(moves))


def test_impossible_move_counts_are_refused_with_the_values():
    with pytest.raises(ValueError, match="got 5 and 4"):
        TorusTask(5, 4)
