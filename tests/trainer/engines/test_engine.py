"""The torch engine: what it samples, what it says about it, and weights that change under way."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from trainer.engines import TorchEngine, cohort
from trainer.engines.base import SamplingConfig
from trainer.engines.kv_cache import ByRow
from trainer.engines.rows_innermost import FIRST_ROOM, RowsInnermost
from trainer.engines.sampling import NOISE_BLOCK, noise_block, sample
from trainer.errors import NotFinite
from trainer.models import TinyConfig, TinyDecoder
from trainer.tasks import TorusTask
from trainer.types import Request

TASK = TorusTask()


def sampling(**changes):
    return SamplingConfig(**({"max_tokens": 24, "temperature": 1.0, "end_tokens": TASK.end_tokens} | changes))


def requests(count, samples=4, first=0):
    return [Request(i, TASK.training_prompt(i), samples, (7, i)) for i in range(first, first + count)]


def run(engine, batch):
    engine.submit(batch)
    finished = []
    while engine.busy:
        finished += engine.step()
    return sorted(finished, key=lambda responses: responses.key)


def naive_logprobs(model, request, responses, temperature=1.0, precision="fp32"):
    """Log-probs of sampled tokens by the plain forward, row by row."""
    prompts = torch.from_numpy(np.repeat(request.prompt.tokens[None], len(responses.tokens), 0))
    tokens = torch.from_numpy(responses.tokens)
    with torch.inference_mode():
        logits = model.logits(model.full(prompts, tokens[:, :-1]), precision) / temperature
        return logits.log_softmax(-1).gather(-1, tokens[..., None])[..., 0].numpy()


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-4), ("bf16", 5e-2)])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_the_cached_engine_gives_the_log_probs_of_the_plain_forward(model, recipe, precision, tolerance, temperature):
    policy = model(recipe())
    batch = requests(6)
    for request, responses in zip(
        batch,
        run(TorchEngine(policy, sampling(temperature=temperature, logits_precision=precision)), batch),
        strict=True,
    ):
        expected = naive_logprobs(policy, request, responses, temperature, precision)
        inside = np.arange(expected.shape[1]) < responses.lengths[:, None]
        np.testing.assert_allclose(responses.logprobs[inside], expected[inside], atol=tolerance)
        assert (responses.logprobs[~inside] == 0).all()


def test_a_response_ends_with_its_first_end_token_or_at_the_budget(model, recipe):
    for responses in run(TorchEngine(model(recipe()), sampling(max_tokens=16)), requests(16, 8)):
        for tokens, length, finished in zip(responses.tokens, responses.lengths, responses.finished, strict=True):
            ends = np.flatnonzero(np.isin(tokens[:length], TASK.end_tokens))
            assert (ends.tolist() == [length - 1]) if finished else (not len(ends) and length == 16)


def test_what_a_request_samples_does_not_depend_on_what_is_in_the_same_batch(model, recipe):
    together = run(TorchEngine(model(recipe()), sampling()), requests(12))
    alone = [run(TorchEngine(model(recipe()), sampling()), requests(1, first=i))[0] for i in range(12)]
    for ours, theirs in zip(together, alone, strict=True):
        width = theirs.tokens.shape[1]
        assert (ours.tokens[:, :width] == theirs.tokens).all()
        assert (ours.lengths == theirs.lengths).all()


def test_the_same_seed_gives_the_same_responses_bit_for_bit_and_another_seed_others(model, recipe):
    first, second = (run(TorchEngine(model(recipe()), sampling()), requests(8)) for _ in range(2))
    assert all(
        (a.tokens == b.tokens).all() and (a.logprobs == b.logprobs).all() for a, b in zip(first, second, strict=True)
    )
    other = [Request(r.key, r.prompt, r.samples, (8, r.key)) for r in requests(8)]
    different = run(TorchEngine(model(recipe()), sampling()), other)
    assert any(
        a.tokens.shape != b.tokens.shape or (a.tokens != b.tokens).any() for a, b in zip(first, different, strict=True)
    )


def test_weights_swapped_under_way_make_the_later_tokens_and_every_token_says_which(model, recipe):
    policy, batch = model(recipe()), requests(4)
    other = TinyDecoder(TinyConfig())
    weights = {name: value.numpy().copy() for name, value in other.state_dict().items()}
    before = {name: value.clone() for name, value in policy.state_dict().items()}
    engine = TorchEngine(policy, sampling(), version=3)
    engine.submit(batch)
    for _ in range(6):
        assert not engine.step()
    engine.load_weights(5, weights)
    finished = []
    while engine.busy:
        finished += engine.step()
    original = TinyDecoder(TinyConfig())
    original.load_state_dict(before)
    for request, responses in zip(batch, finished, strict=True):
        inside = np.arange(responses.tokens.shape[1]) < responses.lengths[:, None]
        assert (responses.versions[:, :6][inside[:, :6]] == 3).all()
        assert (responses.versions[:, 6:][inside[:, 6:]] == 5).all()
        early = naive_logprobs(original, request, responses)
        np.testing.assert_allclose(responses.logprobs[:, :6][inside[:, :6]], early[:, :6][inside[:, :6]], atol=1e-4)
        # Later tokens: new weights over old keys and values, so close to neither plain forward, but not the old one.
        assert np.abs(responses.logprobs - early)[:, 6:][inside[:, 6:]].max() > 0.1


@pytest.mark.parametrize("max_rows", [1, 8, 20])
def test_requests_that_join_under_way_get_what_they_would_get_alone(model, recipe, max_rows):
    together = run(TorchEngine(model(recipe()), sampling()), requests(9))
    in_turn = run(TorchEngine(model(recipe()), sampling(), max_rows=max_rows), requests(9))
    assert [responses.key for responses in in_turn] == list(range(9))
    for ours, theirs in zip(in_turn, together, strict=True):
        for row, length in enumerate(theirs.lengths):
            assert ours.lengths[row] == length
            assert (ours.tokens[row, :length] == theirs.tokens[row, :length]).all()
            np.testing.assert_allclose(ours.logprobs[row, :length], theirs.logprobs[row, :length], atol=1e-4)


def test_requests_with_another_number_of_samples_run_beside_each_other(model, recipe):
    batch = [Request(i, TASK.training_prompt(i), samples, (7, i)) for i, samples in enumerate([4, 4, 1, 3])]
    finished = run(TorchEngine(model(recipe()), sampling()), batch)
    assert [len(responses.tokens) for responses in finished] == [4, 4, 1, 3]


@pytest.mark.parametrize("layout", [RowsInnermost, ByRow])
def test_both_layouts_of_the_cache_give_the_log_probs_of_the_plain_forward_beyond_their_first_room(monkeypatch, layout):
    monkeypatch.setattr(cohort, "make_cache", layout)
    torch.manual_seed(0)
    policy = TinyDecoder(TinyConfig(max_response=600))
    budget = max(NOISE_BLOCK, FIRST_ROOM) + 40
    batch = requests(3, 2)
    for request, responses in zip(batch, run(TorchEngine(policy, sampling(max_tokens=budget)), batch), strict=True):
        expected = naive_logprobs(policy, request, responses)
        inside = np.arange(expected.shape[1]) < responses.lengths[:, None]
        np.testing.assert_allclose(responses.logprobs[inside], expected[inside], atol=1e-4)


@pytest.mark.parametrize("layout", [RowsInnermost, ByRow])
def test_rows_that_have_made_the_same_tokens_are_run_once_where_the_cache_is_cheap_to_split(
    monkeypatch, model, recipe, layout
):
    monkeypatch.setattr(cohort, "make_cache", layout)
    policy, batch = model(recipe()), requests(5, 8)
    run_rows, decode = [], policy.decode
    monkeypatch.setattr(policy, "decode", lambda tokens, *rest: run_rows.append(len(tokens)) or decode(tokens, *rest))
    finished = run(TorchEngine(policy, sampling()), batch)
    prefixes = {
        (responses.key, *(row[:place] if layout is RowsInnermost else (*row[:place], i)))
        for responses in finished
        for i, (row, length) in enumerate(zip(responses.tokens.tolist(), responses.lengths, strict=True))
        for place in range(1, length)
    }
    # The cache may hold up to 15 % of rows that have ended.
    assert len(prefixes) <= sum(run_rows) <= len(prefixes) / cohort.COMPACT_BELOW
    assert len({row.tobytes() for responses in finished for row in responses.tokens}) > len(batch)  # some did part


def test_the_noise_of_long_responses_does_not_repeat():
    request = requests(1)[0]
    blocks = [noise_block(request, 10_000, block) for block in range(3)]
    assert all(block.shape == (4, NOISE_BLOCK) for block in blocks)
    assert len({block.tobytes() for block in blocks}) == 3
    assert noise_block(request, 24, 0).shape == (4, 24)


def test_a_request_may_have_a_smaller_budget_than_the_engine(model, recipe):
    batch = [Request(i, TASK.training_prompt(i), 4, (7, i), budget=budget) for i, budget in enumerate([5, None, 9])]
    limited = run(TorchEngine(model(recipe()), sampling()), batch)
    whole = run(TorchEngine(model(recipe()), sampling()), requests(3))
    for ours, theirs, budget in zip(limited, whole, (5, 24, 9), strict=True):
        assert (ours.lengths == np.minimum(theirs.lengths, budget)).all()
        assert (ours.finished == (theirs.finished & (theirs.lengths <= budget))).all()


def test_sampling_follows_the_distribution():
    logprobs = torch.tensor([0.5, 0.3, 0.0, 0.2]).log().expand(20_000, 4)
    noise = torch.rand(20_000, generator=torch.Generator().manual_seed(0))
    shares = torch.bincount(sample(logprobs, noise), minlength=4) / 20_000
    assert shares[2] == 0
    torch.testing.assert_close(shares, torch.tensor([0.5, 0.3, 0.0, 0.2]), atol=0.015, rtol=0)


def test_rows_may_share_a_distribution_and_draw_from_it_each_by_its_own_noise():
    logprobs = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.1, 0.9]]).log()
    noise, stems = torch.tensor([0.2, 0.7, 0.05, 0.2]), torch.tensor([0, 0, 1, 1])
    assert sample(logprobs, noise, stems).tolist() == [0, 1, 1, 2]


def test_a_policy_that_is_not_finite_is_named_with_its_version(model, recipe):
    policy = model(recipe())
    with torch.no_grad():
        policy.head.weight.fill_(float("nan"))
    engine = TorchEngine(policy, sampling(), version=41)
    engine.submit(requests(2))
    with pytest.raises(NotFinite, match="weight version 41"):
        engine.step()


def test_an_engine_without_requests_is_idle():
    engine = TorchEngine(TinyDecoder(TinyConfig()), sampling())
    assert not engine.busy
    assert engine.step() == []
    engine.submit([])
    assert not engine.busy
