"""What becomes of vLLM's completions: seeds, interruption and padding. No vLLM is needed for it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.trainer.closings import closes_with
from trainer.engines import vllm_adapter
from trainer.engines.base import Interruption, SamplingConfig
from trainer.engines.vllm_adapter import Completion, VllmOptions, check
from trainer.engines.vllm_rows import budget_after_interruption, row, sample_seed, to_responses
from trainer.errors import ConfigurationError

END = 1
SAMPLING = SamplingConfig(20, 1.0, (END,), interruption=Interruption((5, 6, 7), closes_with(6, 7), answer_tokens=4))


def completion(tokens: list[int], version: int = 3) -> Completion:
    count = len(tokens)
    return Completion(np.array(tokens), -np.ones(count, np.float32), np.full(count, version, np.int32))


def test_a_row_that_still_thinks_gets_the_phrase_and_the_answers_budget():
    phrase, rest = budget_after_interruption(np.array([8, 9, 8]), 3, SAMPLING)
    assert phrase.tolist() == [5, 6, 7]
    assert rest == 4


def test_a_row_that_has_ended_is_not_interrupted():
    assert budget_after_interruption(np.array([8, 9, END]), 3, SAMPLING) is None


def test_a_row_that_has_written_the_closing_itself_goes_on_without_a_phrase():
    phrase, rest = budget_after_interruption(np.array([6, 7, 8]), 3, SAMPLING)
    assert phrase.tolist() == []
    assert rest == 17


@pytest.mark.parametrize(("at", "put_in", "rest"), [(14, 3, 3), (17, 3, 0), (18, 2, 0), (19, 1, 0)])
def test_phrase_and_answer_stay_within_the_whole_budget(at, put_in, rest):
    phrase, left = budget_after_interruption(np.full(at, 8), at, SAMPLING)
    assert (len(phrase), left) == (put_in, rest)


def test_phrase_tokens_are_unsampled_and_carry_neither_logprob_nor_version():
    whole = row([completion([8, 9], version=3), completion([4, END], version=5)], np.array([5, 6, 7]))
    made = to_responses(7, [whole, row([completion([END])])], (END,))
    assert made.tokens.tolist() == [[8, 9, 5, 6, 7, 4, END], [END, 0, 0, 0, 0, 0, 0]]
    assert made.sampled[0].tolist() == [True, True, False, False, False, True, True]
    assert made.sampled[1].tolist() == [True] + [False] * 6
    assert made.versions[0].tolist() == [3, 3, 0, 0, 0, 5, 5]
    assert (made.logprobs == np.where(made.sampled, -1, 0)).all()
    assert made.lengths.tolist() == [7, 1]
    assert made.finished.tolist() == [True, True]
    assert made.interrupted.tolist() == [True, False]


def test_a_row_whose_budget_ends_in_the_phrase_is_cut_not_finished():
    made = to_responses(0, [row([completion([8])], np.array([5, END]))], (END,))
    assert made.finished.tolist() == [False]
    assert made.lengths.tolist() == [3]


def test_every_sample_and_part_of_a_request_has_a_seed_of_its_own_and_the_same_one_again():
    seeds = [sample_seed((1, 0, ordinal), s, part) for ordinal in range(20) for s in range(20) for part in (0, 1)]
    assert len(set(seeds)) == len(seeds)
    assert all(0 <= seed < 2**63 for seed in seeds)
    assert sample_seed((1, 0, 3), 2, 1) == seeds[(3 * 20 + 2) * 2 + 1]


def test_without_vllm_the_engine_is_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr(vllm_adapter.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="vLLM is not installed; `make install`"):
        check(VllmOptions("anywhere"), 1.0)


def test_a_release_that_the_adapter_was_not_written_for_is_refused_by_its_number(monkeypatch):
    monkeypatch.setattr(vllm_adapter.importlib.util, "find_spec", lambda name: object())
    monkeypatch.setattr(vllm_adapter.importlib.metadata, "version", lambda name: "0.19.1")
    with pytest.raises(ConfigurationError, match=r"0\.19 is installed, but this engine is written for 0\.32"):
        check(VllmOptions("anywhere"), 1.0)


@pytest.mark.parametrize(("temperature", "said"), [(1.0, "has no config.json"), (0.001, "importance ratios")])
def test_a_folder_without_a_model_and_a_temperature_below_vllms_are_refused(tmp_path, monkeypatch, temperature, said):
    monkeypatch.setattr(vllm_adapter, "missing", lambda: None)
    if temperature < 1:
        (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigurationError, match=said):
        check(VllmOptions(str(tmp_path)), temperature)
