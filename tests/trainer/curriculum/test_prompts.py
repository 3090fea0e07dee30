"""The order of prompts: epochs, what is left out of them, shares of a mixture, and coming back to the same order."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.curriculum.mixture import Mixture
from trainer.curriculum.prompts import PromptOrder, PromptsExhausted, build_order
from trainer.errors import ConfigurationError
from trainer.tasks import build_task

counts = st.integers(1, 40)
seeds = st.integers(0, 2**31 - 1)
weights = st.dictionaries(
    st.sampled_from(["math", "code", "logic", "essay", "torus"]), st.floats(0.01, 10), min_size=2, max_size=5
)


def drawn(order: PromptOrder, ordinals) -> list[int]:
    return [order.next(ordinal) for ordinal in ordinals]


@settings(deadline=None)
@given(counts, seeds)
def test_every_prompt_comes_once_an_epoch_and_epochs_differ_in_order(count, seed):
    order = PromptOrder(count, seed)
    epochs = [drawn(order, range(epoch * count, (epoch + 1) * count)) for epoch in range(3)]
    assert all(sorted(epoch) == list(range(count)) for epoch in epochs)
    assert count < 10 or len({tuple(epoch) for epoch in epochs}) == 3


def test_an_endless_task_gives_every_ordinal_its_own_prompt():
    order = PromptOrder(None, 3)
    assert drawn(order, [0, 7, 3]) == [0, 7, 3]
    order.observe(7, 4, 4)
    assert order.state() == {} == order.metrics()


def test_another_seed_is_another_order_and_the_same_seed_the_same():
    assert drawn(PromptOrder(50, 1), range(100)) == drawn(PromptOrder(50, 1), range(100))
    assert drawn(PromptOrder(50, 1), range(100)) != drawn(PromptOrder(50, 2), range(100))


@settings(deadline=None)
@given(st.integers(2, 12), seeds, st.data())
def test_a_prompt_is_left_out_from_the_epoch_after_its_whole_history_reached_the_threshold(count, seed, data):
    """Oracle: a plain walk through the epochs with a table of totals."""
    order = PromptOrder(count, seed, threshold=0.75, floor=1)
    totals = {index: [0, 0] for index in range(count)}
    active, ordinal = set(range(count)), 0
    for _ in range(4):
        epoch = drawn(order, range(ordinal, ordinal + len(active)))
        ordinal += len(active)
        assert set(epoch) == active
        for index in epoch:
            passed = data.draw(st.integers(0, 4))
            order.observe(index, passed, 4)
            totals[index][0] += passed
            totals[index][1] += 4
        rates = {index: totals[index][0] / totals[index][1] for index in active}
        solved = sorted((i for i in active if rates[i] >= 0.75), key=lambda i: (-rates[i], i))
        active -= set(solved[: len(active) - 1])


def test_one_lucky_group_does_not_take_a_prompt_out_when_its_history_is_poor():
    order = PromptOrder(2, 0, threshold=0.9)
    for ordinal in range(2):
        order.observe(order.next(ordinal), 0, 4)
    order.next(2)  # the first epoch ends here
    order.observe(0, 4, 4)
    assert set(drawn(order, range(4, 6))) == {0, 1}


def test_what_is_solved_in_the_middle_of_an_epoch_still_comes_in_it():
    order = PromptOrder(4, 0, threshold=0.9)
    first = order.next(0)
    order.observe(first, 4, 4)
    assert sorted(drawn(order, range(4))) == [0, 1, 2, 3]
    assert first not in drawn(order, range(4, 7))
    assert order.metrics() == {"prompts/epoch": 1.0, "prompts/active": 3.0, "prompts/left_out": 1.0}


def test_a_pool_that_is_solved_ends_by_name_unless_a_floor_keeps_some():
    for floor, left in ((0, None), (2, {2, 3})):
        order = PromptOrder(4, 0, threshold=0.9, floor=floor)
        for index in range(4):
            order.observe(index, 100 - (index > 1), 100)
        if left is None:
            with pytest.raises(PromptsExhausted, match="none is left to train on"):
                drawn(order, range(5))
        else:
            assert set(drawn(order, range(4, 6))) == left


@settings(deadline=None)
@given(st.integers(2, 20), seeds, st.integers(0, 80), st.integers(0, 30), st.booleans())
def test_a_restored_order_goes_on_as_the_other_and_knows_the_prompts_in_flight(count, seed, asked, in_flight, mixed):
    def order() -> PromptOrder:
        shares = {"math": 2, "code": 1} if mixed else {}
        names = (["math", "code"] * count)[:count]
        return PromptOrder(count, seed, threshold=0.9, floor=1, names=names, weights=shares)

    one = order()
    past = []
    for ordinal in range(asked):
        past.append(one.next(ordinal))
        one.observe(past[-1], past[-1] % 3 * 2, 4)
    other = order()
    other.load_state(json.loads(json.dumps(one.state())))  # as a checkpoint keeps it
    first = max(0, asked - in_flight)
    assert drawn(other, range(first, asked)) == past[first:]
    for ordinal in range(asked, asked + 60):
        index = one.next(ordinal)
        assert other.next(ordinal) == index
        one.observe(index, index % 5, 4)
        other.observe(index, index % 5, 4)
    assert one.metrics() == other.metrics()


@settings(deadline=None)
@given(counts, seeds, st.integers(0, 120), st.integers(0, 40), st.booleans())
def test_a_fork_with_another_seed_begins_an_epoch_where_it_goes_on(count, seed, ordinal, ahead, mixed):
    names = ["a" if index % 3 else "b" for index in range(count)] if mixed and count > 1 else []
    weights_given = dict.fromkeys(set(names), 1.0)

    def order(seed: int) -> PromptOrder:
        return PromptOrder(count, seed, names=names, weights=weights_given)

    parent, same, child = order(seed), order(seed), order(seed + 1)
    drawn(parent, range(ordinal + ahead))
    state = json.loads(json.dumps(parent.state()))
    same.fork(state, ordinal)
    assert drawn(same, range(ordinal, ordinal + 50)) == drawn(parent, range(ordinal, ordinal + 50))
    child.fork(state, ordinal)
    came = drawn(child, range(ordinal, ordinal + 4 * count))
    for part in set(names) or {""}:
        of_part = [index for index in came if not names or names[index] == part]
        prompts = names.count(part) if names else count
        epochs = [of_part[start : start + prompts] for start in range(0, len(of_part), prompts)]
        assert all(len(set(epoch)) == len(epoch) for epoch in epochs)


@pytest.mark.parametrize("mixed", [False, True])
def test_a_fork_without_no_positive_resampling_gets_back_what_its_parent_left_out(mixed):
    names = ["a", "b"] * 10 if mixed else []
    given_to_both = {"names": names, "weights": dict.fromkeys(names, 1.0)}
    parent = PromptOrder(20, 0, threshold=0.9, floor=2, **given_to_both)
    for ordinal in range(25):
        index = parent.next(ordinal)
        parent.observe(index, 4 * (index < 10), 4)
    state = json.loads(json.dumps(parent.state()))
    assert parent.metrics()["prompts/left_out"] == 10
    child = PromptOrder(20, 0, **given_to_both)
    child.fork(state, 25)
    assert sorted(drawn(child, range(25, 45))) == list(range(20))
    assert child.metrics()["prompts/left_out"] == 0
    resumed = PromptOrder(20, 0, **given_to_both)
    resumed.load_state(json.loads(json.dumps(child.state())))
    assert drawn(resumed, range(25, 80)) == drawn(child, range(25, 80))
    stricter = PromptOrder(20, 0, threshold=0.5, floor=2, **given_to_both)
    stricter.fork(state, 25)
    assert set(drawn(stricter, range(25, 60))) == set(range(10, 20))


def test_a_fork_without_no_positive_resampling_gets_back_a_task_that_was_all_solved():
    names = ["math"] * 4 + ["code"] * 2
    given_to_both = {"names": names, "weights": {"math": 1, "code": 1}}
    parent = PromptOrder(6, 0, threshold=0.9, **given_to_both)
    for ordinal in range(40):
        index = parent.next(ordinal)
        parent.observe(index, 4 * (names[index] == "code"), 4)
    child = PromptOrder(6, 0, **given_to_both)
    child.fork(json.loads(json.dumps(parent.state())), 40)
    assert Counter(names[index] for index in drawn(child, range(40, 48))) == {"math": 4, "code": 4}


def test_an_order_does_not_continue_where_difficulties_have_changed_the_first_epoch():
    def order(difficulties=(), seed=0) -> PromptOrder:
        return PromptOrder(8, seed, difficulties=difficulties, digest="the same prompts")

    rising = order(range(8))
    drawn(rising, range(3))
    state = json.loads(json.dumps(rising.state()))
    assert order([2 * each for each in range(8)]).continues(state), "in the same order"
    falling = order(range(8, 0, -1))
    assert falling.fits(state)
    assert not falling.continues(state)
    falling.fork(state, 3)
    assert sorted(drawn(falling, range(3, 11))) == list(range(8)), "an epoch of its own"
    assert not order().continues(state)
    assert order().continues(order().state())


def test_easy_first_orders_the_first_epoch_only():
    difficulties = [5.0, 1.0, 3.0, 1.0, 2.0, 9.0, 4.0, 8.0]
    order = PromptOrder(8, 0, difficulties=difficulties)
    first = [difficulties[index] for index in drawn(order, range(8))]
    second = [difficulties[index] for index in drawn(order, range(8, 16))]
    assert first == sorted(difficulties)
    assert second != first
    assert sorted(second) == first


@settings(deadline=None)
@given(weights, st.integers(1, 64), st.integers(0, 300))
def test_in_every_stretch_of_a_mixture_each_task_is_within_two_of_its_share(given_weights, length, start):
    mixture = Mixture(given_weights)
    found = Counter(mixture.at(ordinal)[0] for ordinal in range(start, start + length))
    total = sum(given_weights.values())
    for name, weight in given_weights.items():
        assert abs(found[name] - length * weight / total) < 2


def test_each_task_of_a_mixture_goes_through_its_own_epochs():
    names = ["math"] * 6 + ["code"] * 3
    order = PromptOrder(9, 4, names=names, weights={"math": 1, "code": 1})
    indices = drawn(order, range(12))
    assert sorted(i for i in indices if names[i] == "math") == [0, 1, 2, 3, 4, 5]
    assert sorted(i for i in indices if names[i] == "code") == [6, 6, 7, 7, 8, 8]


def test_a_task_whose_prompts_are_all_solved_leaves_its_share_to_the_others():
    names = ["math"] * 4 + ["code"] * 2
    order = PromptOrder(6, 0, threshold=0.9, names=names, weights={"math": 1, "code": 1})
    for ordinal in range(40):
        index = order.next(ordinal)
        order.observe(index, 4 * (names[index] == "code"), 4)
    for index in (4, 5):  # completions that come late and fail take nothing back
        order.observe(index, 0, 400)
    assert {names[index] for index in drawn(order, range(20, 60))} == {"math"}
    assert order.metrics() == {"prompts/epoch": 14.0, "prompts/active": 4.0, "prompts/left_out": 2.0}
    other = PromptOrder(6, 0, threshold=0.9, names=names, weights={"math": 1, "code": 1})
    other.load_state(order.state())
    assert drawn(other, range(40)) == drawn(order, range(40))


@pytest.mark.parametrize(
    ("settings_given", "message"),
    [
        ({"threshold": 0.9}, "algorithm.no_positive_resampling needs prompts that can come again"),
        ({"weights": {"math": 1.0}}, "task.mixture needs"),
        ({"difficulties": [1.0]}, "curriculum easy-first needs"),
    ],
)
def test_what_needs_a_finite_set_is_refused_for_an_endless_task(settings_given, message):
    with pytest.raises(ConfigurationError, match=message):
        PromptOrder(None, 0, **settings_given)


@pytest.mark.parametrize(
    ("mixture", "message"),
    [
        ({"math": 1, "cod": 1}, "'cod': no training prompt has that task; the data have code, math"),
        ({"math": 1}, "'code': the data have that task too"),
        ({"math": 0, "code": 0}, "leaves every task out"),
    ],
)
def test_a_mixture_that_does_not_fit_the_data_is_refused_by_name(mixture, message):
    with pytest.raises(ConfigurationError, match=message):
        PromptOrder(3, 0, names=["math", "code", "math"], weights=mixture)


def test_a_weight_of_zero_leaves_a_task_out():
    order = PromptOrder(3, 0, names=["math", "code", "math"], weights={"math": 1, "code": 0})
    assert set(drawn(order, range(10))) == {0, 2}


def test_an_empty_training_set_is_refused():
    with pytest.raises(ConfigurationError, match="no prompts"):
        PromptOrder(0, 0)


def test_a_recipe_names_its_order(recipe):
    endless = recipe({"task.pool": None, "algorithm.no_positive_resampling": None})
    assert build_order(endless, build_task(endless)).next(17) == 17
    settings_given = {"task.pool": 40, "curriculum": "easy-first", "algorithm.no_positive_resampling": 0.9}
    pooled = recipe(settings_given | {"algorithm.min_active_prompts": 4})
    task = build_task(pooled)
    order = build_order(pooled, task)
    moves = [task.training_prompt(order.next(ordinal)).difficulty for ordinal in range(40)]
    assert moves == sorted(moves)
    for index in range(40):
        order.observe(index, 16, 16)
    order.next(40)
    assert order.metrics()["prompts/active"] == 4.0
