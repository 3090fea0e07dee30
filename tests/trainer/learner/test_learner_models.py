"""The learner over other policies than the tiny one: dense and mixture of experts, bf16, checkpointing, KL, memory."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from forecurve.recipes.schema import HuggingFaceModel
from tests.trainer.models.packing import pack_anywhere
from trainer.algorithm.batching import training_batch
from trainer.errors import OutOfMemory
from trainer.learner import Learner
from trainer.models.base import pad_left
from trainer.models.huggingface import from_config
from trainer.types import Prompt

VOCABULARY = 40


@pytest.fixture(scope="module")
def configs():
    """Tiny shapes of a dense model with grouped keys, and of a mixture of experts."""
    from transformers import Qwen3Config, Qwen3MoeConfig

    sizes = {
        "vocab_size": VOCABULARY,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
    }
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16, "norm_topk_prob": True}
    return {"dense": Qwen3Config(**sizes), "experts": Qwen3MoeConfig(**sizes, **experts)}


@pytest.fixture
def knobs(recipe):
    """The small recipe for a Hugging Face model; nothing here reads its folder."""

    def make(changes=None, **model):
        made = recipe({"optimizer.warmup_steps": 0} | (changes or {}))
        return made.model_copy(update={"model": HuggingFaceModel(path="unused", **model)})

    return make


@pytest.fixture
def groups(recipe, group):
    """Groups whose prompts have unlike lengths."""
    rng = np.random.default_rng(0)

    def unlike(i):
        each = group(recipe(), i, [1, 0, i % 2, 0])
        return replace(each, prompt=Prompt("", "", rng.integers(3, VOCABULARY, 3 + 4 * i)))

    return [unlike(i) for i in range(4)]


def policy(config, dtype="fp32"):
    torch.manual_seed(0)
    return from_config(copy.deepcopy(config), dtype)


def gradient(learner, groups):
    batch = training_batch(groups, learner.recipe.algorithm)
    sums = learner.gradients(batch, learner.plan(batch))
    return float(sums[0]), {name: p.grad for name, p in learner.policy.named_parameters()}


def plain_gradient(made, knobs, groups):
    """The objective written out: every row by itself through the model's own forward, logits of all tokens."""
    from trainer.models.huggingface import ATTENTION

    batch, total = training_batch(groups, knobs.algorithm), 0.0
    made.model.config._attn_implementation = "sdpa"
    for row, owner in enumerate(batch.prompt_of_row):
        prompt, length = batch.prompts[owner], batch.lengths[row]
        tokens = torch.from_numpy(batch.tokens[row, :length])
        logits = made.model(torch.cat([torch.from_numpy(prompt), tokens])[None], use_cache=False).logits[0].float()
        logprobs = logits[len(prompt) - 1 : -1].log_softmax(-1).gather(-1, tokens[:, None])[:, 0]
        ratio = (logprobs - torch.from_numpy(batch.generator_logprobs[row, :length])).exp().detach()
        weight = float(batch.weights[row] * batch.advantages[row])
        total = total - weight * (ratio.clamp(max=knobs.algorithm.is_weight_cap) * logprobs).sum()
    total.backward()
    made.model.config._attn_implementation = ATTENTION
    return float(total.detach()), {name: p.grad for name, p in made.named_parameters()}


@pytest.mark.parametrize("kind", ["dense", "experts"])
@pytest.mark.parametrize("micro_tokens", [None, 64])
@pytest.mark.parametrize("packs", [False, True], ids=["padded", "packed"])
def test_prompts_of_unlike_length_give_the_gradient_of_rows_run_one_by_one(
    packs, kind, micro_tokens, configs, knobs, groups, monkeypatch
):
    if packs:
        pack_anywhere(monkeypatch)
    cut = knobs({"batch.micro_tokens": micro_tokens})
    loss, found = gradient(Learner(cut, policy(configs[kind])), groups)
    expected_loss, expected = plain_gradient(policy(configs[kind]), cut, groups)
    assert loss == pytest.approx(expected_loss, rel=1e-4, abs=1e-6)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-3, atol=2e-6)


def test_gradient_checkpointing_runs_layers_again_and_changes_no_gradient(configs, knobs, groups):
    plain, thrifty = (Learner(knobs(gradient_checkpointing=on), policy(configs["dense"])) for on in (False, True))
    loss, expected = gradient(plain, groups)
    found_loss, found = gradient(thrifty, groups)
    assert found_loss == pytest.approx(loss, rel=1e-6)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=1e-5, atol=1e-7)
    recomputed = []
    layer = thrifty.policy.model.model.layers[0].mlp
    layer.register_forward_pre_hook(lambda *_: recomputed.append(1))
    gradient(thrifty, groups)
    assert len(recomputed) == 4  # prompt and response, each forward and again in the backward pass


def test_a_bf16_model_keeps_updates_that_are_smaller_than_its_own_precision(configs, knobs, groups):
    slow = knobs({"optimizer.learning_rate": 1e-5, "optimizer.weight_decay": 0.0}, dtype="bf16")
    learner = Learner(slow, policy(configs["dense"], "bf16"))
    start = learner.state().tensors
    for _ in range(3):
        assert learner.step(groups).applied
    name = "weight.model.layers.0.self_attn.o_proj.weight"
    master = learner.state().tensors[name]
    moved = np.abs(master - start[name])
    assert 1e-5 < moved.max() < 1e-4  # three steps of at most 1e-5 each
    published = learner.weights()[name.removeprefix("weight.")]
    assert published.dtype == torch.bfloat16
    torch.testing.assert_close(published, torch.from_numpy(master).bfloat16(), rtol=0, atol=0)
    assert (published.float().numpy() == start[name]).mean() > 0.5  # most of it does not show yet in bf16


def test_a_bf16_learner_put_back_to_a_state_goes_on_bit_for_bit(configs, knobs, groups):
    low = knobs(dtype="bf16")
    straight = Learner(low, policy(configs["dense"], "bf16"))
    straight.step(groups)
    resumed = Learner(low, policy(configs["dense"], "bf16"))
    resumed.load_state(straight.state())
    ours, theirs = resumed.step(groups), straight.step(groups)
    assert ours.metrics == theirs.metrics
    mine, other = resumed.state().tensors, straight.state().tensors
    assert mine.keys() == other.keys()
    assert all((mine[name] == other[name]).all() for name in other)


def test_the_kl_is_to_the_starting_weights_also_after_a_resume(configs, knobs, groups):
    with_kl = knobs({"algorithm.kl_coefficient": 0.5, "optimizer.learning_rate": 1e-2})
    learner = Learner(with_kl, policy(configs["dense"]))
    first = learner.step(groups)
    assert first.metrics["policy/reference_kl"] == pytest.approx(0.0, abs=1e-9)
    resumed = Learner(with_kl, policy(configs["dense"]))
    resumed.load_state(learner.state())
    second = resumed.step(groups)
    assert second.metrics["policy/reference_kl"] > 1e-4
    assert second.metrics == learner.step(groups).metrics
    assert "policy/reference_kl" not in Learner(knobs(), policy(configs["dense"])).step(groups).metrics


def test_a_large_kl_coefficient_holds_the_policy_at_its_start(configs, knobs, groups):
    def distance(coefficient):
        changes = {"algorithm.kl_coefficient": coefficient, "optimizer.learning_rate": 3e-3}
        learner = Learner(knobs(changes), policy(configs["dense"]))
        for _ in range(6):
            metrics = learner.step(groups).metrics
        return metrics["policy/reference_kl"]

    assert distance(10.0) < 0.5 * distance(1e-6)


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("CUDA out of memory"), RuntimeError("DefaultCPUAllocator: can't allocate memory")]
)
def test_out_of_memory_says_which_field_to_lower(configs, knobs, groups, monkeypatch, error):
    learner = Learner(knobs({"batch.micro_tokens": 4096}), policy(configs["dense"]))

    def fail(*_):
        raise error

    monkeypatch.setattr(learner.policy, "respond", fail)
    with pytest.raises(OutOfMemory, match=r"batch\.micro_tokens 4096: lower it, set model\.gradient_checkpointing"):
        learner.step(groups)


def test_another_fault_keeps_its_own_name(configs, knobs, groups, monkeypatch):
    learner = Learner(knobs(), policy(configs["dense"]))

    def fail(*_):
        raise RuntimeError("shapes do not match")

    monkeypatch.setattr(learner.policy, "respond", fail)
    with pytest.raises(RuntimeError, match="shapes do not match"):
        learner.step(groups)


def test_a_padded_prompt_gives_the_state_of_the_prompt_alone(configs):
    made = policy(configs["dense"])
    prompts = [np.array([5, 6, 7]), np.array([8, 9, 10, 11, 12])]
    padded, _ = made.prefill(*pad_left(prompts))
    for row, prompt in enumerate(prompts):
        alone, _ = made.prefill(torch.from_numpy(prompt)[None])
        torch.testing.assert_close(padded[row], alone[0], rtol=1e-5, atol=1e-6)
