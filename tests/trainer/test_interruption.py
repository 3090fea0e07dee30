"""Forced interruption: where the phrase goes, what it costs, and what nobody trains on."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.trainer.closings import closes_with
from trainer.engines import TorchEngine, interruption_places, sampling_config
from trainer.engines.base import Interruption, SamplingConfig
from trainer.learner import Learner
from trainer.models import TinyConfig, TinyDecoder
from trainer.tasks import TorusTask, build_task
from trainer.types import Group, Request

TASK = TorusTask()
PHRASE = tuple(TASK.encode("NS>"))
CLOSING = PHRASE[-1]


def answers(policy, places, answer_tokens=3, key=0):
    """Responses to one prompt, one row for each place (None: never interrupted)."""
    interruption = Interruption(PHRASE, closes_with(CLOSING), answer_tokens)
    engine = TorchEngine(policy, SamplingConfig(24, 1.0, TASK.end_tokens, interruption=interruption))
    at = None if places is None else np.array(places)
    engine.submit([Request(key, TASK.training_prompt(key), 8 if places is None else len(places), (9, key), at)])
    finished = []
    while engine.busy:
        finished += engine.step()
    return finished[0]


@pytest.mark.parametrize("key", range(4))
def test_a_row_gets_the_phrase_after_its_tokens_unless_it_has_ended_or_closed(model, recipe, key):
    policy = model(recipe())
    plain = answers(policy, None, key=key)
    places = [2, 4, 6, 8, 10, 12, 14, 16]
    cut = answers(policy, places, key=key)
    for row, place in enumerate(places):
        before = plain.tokens[row, : min(place, plain.lengths[row])].tolist()
        due = plain.lengths[row] > place or (plain.lengths[row] == place and not plain.finished[row])
        due = due and CLOSING not in before
        assert cut.interrupted[row] == due
        assert cut.tokens[row, : len(before)].tolist() == before
        if not due:
            assert cut.tokens[row, : cut.lengths[row]].tolist() == plain.tokens[row, : plain.lengths[row]].tolist()
            continue
        forced = slice(place, place + len(PHRASE))
        assert cut.tokens[row, forced].tolist() == list(PHRASE)
        assert not cut.sampled[row, forced].any()
        assert (cut.logprobs[row, forced] == 0).all()
        assert (cut.versions[row, forced] == 0).all()
        assert cut.lengths[row] <= place + len(PHRASE) + 3
        others = [t for t in range(cut.lengths[row]) if not place <= t < place + len(PHRASE)]
        assert cut.sampled[row, others].all()
    assert cut.interrupted.any()


@settings(max_examples=15, deadline=None)
@given(st.lists(st.integers(1, 23), min_size=1, max_size=6), st.integers(1, 5), st.integers(0, 50))
def test_an_interrupted_row_ends_at_its_end_token_or_after_its_answer_budget_or_at_the_whole_budget(
    places, answer, key
):
    found = answers(TinyDecoder(TinyConfig()), places, answer_tokens=answer, key=key)
    for row, place in enumerate(places):
        length, last = found.lengths[row], found.tokens[row, found.lengths[row] - 1]
        assert found.sampled[row, :length].sum() + (~found.sampled[row, :length]).sum() == length
        assert not found.sampled[row, length:].any()
        budget = min(24, place + len(PHRASE) + answer) if found.interrupted[row] else 24
        assert found.finished[row] == (last in TASK.end_tokens and found.sampled[row, length - 1])
        assert length == budget or (length < budget and found.finished[row])


def test_the_learner_agrees_with_the_engine_after_the_phrase_and_counts_only_sampled_tokens(model, recipe):
    policy, small = model(recipe()), recipe({"algorithm.zero_variance_filter": "off"})
    found = answers(policy, [3, 5, 7, 9])
    passed = np.array([True, False, True, False])
    group = Group(0, TASK.training_prompt(0), found, np.where(passed, 1.0, -1.0), passed)
    result = Learner(small, policy).step([group])
    assert result.metrics["policy/logprob_diff_mean"] < 1e-5
    assert group.token_count == found.lengths.sum() - len(PHRASE) * found.interrupted.sum()


def test_places_are_drawn_from_the_requests_seed_uniformly_in_the_recipes_range(recipe):
    control = {"kind": "interruption", "after_low": 9, "after_high": 12, "answer_tokens": 4, "phrase": ">"}
    small = recipe({f"length_control.{name}": value for name, value in control.items()})
    drawn = np.concatenate([interruption_places(small, (1, 0, ordinal), 16) for ordinal in range(200)])
    assert set(drawn) == {9, 10, 11, 12}
    assert np.abs(np.bincount(drawn)[9:] / len(drawn) - 0.25).max() < 0.04
    assert (interruption_places(small, (1, 0, 5), 16) == interruption_places(small, (1, 0, 5), 16)).all()
    assert interruption_places(recipe({"length_control.kind": "none"}), (1, 0, 5), 16) is None


def test_the_phrase_is_tokens_and_its_last_word_closes(recipe):
    control = {"kind": "interruption", "after_low": 4, "after_high": 5, "answer_tokens": 4, "phrase": "NE>"}
    small = recipe({f"length_control.{name}": value for name, value in control.items()})
    task = build_task(small)
    interruption = sampling_config(small, task).interruption
    assert interruption.phrase == tuple(task.encode("NE>"))
    written = ["NE>S", "SNE>", "NEN>", "NNEE"]
    assert interruption.closed(np.array([task.encode(text) for text in written])).tolist() == [True, True, False, False]
    assert interruption.closed(np.zeros((2, 0), dtype=np.int64)).tolist() == [False, False]
    assert sampling_config(recipe({"length_control.kind": "none"}), task).interruption is None
