"""The trainer on a GPU: the same tokens, gradients and weights as on the CPU, runs under Ray that reserve one.

Skipped where there is none. Tests of one vLLM engine, under `engines`, run on the GPU where there is one.
"""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import Qwen3Config

from forecurve.recipes import with_changes
from tests.trainer.closings import closes_with
from tests.trainer.engines.vllm_parts import save_random
from trainer.__main__ import main
from trainer.algorithm.batching import training_batch
from trainer.algorithm.logprobs import token_logprobs
from trainer.engines import TorchEngine
from trainer.engines.base import Interruption, SamplingConfig
from trainer.engines.vllm_adapter import missing
from trainer.errors import OutOfMemory
from trainer.launch import Launch, train
from trainer.learner import Learner, join, leave
from trainer.learner import learner as learner_module
from trainer.models import huggingface
from trainer.models.attention import after_prompts
from trainer.models.base import PromptCache
from trainer.records import checkpoint as checkpoints
from trainer.tasks import TorusTask
from trainer.types import Prompt, Request

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")

TASK = TorusTask()
ON_GPU = {"resources.gpus": 1, "resources.cpus": 2, "budget.unit": "GPU-seconds", "budget.compute": 40}
STEADY = {"optimizer.epsilon": 1e-5}  # see test_learner_ranks.py


def small_qwen(folder: Path, seed: int = 0) -> Path:
    """A random Qwen3 of the torus task's vocabulary, with heads that a GPU's kernels take."""
    sizes = {"hidden_size": 128, "intermediate_size": 256, "num_hidden_layers": 2, "num_attention_heads": 4}
    return save_random(Qwen3Config(vocab_size=64, num_key_value_heads=2, head_dim=64, **sizes), folder, seed)


@pytest.mark.parametrize("interrupted", [False, True])
def test_the_engine_samples_on_a_gpu_what_it_samples_on_a_cpu(model, recipe, interrupted):
    control = Interruption((5, 6), closes_with(6), 4) if interrupted else None
    sampling = SamplingConfig(24, 0.8, TASK.end_tokens, interruption=control)
    places = np.array([3, 8, 12, 20]) if interrupted else None
    batch = [Request(i, TASK.training_prompt(i), 4, (7, i), places) for i in range(8)]
    found = {}
    for device in ("cpu", "cuda"):
        engine, made = TorchEngine(model(recipe()), sampling, device=device), []
        engine.submit(batch)
        while engine.busy:
            made += engine.step()
        found[device] = sorted(made, key=lambda responses: responses.key)
    for here, there in zip(found["cpu"], found["cuda"], strict=True):
        np.testing.assert_array_equal(here.tokens, there.tokens)
        np.testing.assert_array_equal(here.sampled, there.sampled)
        np.testing.assert_allclose(here.logprobs, there.logprobs, atol=1e-3)
    assert interrupted == any(each.interrupted.any() for each in found["cuda"])


@pytest.mark.parametrize("loss", ["cispo", "grpo", "dapo"])
def test_the_learner_makes_on_a_gpu_the_weights_that_it_makes_on_a_cpu(model, recipe, group, loss):
    knobs = recipe(STEADY | {"algorithm.loss": loss, "algorithm.kl_coefficient": 0.1})
    batches = [[group(knobs, 10 * step + i, [1, 0, i % 2, 0]) for i in range(5)] for step in range(3)]
    here, there = (Learner(knobs, model(knobs), device) for device in ("cpu", "cuda"))
    for batch in batches:
        one, other = here.step(batch), there.step(batch)
        assert other.metrics["train/grad_norm"] == pytest.approx(one.metrics["train/grad_norm"], rel=1e-3)
    for name, weight in here.weights().items():
        np.testing.assert_allclose(there.weights()[name], weight, atol=2e-5, err_msg=name)


def test_a_sharded_learner_over_nccl_makes_the_weights_of_one_alone_and_goes_on_from_its_state(
    model, recipe, group, tmp_path
):
    knobs = recipe(STEADY)
    batches = [[group(knobs, 10 * step + i, [1, 0, i % 2, 0]) for i in range(5)] for step in range(3)]
    ranks = join(f"file://{tmp_path}/meeting", 0, 1, "cuda:0")
    try:
        alone, sharded = Learner(knobs, model(knobs), "cuda"), Learner(knobs, model(knobs), "cuda", ranks)
        for batch in batches[:2]:
            alone.step(batch)
            sharded.step(batch)
        resumed = Learner(knobs, model(knobs), "cuda", ranks)
        resumed.load_state(sharded.state())
        for learner in (alone, sharded, resumed):
            learner.step(batches[2])
        for name, weight in alone.weights().items():
            np.testing.assert_allclose(sharded.weights()[name], weight, atol=2e-5, err_msg=name)
            np.testing.assert_allclose(resumed.weights()[name], sharded.weights()[name], atol=2e-6, err_msg=name)
    finally:
        leave()


def test_rows_end_to_end_are_as_near_to_the_gradient_in_float32_as_padded_rows(recipe, group, tmp_path, monkeypatch):
    """In bfloat16 both round. What a wrong edge between rows would make is far larger."""
    knobs, folder = recipe({"batch.micro_tokens": 64}), small_qwen(tmp_path / "qwen")
    groups = [unlike(group(knobs, i, [1, 0, i % 2, 0]), i) for i in range(5)]
    exact = gradient_of(Learner(knobs, huggingface.load(folder)), groups)
    packing = Learner(knobs, huggingface.load(folder, "bf16"), "cuda")
    packed = gradient_of(packing, groups)
    monkeypatch.setattr(learner_module, "kernel_takes", lambda *_: False)
    padded = gradient_of(Learner(knobs, huggingface.load(folder, "bf16"), "cuda"), groups)
    assert len(packing.plan(training_batch(groups, knobs.algorithm))) > 1
    off, usual = (np.linalg.norm(found - exact) / np.linalg.norm(exact) for found in (packed, padded))
    assert usual < 0.1
    assert off < 1.5 * usual


def unlike(group, i):
    """The same responses after a prompt of another length."""
    return replace(group, prompt=Prompt("", "", np.arange(3 + 5 * i) % 40 + 3))


def gradient_of(learner, groups):
    """Of one step, as the optimiser keeps it."""
    learner.step(groups)
    moments = sorted((name, value) for name, value in learner.state().tensors.items() if name.startswith("first."))
    return np.concatenate([value.ravel() for _, value in moments])


def test_long_responses_take_no_memory_for_masks():
    rows, heads, length, past, width = 4, 8, 8192, 512, 64
    q, k, v = (torch.randn(rows, heads, length, width, device="cuda", dtype=torch.bfloat16) for _ in range(3))
    prompt = tuple(torch.randn(rows, heads, past, width, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    mask = torch.arange(past, device="cuda") >= torch.tensor([0, 7, 7, 300], device="cuda")[:, None]
    cache = PromptCache((prompt,), mask.sum(1), mask)
    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated()
    after_prompts(cache, length)[0](q, k, v)
    of_one_mask = length * (past + length) * rows
    of_inputs = 3 * q.numel() * 2
    assert torch.cuda.max_memory_allocated() - held < 5 * of_inputs
    assert 5 * of_inputs < of_one_mask * heads


def test_the_heads_log_probs_take_a_chunk_of_memory_and_not_all_logits():
    tokens, vocabulary, width = 8192, 151_936, 256
    hidden = torch.randn(tokens, width, device="cuda").requires_grad_()
    weight = (torch.randn(vocabulary, width, device="cuda") / 16).requires_grad_()
    targets = torch.randint(vocabulary, (tokens,), device="cuda")
    torch.cuda.reset_peak_memory_stats()
    held = torch.cuda.memory_allocated()
    token_logprobs(hidden, weight, targets)[0].sum().backward()
    all_logits = tokens * vocabulary * 4
    assert torch.cuda.max_memory_allocated() - held < all_logits / 3


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_the_heads_log_probs_of_bfloat16_are_those_of_its_numbers_in_float32(precision):
    """A float32 head of bfloat16 factors loses nothing on a GPU, where it runs as a product of bfloat16."""
    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(300, 256, generator=generator).bfloat16()
    weight = (torch.randn(5000, 256, generator=generator) / 16).bfloat16()
    targets = torch.randint(5000, (300,), generator=generator)
    pull = torch.linspace(-1, 1, 300)
    found = {}
    for device, dtype in (("cuda", torch.bfloat16), ("cpu", torch.float64)):
        x, w = (value.to(device, dtype).requires_grad_() for value in (hidden, weight))
        if device == "cuda":
            logprobs = token_logprobs(x, w, targets.cuda(), 0.8, precision, chunk_elements=5000 * 128)[0]
        else:
            logprobs = (x @ w.T / 0.8).log_softmax(-1).gather(-1, targets[:, None])[:, 0]
        slopes = torch.autograd.grad((logprobs * pull.to(device)).sum(), (x, w))
        found[device] = [value.detach().cpu().double() for value in (logprobs, *slopes)]
    rounding = {"fp32": 2e-5, "bf16": 3e-2}[precision]
    torch.testing.assert_close(found["cuda"][0], found["cpu"][0], rtol=0, atol=rounding)
    for slope, wanted in zip(found["cuda"][1:], found["cpu"][1:], strict=True):  # given back in bfloat16
        near = {"fp32": {"rtol": 2**-8, "atol": 2e-3}, "bf16": {"rtol": 0.1, "atol": 3e-2}}[precision]
        torch.testing.assert_close(slope, wanted, **near)


def test_norms_in_one_kernel_are_those_of_transformers(tmp_path):
    policy = huggingface.load(small_qwen(tmp_path / "qwen"), "bf16").cuda()
    norm = policy.model.model.layers[0].input_layernorm
    x = torch.randn(50, 128, device="cuda", dtype=torch.bfloat16).requires_grad_()
    ours, own = norm(x), type(norm).forward(norm, x)
    torch.testing.assert_close(ours, own, rtol=2**-7, atol=1e-6)
    pull = torch.randn_like(ours)
    for one, other in zip(
        torch.autograd.grad((ours * pull).sum(), (x, norm.weight)),
        torch.autograd.grad((own * pull).sum(), (x, norm.weight)),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=0.05, atol=0.05)


def test_memory_that_does_not_suffice_is_named_with_what_to_lower(recipe, group, tmp_path):
    knobs = recipe()
    policy = huggingface.load(small_qwen(tmp_path / "qwen"))
    learner = Learner(knobs, policy, "cuda")
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(1e-6)
    try:
        with pytest.raises(OutOfMemory, match=r"micro_tokens"):
            learner.step([group(knobs, i, [1, 0, 1, 0], lengths=[2000] * 4) for i in range(4)])
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)


def test_the_memory_of_a_step_is_its_own_peak_and_not_that_of_steps_before(recipe, group, tmp_path):
    knobs = recipe()
    learner = Learner(knobs, huggingface.load(small_qwen(tmp_path / "qwen")), "cuda")
    long, short = ([group(knobs, i, [1, 0, 1, 0], lengths=[length] * 4) for i in range(4)] for length in (1000, 8))
    learner.step(short)  # makes the optimiser's moments
    peaks = [learner.step(groups).memory for groups in (short, long, short)]
    total = torch.cuda.get_device_properties(0).total_memory
    assert [memory.total for memory in peaks] == [total] * 3
    assert peaks[2].peak == pytest.approx(peaks[0].peak, rel=0.1)
    assert 0 < peaks[0].peak < 0.5 * peaks[1].peak < total


@pytest.mark.ray
@pytest.mark.usefixtures("own_ray")
def test_a_run_under_ray_trains_on_a_gpu_counts_it_and_goes_on_from_its_checkpoint(recipe, tmp_path):
    knobs = recipe(ON_GPU | {"budget.max_steps": 6})
    first = train(knobs, Launch(tmp_path / "run", progress=False))
    assert (first.outcome, first.step) == ("succeeded", 6)
    judged = told(tmp_path / "run", "evaluations.jsonl")
    assert [line["step"] for line in judged] == [0, 2, 4, 6]
    assert judged[0]["details"]["self_check_logprob_diff"] < 1e-3
    assert all(a["compute"] <= b["compute"] for a, b in pairwise(judged))
    assert 0 < judged[-1]["compute"] < 40
    assert checkpoints.newest_valid(tmp_path / "run" / "checkpoints").step == 6
    more = with_changes(knobs, {"budget.max_steps": 8})
    (tmp_path / "recipe.json").write_text(json.dumps(more.to_dict()))
    arguments = ["--recipe", str(tmp_path / "recipe.json"), "--fork", str(tmp_path / "run"), "--out"]
    assert main([*arguments, str(tmp_path / "more")]) == 0
    assert [line["step"] for line in told(tmp_path / "more", "metrics.jsonl")][-1] == 8
    train(recipe({"budget.compute": 1}), Launch(tmp_path / "cpu", ray=False, progress=False))
    there = told(tmp_path / "cpu", "evaluations.jsonl")[0]["counts"]
    assert np.abs(np.array(there) - np.array(judged[0]["counts"])).mean() < 0.1  # the same answers but for rounding


@pytest.mark.ray
@pytest.mark.usefixtures("own_ray")
def test_a_bfloat16_model_of_a_folder_trains_on_a_gpu_with_checkpointed_layers(recipe, tmp_path):
    model = {"kind": "huggingface", "path": str(small_qwen(tmp_path / "qwen")), "dtype": "bf16"}
    knobs = recipe(ON_GPU | {"budget.max_steps": 4})
    knobs = replace_model(knobs, model | {"gradient_checkpointing": True})
    outcome = train(knobs, Launch(tmp_path / "run", progress=False))
    assert (outcome.outcome, outcome.step) == ("succeeded", 4)
    judged = told(tmp_path / "run", "evaluations.jsonl")
    assert judged[0]["details"]["self_check_logprob_diff"] < 0.05


@pytest.mark.ray
@pytest.mark.vllm
@pytest.mark.usefixtures("own_ray")
@pytest.mark.skipif(missing() is not None, reason=str(missing()))
def test_vllm_and_the_learner_share_a_gpu_and_stay_one_policy_over_swaps(recipe, tmp_path):
    """The weights' decay moves them a lot; log-probs of the next batch agree only if each swap has reached vLLM."""
    changes = {"algorithm.zero_variance_filter": "off", "algorithm.off_policy": "on-policy"}
    changes |= {"algorithm.max_staleness": 0, "optimizer.learning_rate": 0.05, "optimizer.weight_decay": 0.5}
    changes |= {"optimizer.warmup_steps": 0, "budget.max_steps": 4, "generation.engine": "vllm"}
    model = {"kind": "huggingface", "path": str(small_qwen(tmp_path / "qwen")), "dtype": "fp32"}
    knobs = with_changes(replace_model(recipe(ON_GPU), model), changes | {"budget.compute": 400})
    outcome = train(knobs, Launch(tmp_path / "run", progress=False))
    assert (outcome.outcome, outcome.step) == ("succeeded", 4)
    assert told(tmp_path / "run", "evaluations.jsonl")[0]["details"]["self_check_logprob_diff"] < 1e-3
    lines = [line["metrics"] for line in told(tmp_path / "run", "metrics.jsonl")]
    differences = [line["policy/logprob_diff_mean"] for line in lines if "policy/logprob_diff_mean" in line]
    assert len(differences) == 4
    assert max(differences) < 2e-3


def replace_model(recipe, model):
    return type(recipe).model_validate(recipe.to_dict() | {"model": model})


def told(directory: Path, name: str) -> list[dict]:
    return [json.loads(line) for line in (directory / name).read_text().splitlines()]
