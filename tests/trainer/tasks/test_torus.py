"""The torus task: prompts, rewards, the held-out share, the exact ceiling."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecurve.recipes.schema import Interruption
from trainer.errors import ConfigurationError
from trainer.tasks import TorusTask
from trainer.tasks import vocabulary as vocab
from trainer.tasks.walks import LAYOUTS, Layout, Walk, is_held_out
from trainer.types import Prompt

EXAMPLE = Walk(((6, 0),), (("E", 3), ("W", 2), ("E", 2), ("E", 3), ("S", 3)))


def reward(task: TorusTask, walk: Walk, response: str) -> bool:
    tokens = np.array([vocab.encode(response.removesuffix("$")) + ([vocab.END] if response.endswith("$") else [])])
    return bool(task.passed(task.prompt(walk), tokens, [tokens.shape[1]])[0])


def test_a_walk_wraps_around_and_its_prompt_is_padded_before_the_equals_sign():
    task = TorusTask()
    prompt = task.prompt(EXAMPLE)
    assert prompt.text == "60E3W2E2E3S3="
    assert prompt.answer == "27"
    assert vocab.texts(prompt.tokens[None], [28]) == ["^60E3W2E2E3S3..............="]


def test_the_worked_response_begins_with_the_start_cell_only_when_it_is_echoed():
    cells = LAYOUTS["open"].cells(EXAMPLE)
    assert TorusTask(echo_start=True).chain(EXAMPLE, cells) == "609070902027>27"
    assert TorusTask(echo_start=False).chain(EXAMPLE, cells) == "9070902027>27"


def judged(task: TorusTask, prompt: Prompt, response: str) -> bool:
    tokens = [*vocab.encode(response.removesuffix("$")), vocab.END]
    return bool(task.passed(prompt, np.array([tokens]), [len(tokens)])[0])


def solution(task: TorusTask, prompt: Prompt) -> str:
    """The clean chain of an open prompt, its end included, worked out from the prompt's text."""
    x, y = int(prompt.text[0]), int(prompt.text[1])
    chain = f"{x}{y}" if task.echo_start else ""
    for place in range(2, len(prompt.text) - 1, 2):
        step = int(prompt.text[place + 1])
        x += {"E": step, "W": -step}.get(prompt.text[place], 0)
        y += {"N": step, "S": -step}.get(prompt.text[place], 0)
        chain += f"{x % 10}{y % 10}"
    return f"{chain}>{x % 10}{y % 10}$"


@pytest.mark.parametrize(
    ("response", "right"),
    [
        ("9070902027>27$", 1),
        (">27$", 1),  # how it gets there is free
        ("9070902027>28$", 0),
        ("9070902027>27", 0),  # did not end itself
        ("9070902027$", 0),
        ("90>70>27$", 1),  # the last answer counts: one that is cut while it answers states it again
        ("9070902027>27>$", 0),
        (">27>28$", 0),
        (">2$", 0),
        (">27.$", 0),
        ("$", 0),
    ],
)
def test_the_verifier_wants_the_right_cell_behind_the_last_mark_and_an_end(response, right):
    assert reward(TorusTask(), EXAMPLE, response) == right


def test_training_prompts_are_a_function_of_seed_and_index_and_never_held_out():
    task = TorusTask(seed=3)
    drawn = [task.training_prompt(index) for index in range(300)]
    assert not any(is_held_out(prompt.text) for prompt in drawn)
    assert drawn[17].text == TorusTask(seed=3).training_prompt(17).text
    assert drawn[17].text != TorusTask(seed=4).training_prompt(17).text
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
    task, walk = TorusTask(1, 12), Walk(((x, y),), tuple(moves))
    chain = task.chain(walk, task.layout.cells(walk)) + "$"
    assert reward(task, walk, chain) == 1
    assert len(chain) == task.chain_tokens(len(moves))


def test_impossible_move_counts_are_refused_with_the_values():
    with pytest.raises(ValueError, match="got 5 and 4"):
        TorusTask(5, 4)


WALL_EAST = Layout("walls", blocked=frozenset({(3, 0)}))


def test_a_robot_stops_before_a_wall_and_goes_on_from_there():
    walk = Walk(((0, 0),), (("E", 3), ("E", 3), ("N", 1), ("E", 3)))
    assert WALL_EAST.cells(walk) == [(2, 0), (2, 0), (2, 1), (5, 1)]


def test_the_map_of_the_walls_blocks_some_cells_and_cuts_none_off():
    layout = LAYOUTS["walls"]
    free = {(x, y) for x in range(10) for y in range(10)} - layout.blocked
    assert 10 <= len(layout.blocked) <= 25
    reached, frontier = set(), [min(free)]
    while frontier:
        cell = frontier.pop()
        if cell not in reached:
            reached.add(cell)
            frontier += [layout.moved(cell, (direction, 1)) for direction in "NSEW"]
    assert reached == free


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_nobody_starts_or_ends_a_move_on_a_blocked_cell(name):
    layout, rng = LAYOUTS[name], np.random.default_rng(0)
    for _ in range(200):
        walk = layout.draw(rng, 1, 12)
        assert not layout.blocked & {*walk.starts, *layout.cells(walk)}


def test_two_robots_move_in_turn_and_the_answer_is_both_last_cells():
    task = TorusTask(1, 12, layout="two-robots")
    walk = Walk(((0, 0), (5, 5)), (("E", 1), ("N", 1), ("E", 2)))
    assert task.layout.cells(walk) == [(1, 0), (5, 6), (3, 0)]
    assert task.prompt(walk).text == "0055E1N1E2="
    assert task.prompt(walk).answer == "3056"
    assert task.chain(walk, task.layout.cells(walk)) == "0055105630>3056"
    assert reward(task, walk, ">3056$")
    assert not reward(task, walk, ">30$")
    assert task.prompt(Walk(((0, 0), (5, 5)), (("E", 1),))).answer == "1055"  # the second never moved


def test_a_pool_is_drawn_once_and_is_the_same_for_every_seed():
    pool = TorusTask(pool=50, seed=1)
    texts = [pool.training_prompt(index).text for index in range(50)]
    assert len(set(texts)) == 50
    assert not any(is_held_out(text) for text in texts)
    assert texts == [TorusTask(pool=60, seed=2).training_prompt(index).text for index in range(50)]
    assert [pool.training_prompt(index).index for index in range(3)] == [0, 1, 2]


def test_a_pool_beyond_what_the_task_has_is_refused_with_the_number_that_there_is():
    with pytest.raises(ConfigurationError, match=r"task.pool is 5000 but there are only about 1\d\d\d"):
        TorusTask(1, 1, pool=5000).training_prompt(0)


@settings(deadline=None, max_examples=30)
@given(st.integers(4, 30), st.integers(0, 10), st.booleans(), st.integers(1, 4), st.integers(0, 6))
def test_the_ceiling_under_interruption_is_the_chance_that_the_cells_are_written_in_time(
    low, spread, echo, answer_tokens, more
):
    """Oracle: every moment of interruption, one by one, with the response that a perfect chain gives then."""
    task = TorusTask(echo_start=echo)
    prompts, max_tokens = task.held_out_prompts(40), low + spread + answer_tokens + 1 + more
    interruption = Interruption(after_low=low, after_high=low + spread, phrase=">", answer_tokens=answer_tokens)
    passed = []
    for prompt in prompts:
        chain = solution(task, prompt)
        for moment in range(low, low + spread + 1):
            written = chain[:moment]
            response = chain if ">" in written else written + ">" + (prompt.answer + "$")[:answer_tokens]
            whole = ">" in written or chain.startswith(written + ">")
            ended = response.endswith("$") and len(response) <= max_tokens
            passed.append(whole and ended and judged(task, prompt, response))
    assert task.ceiling(prompts, max_tokens, interruption) == pytest.approx(np.mean(passed))


def test_a_phrase_with_characters_that_the_torus_lacks_is_refused():
    with pytest.raises(ConfigurationError, match="'T', which the torus has no token for"):
        TorusTask().encode("Time is up>")
