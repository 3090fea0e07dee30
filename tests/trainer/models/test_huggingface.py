"""Hugging Face models from a folder: our forward is theirs, dense and mixture of experts; what is refused by name."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
import transformers

from trainer.base_weights.weights import base_weights, load_into
from trainer.engines import TorchEngine
from trainer.engines.base import SamplingConfig
from trainer.errors import ConfigurationError
from trainer.generation.generator import Generator
from trainer.learner import Learner
from trainer.models import build_model, huggingface
from trainer.models.tokenizer import load_tokenizer
from trainer.tasks import build_task
from trainer.types import Prompt, Request, Wave

from ..engines.test_engine import run

SIZES = {
    "vocab_size": 32,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.3,  # far from uniform, so that a wrong mask or position shows
    "pad_token_id": 0,
    "eos_token_id": 1,
    "bos_token_id": 2,
}
EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 24, "norm_topk_prob": True}
KINDS = {
    "qwen3": lambda **sizes: transformers.Qwen3Config(**(SIZES | {"head_dim": 16} | sizes)),
    "llama": lambda **sizes: transformers.LlamaConfig(**(SIZES | {"tie_word_embeddings": True} | sizes)),
    "qwen3-moe": lambda **sizes: transformers.Qwen3MoeConfig(**(SIZES | {"head_dim": 16} | EXPERTS | sizes)),
}


def saved(folder, kind="qwen3", **sizes):
    """A random model of this kind in `folder`, as users have it."""
    torch.manual_seed(3)
    huggingface.quiet_transformers()
    transformers.AutoModelForCausalLM.from_config(KINDS[kind](**sizes)).save_pretrained(folder)
    return folder


def plain_logprobs(folder, prompt, tokens):
    """Log-probs of response tokens by transformers' own forward of one row."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder).eval()
    row = torch.tensor([[*prompt, *tokens]])
    with torch.inference_mode():
        logprobs = model(row).logits[0, len(prompt) - 1 : -1].log_softmax(-1)
    return logprobs.gather(-1, torch.tensor(tokens)[:, None])[:, 0].numpy()


def some_prompts(count):
    rng = np.random.default_rng(0)
    return [Prompt("", "", rng.integers(3, 32, length)) for length in rng.integers(2, 12, count)]


@pytest.mark.parametrize("kind", KINDS)
def test_the_engine_gives_the_log_probs_of_the_models_own_forward_for_prompts_of_unlike_length(tmp_path, kind):
    folder = saved(tmp_path, kind)
    prompts = some_prompts(5)
    assert len({len(prompt.tokens) for prompt in prompts}) > 2
    engine = TorchEngine(huggingface.load(folder), SamplingConfig(20, 1.0, (1,)))
    answers = run(engine, [Request(i, prompt, 3, (5, i)) for i, prompt in enumerate(prompts)])
    for prompt, answer in zip(prompts, answers, strict=True):
        for row, length in enumerate(answer.lengths):
            expected = plain_logprobs(folder, prompt.tokens.tolist(), answer.tokens[row, :length].tolist())
            np.testing.assert_allclose(answer.logprobs[row, :length], expected, atol=2e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_a_learner_of_a_hugging_face_model_agrees_with_its_engine_and_learns(tmp_path, kind, recipe):
    small = recipe({"model.kind": "huggingface", "model.path": str(saved(tmp_path, kind)), "generation.max_tokens": 12})
    base = base_weights(small, tmp_path)
    task = build_task(small)
    made = Generator(small, task, lambda: load_into(build_model(small), base)).generate(
        Wave(tuple((i, i) for i in range(4)), 0), lambda held: None
    )
    for place, group in enumerate(made.groups):
        group.rewards[:] = np.resize([1.0, -1.0, -1.0], 4) * (1 + place)
    learner = Learner(small, load_into(build_model(small), base))
    before = {name: np.array(value) for name, value in learner.weights().items()}
    result = learner.step(made.groups)
    assert result.metrics["policy/logprob_diff_mean"] < 1e-5
    assert result.applied
    assert before.keys() == base.keys()
    moved = {name for name, value in learner.weights().items() if (value != before[name]).any()}
    assert len(moved) > 0.9 * len(before)


@pytest.mark.parametrize("kind", KINDS)
def test_the_gradient_is_that_of_the_models_own_forward(tmp_path, kind):
    folder = saved(tmp_path, kind)
    policy, plain = huggingface.load(folder), transformers.AutoModelForCausalLM.from_pretrained(folder)
    rng = torch.Generator().manual_seed(0)
    prompts, tokens = (torch.randint(2, 32, (3, length), generator=rng) for length in (5, 7))
    targets = torch.randn(3, 8, 32, generator=rng)
    ours = policy.logits(policy.full(prompts, tokens)).log_softmax(-1)
    theirs = plain(torch.cat([prompts, tokens], dim=1)).logits[:, 4:].log_softmax(-1)
    (ours * targets).sum().backward()
    (theirs * targets).sum().backward()
    expected = {name: parameter.grad for name, parameter in plain.named_parameters()}
    for name, tensor in policy.named_tensors().items():
        torch.testing.assert_close(
            tensor.grad, expected[name], rtol=1e-3, atol=1e-4 * float(expected[name].abs().max())
        )


def test_the_float32_head_is_that_of_the_newest_weights(tmp_path):
    folder, other = saved(tmp_path / "a"), huggingface.from_config(KINDS["qwen3"](), "bf16")
    policy = huggingface.load(folder, "bf16")
    hidden = torch.randn(4, 32, generator=torch.Generator().manual_seed(0)).bfloat16()
    old = policy.logits(hidden).detach()
    policy.load_tensors({name: tensor.detach().float().numpy() for name, tensor in other.named_tensors().items()})
    new = policy.logits(hidden).detach()
    expected = hidden.float() @ other.model.lm_head.weight.detach().float().T
    assert new.dtype == torch.float32
    torch.testing.assert_close(new, expected)
    assert float((new - old).abs().max()) > 0.1


def test_a_tied_head_is_one_tensor_and_follows_its_embedding(tmp_path):
    policy = huggingface.load(saved(tmp_path, "llama"))
    names = policy.named_tensors()
    assert "lm_head.weight" not in names
    doubled = {name: 2 * tensor.detach() for name, tensor in names.items()}
    expected = doubled["model.embed_tokens.weight"]
    policy.load_tensors(doubled)
    torch.testing.assert_close(policy.head_weight.detach(), expected)


def test_tensors_of_another_model_are_refused(tmp_path):
    policy = huggingface.load(saved(tmp_path))
    tensors = dict(policy.named_tensors())
    with pytest.raises(ValueError, match=r"missing: \['lm_head.weight'\]"):
        policy.load_tensors({name: tensor for name, tensor in tensors.items() if name != "lm_head.weight"})
    with pytest.raises(ValueError, match=r"lm_head\.weight has shape \(3, 3\)"):
        policy.load_tensors(tensors | {"lm_head.weight": torch.zeros(3, 3)})


def refused(folder, **checks):
    with pytest.raises(ConfigurationError, **checks) as caught:
        huggingface.load(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_folder_that_is_not_there_or_holds_no_model_is_named(tmp_path):
    refused(tmp_path / "nowhere", match=r"model\.path .*nowhere' is not a folder")
    refused(tmp_path, match="has no config.json")
    (tmp_path / "config.json").write_text('{"model_type": "no-such-architecture"}')
    refused(tmp_path, match="no-such-architecture")


def test_weights_that_are_missing_cut_off_or_incomplete_are_named(tmp_path):
    folder = saved(tmp_path)
    weights = folder / "model.safetensors"
    body = weights.read_bytes()
    weights.write_bytes(body[: len(body) // 2])
    refused(folder, match="cannot be loaded")
    from safetensors.torch import load, save_file

    tensors = load(body)
    tensors.pop("model.layers.1.mlp.up_proj.weight")
    save_file(tensors, weights, {"format": "pt"})
    refused(folder, match=r"lacks 1 of the model's tensors, model\.layers\.1\.mlp\.up_proj\.weight")
    weights.unlink()
    refused(folder, match="has no weights")


def test_attention_that_only_sees_a_window_is_refused(tmp_path):
    folder = saved(tmp_path)
    config = json.loads((folder / "config.json").read_text())
    changed = {"use_sliding_window": True, "sliding_window": 8, "max_window_layers": 0}
    (folder / "config.json").write_text(json.dumps({**config, **changed, "layer_types": ["sliding_attention"] * 2}))
    refused(folder, match="sliding_attention; only full attention is supported")


def test_an_architecture_whose_logits_are_not_its_head_times_its_hidden_states_is_refused(tmp_path):
    torch.manual_seed(3)
    config = transformers.GraniteConfig(**(SIZES | {"logits_scaling": 7.0}))
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    refused(tmp_path, match="GraniteForCausalLM is not supported: its log-probs differ")


@pytest.mark.parametrize(
    ("config", "why"),
    [
        (transformers.StableLmConfig(**SIZES), "it does not hand its arguments on to attention"),
        (
            transformers.Gemma2Config(**(SIZES | {"layer_types": ["full_attention"] * 2})),
            "its attention has sinks or a soft cap",
        ),
        (
            transformers.BloomConfig(vocab_size=32, hidden_size=32, n_layer=2, n_head=4),
            "2 of its layers have no attention of the usual form",
        ),
    ],
)
def test_an_architecture_that_is_not_supported_is_refused_by_what_it_has(tmp_path, config, why):
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    refused(tmp_path, match=rf"the architecture \w+ForCausalLM is not supported: {why}")


def test_a_rotary_embedding_that_is_asked_otherwise_is_left_to_the_model(tmp_path):
    torch.manual_seed(3)
    config = transformers.Gemma3TextConfig(**(SIZES | {"layer_types": ["full_attention"] * 2}))
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(tmp_path)
    policy = huggingface.load(tmp_path)
    engine = TorchEngine(policy, SamplingConfig(max_tokens=8, temperature=1.0, end_tokens=(1,)))
    prompt = Prompt("", "", np.array([3, 4, 5]))
    for responses in run(engine, [Request(0, prompt, 2, (0,))]):
        for row, length in enumerate(responses.lengths):
            expected = plain_logprobs(tmp_path, [3, 4, 5], responses.tokens[row, :length].tolist())
            np.testing.assert_allclose(responses.logprobs[row, :length], expected, atol=1e-4)


def test_a_vocabulary_that_the_task_does_not_fit_into_is_refused(tmp_path, recipe):
    folder = saved(tmp_path, vocab_size=16)
    small = recipe({"model.kind": "huggingface", "model.path": str(folder)})
    with pytest.raises(ConfigurationError, match="has 16 tokens in its vocabulary; the torus task needs 24"):
        build_model(small)


def words(size):
    """A tokenizer of whole words."""
    from tokenizers import Tokenizer, models, pre_tokenizers

    made = Tokenizer(models.WordLevel({"<pad>": 0, "<end>": 1} | {f"w{i}": i for i in range(2, size)}, "<pad>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return made


def test_a_tokenizer_comes_with_the_folder_and_must_fit_the_model(tmp_path):
    folder = saved(tmp_path)
    with pytest.raises(ConfigurationError, match="has no tokenizer"):
        load_tokenizer(folder)
    transformers.PreTrainedTokenizerFast(tokenizer_object=words(32), eos_token="<end>").save_pretrained(folder)
    assert load_tokenizer(folder)("w5 w31")["input_ids"] == [5, 31]
    transformers.PreTrainedTokenizerFast(tokenizer_object=words(33), eos_token="<end>").save_pretrained(folder)
    with pytest.raises(ConfigurationError, match="has 33 tokens, but the model's vocabulary only 32"):
        load_tokenizer(folder)
    transformers.PreTrainedTokenizerFast(tokenizer_object=words(32)).save_pretrained(folder)
    with pytest.raises(ConfigurationError, match="no end token"):
        load_tokenizer(folder)
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_tokenizer(folder)
