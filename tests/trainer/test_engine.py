"""The torch engine: what it samples, what it says about it, and weights that change under way."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from trainer.engines import TorchEngine
from trainer.engines.base import SamplingConfig
from trainer.engines.sampling import sample
from trainer.errors import NotFinite
from trainer.models import TinyConfig, TinyDecoder
from trainer.tasks import TorusTask
from trainer.types import Request

TASK = TorusTask()


def sampling(**changes):
    return SamplingConfig(**({"max_tokens": 24, "temperature": 1.0, "end_tokens": (TASK.end_token,)} | changes))


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
            ends = np.flatnonzero(tokens[:length] == TASK.end_token)
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


def test_sampling_follows_the_distribution():
    logprobs = torch.tensor([0.5, 0.3, 0.0, 0.2]).log().expand(20_000, 4)
    noise = torch.rand(20_000, generator=torch.Generator().manual_seed(0))
    shares = torch.bincount(sample(logprobs, noise), minlength=4) / 20_000
    assert shares[2] == 0
    torch.testing.assert_close(shares, torch.tensor([0.5, 0.3, 0.0, 0.2]), atol=0.015, rtol=0)


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
