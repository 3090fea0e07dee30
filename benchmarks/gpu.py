"""Learner and torch engine on one GPU at a size that people train, beside what the chip can do and a plain step.

A Qwen3 of 0.6 billion parameters with random weights, in bfloat16 with a float32 head: `--prompts` x `--samples`
responses of 256 to `--tokens` tokens after prompts of 64 to 256. Limit: a large matrix product in bfloat16, measured
in the same process; a token's work is 6 x the parameters without the embedding, and attention's own. Peer: the same
rows and gradient as a plain loop makes them (prompts repeated with every response, transformers' own forward pass
with its fused attention, all logits in float32 of a bfloat16 head, rows of like length together).

    python benchmarks/gpu.py [--prompts 8] [--samples 8] [--tokens 2048] [--engine-tokens 64] [--json]
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import numpy as np
import torch
from common import answer, note, parser, table
from transformers import AutoModelForCausalLM, Qwen3Config

from forecurve.recipes import SCALERL, Recipe, with_changes
from trainer.engines import TorchEngine
from trainer.engines.base import SamplingConfig
from trainer.learner import Learner
from trainer.models import huggingface
from trainer.types import Group, Prompt, Request, Responses

VOCABULARY, WIDTH, LAYERS, HEADS, KEY_HEADS, HEAD = 151_936, 1024, 28, 16, 8, 128
SHORTEST = 256
PLAIN_TOKENS = 16_384
"""That run together in the plain step: its logits take 10 GB in float32, several times over."""
GIB = 2**30


def main() -> None:
    made = parser(__doc__, runs=2)
    made.add_argument("--prompts", type=int, default=8)
    made.add_argument("--samples", type=int, default=8)
    made.add_argument("--tokens", type=int, default=2048, help="of the longest response")
    made.add_argument("--micro-tokens", type=int, default=32_768)
    made.add_argument("--engine-tokens", type=int, default=64, help="made by each row of the engine; 0: leave it out")
    made.add_argument("--checkpointing", action="store_true", help="gradient checkpointing in both")
    given = made.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("no GPU here; this measures one")
    found: dict[str, Any] = {"device": torch.cuda.get_device_name(), "limit_tflops": limit()}
    groups = batch(given)
    found["learner"] = learner(given, groups, found["limit_tflops"])
    found["plain"] = plain(given, groups, found["limit_tflops"])
    if given.engine_tokens:
        found["engine"] = engine(given)
    answer(found) if given.json else report(found)


def config() -> Qwen3Config:
    """Qwen3-0.6B's shape."""
    return Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=WIDTH,
        intermediate_size=3 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=KEY_HEADS,
        head_dim=HEAD,
        max_position_embeddings=40_960,
        tie_word_embeddings=True,
    )


def batch(given: Namespace) -> list[Group]:
    """Prompts and responses of drawn lengths and tokens; half of each group is right."""
    rng = np.random.default_rng(0)
    return [group(rng, ordinal, given) for ordinal in range(given.prompts)]


def group(rng: np.random.Generator, ordinal: int, given: Namespace) -> Group:
    lengths = rng.integers(SHORTEST, given.tokens + 1, given.samples)
    inside = np.arange(lengths.max()) < lengths[:, None]
    passed = np.arange(given.samples) % 2 == 0
    responses = Responses(
        key=ordinal,
        tokens=np.where(inside, rng.integers(0, VOCABULARY, inside.shape), 0),
        logprobs=np.where(inside, -np.log(VOCABULARY), 0).astype(np.float32),
        versions=np.zeros(inside.shape, dtype=np.int32),
        lengths=lengths,
        finished=np.ones(given.samples, dtype=bool),
        sampled=inside,
        interrupted=np.zeros(given.samples, dtype=bool),
    )
    prompt = Prompt("", "", rng.integers(0, VOCABULARY, rng.integers(64, 257)))
    return Group(ordinal, prompt, responses, np.where(passed, 1.0, -1.0), passed)


def recipe(given: Namespace) -> Recipe:
    """ScaleRL with this batch."""
    changes = {
        "task.pool": None,
        "algorithm.no_positive_resampling": None,
        "length_control.kind": "none",
        "batch.prompts_per_step": given.prompts,
        "batch.generations_per_prompt": given.samples,
        "batch.micro_tokens": given.micro_tokens,
        "generation.max_tokens": given.tokens,
    }
    model = {"kind": "huggingface", "path": "unused", "dtype": "bf16", "gradient_checkpointing": given.checkpointing}
    return with_changes(Recipe.model_validate(SCALERL.to_dict() | {"model": model}), changes)


def learner(given: Namespace, groups: list[Group], tflops: float) -> dict[str, float]:
    """Whole steps of ours: gradients, optimiser, weights handed out."""
    torch.manual_seed(0)
    with torch.device("cuda"):
        policy = huggingface.from_config(config(), "bf16")
    ours = Learner(recipe(given), policy, "cuda")
    ours.rehearse()
    tokens, work = size(groups, repeated=False)
    inside: dict[str, list[float]] = {"gradients": [], "handed_out": []}
    timed_within(ours, "gradients", inside["gradients"])
    timed_within(ours, "weights", inside["handed_out"])
    seconds = timed(lambda: ours.step(groups), given.runs)
    return figures(seconds, tokens, work, tflops) | {f"{name}_seconds": min(values) for name, values in inside.items()}


def plain(given: Namespace, groups: list[Group], tflops: float) -> dict[str, float]:
    """Forward and backward as a plain loop does, and an optimiser step."""
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(config(), dtype=torch.bfloat16, attn_implementation="sdpa")
    if given.checkpointing:
        model.gradient_checkpointing_enable()
    model.train()
    adam = torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)
    parts = of_like_length(groups)

    def step() -> None:
        for part in parts:
            ids, trained = rectangle(part)
            logits = model(ids, use_cache=False).logits[:, :-1].float()
            chosen = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])[..., 0]
            (chosen * trained[:, 1:]).sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad()

    tokens, work = size(groups, repeated=True)
    return figures(timed(step, given.runs), tokens, work, tflops)


def of_like_length(groups: list[Group]) -> list[list[tuple[np.ndarray, int]]]:
    """Every response after its prompt, with the prompt's length, in parts of PLAIN_TOKENS at most, padding included."""
    rows = [
        (np.concatenate([one.prompt.tokens, tokens[:length]]), len(one.prompt.tokens))
        for one in groups
        for tokens, length in zip(one.responses.tokens, one.responses.lengths, strict=True)
    ]
    parts: list[list[tuple[np.ndarray, int]]] = []
    for row in sorted(rows, key=lambda row: len(row[0])):
        if not parts or (len(parts[-1]) + 1) * len(row[0]) > PLAIN_TOKENS:
            parts.append([])
        parts[-1].append(row)
    return parts


def rectangle(part: list[tuple[np.ndarray, int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens [N, T] padded on the right, and which of them are trained on."""
    longest = max(len(row) for row, _ in part)
    ids = torch.zeros(len(part), longest, dtype=torch.long)
    trained = torch.zeros(len(part), longest, dtype=torch.bool)
    for at, (row, prompt) in enumerate(part):
        ids[at, : len(row)] = torch.from_numpy(row)
        trained[at, prompt : len(row)] = True
    return ids.cuda(), trained.cuda()


def engine(given: Namespace) -> dict[str, float]:
    """Tokens a second of the torch engine, all rows decoded together."""
    torch.manual_seed(0)
    with torch.device("cuda"):
        policy = huggingface.from_config(config(), "bf16")
    ours = TorchEngine(policy, SamplingConfig(given.engine_tokens, 1.0, ()), device="cuda")
    rng = np.random.default_rng(0)
    prompts = [Prompt("", "", rng.integers(0, VOCABULARY, rng.integers(64, 257))) for _ in range(given.prompts * 4)]

    def run() -> None:
        ours.submit([Request(at, prompt, given.samples, (1, at)) for at, prompt in enumerate(prompts)])
        while ours.busy:
            ours.step()

    seconds = timed(run, given.runs)
    rows = len(prompts) * given.samples
    return {"rows": rows, "seconds": seconds, "tokens_a_second": rows * given.engine_tokens / seconds}


def size(groups: list[Group], repeated: bool) -> tuple[int, float]:
    """Response tokens, and the floating point operations of a forward and a backward pass over all that must run."""
    layer = WIDTH * HEAD * (2 * HEADS + 2 * KEY_HEADS) + 3 * WIDTH * 3 * WIDTH
    body, head = LAYERS * layer, WIDTH * VOCABULARY
    tokens, work = 0, 0.0
    for one in groups:
        prompt = len(one.prompt.tokens)
        work += 6.0 * body * prompt * (len(one.responses.lengths) if repeated else 1)
        for length in one.responses.lengths.tolist():
            tokens += length
            seen = length * prompt + length * length / 2
            work += 6.0 * (body + head) * length + 3 * 4.0 * LAYERS * HEADS * HEAD * seen
    return tokens, work


def figures(seconds: float, tokens: int, work: float, tflops: float) -> dict[str, float]:
    return {
        "seconds": seconds,
        "tokens_a_second": tokens / seconds,
        "share_of_limit": work / seconds / 1e12 / tflops,
        "peak_gib": torch.cuda.max_memory_allocated() / GIB,
    }


def limit() -> float:
    """TFLOP/s of an 8192 x 8192 x 8192 product in bfloat16, the best of ten."""
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    return 2 * 8192**3 / timed(lambda: a @ b, 10) / 1e12


def timed(work: Callable[[], Any], runs: int) -> float:
    """Seconds of the best of so many, after one that warms up."""
    torch.cuda.reset_peak_memory_stats()
    found = []
    for turn in range(runs + 1):
        torch.cuda.synchronize()
        began = time.perf_counter()
        work()
        torch.cuda.synchronize()
        found.append(time.perf_counter() - began)
        if turn == 0:
            note(f"first {found[0]:.3f} s")
    return min(found[1:])


def timed_within(owner: Any, name: str, seconds: list[float]) -> None:
    """Keep how long each call of this method takes, the device's work included."""
    inner = getattr(owner, name)

    def outer(*arguments: Any) -> Any:
        torch.cuda.synchronize()
        began = time.perf_counter()
        result = inner(*arguments)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - began)
        return result

    setattr(owner, name, outer)


def report(found: dict[str, Any]) -> None:
    print(f"{found['device']}: {found['limit_tflops']:.0f} TFLOP/s in a large bfloat16 product")
    columns = ["tokens_a_second", "seconds", "share_of_limit", "peak_gib", "gradients_seconds", "handed_out_seconds"]
    rows = [[name, *(found[name].get(column) for column in columns)] for name in ("learner", "plain")]
    table(["", *columns], rows)
    print(f"learner : plain step {found['learner']['tokens_a_second'] / found['plain']['tokens_a_second']:.2f}")
    if "engine" in found:
        print(f"engine: {found['engine']['tokens_a_second']:,.0f} tokens a second in {found['engine']['rows']} rows")


if __name__ == "__main__":
    main()
