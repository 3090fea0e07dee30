"""In-flight weight swaps in vLLM: the share of wall time that generation stands still, and tokens per second beside
the same engine without swaps and beside vLLM's own API without any of ours.

A random Qwen3 of the testbed's size generates batches of 32 prompts x 16 responses of 24 tokens (no end token, so
that every batch is the same work). In the run with swaps new weights come once a batch, while it is under way, as in
training. Asked: at most 1 % paused, and at least 85 % of vLLM alone on a GPU; what a CPU gives is told as such.

    python benchmarks/vllm_swap.py [--batches 20] [--tokens 24] [--width 64] [--device cpu] [--json]
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import answer, note, parser, table

from trainer.engines.base import SamplingConfig
from trainer.engines.vllm_adapter import VllmOptions, missing
from trainer.engines.vllm_engine import VllmEngine
from trainer.types import Prompt, Request

PROMPTS, SAMPLES, PROMPT_TOKENS, VOCABULARY, ROWS = 32, 16, 28, 64, 512
ASKED_PAUSED, ASKED_ALONE = 0.01, 0.85


def main() -> int:
    made = parser(__doc__)
    made.add_argument("--batches", type=int, default=20)
    made.add_argument("--tokens", type=int, default=24)
    made.add_argument("--width", type=int, default=64)
    made.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    given = made.parse_args()
    if reason := missing():
        raise SystemExit(reason)
    with tempfile.TemporaryDirectory() as folder:
        weights = save_model(Path(folder), given.width, PROMPT_TOKENS + given.tokens)
        options = VllmOptions(folder, device=given.device, context=PROMPT_TOKENS + given.tokens, rows=ROWS)
        engine = VllmEngine(options, SamplingConfig(given.tokens, 1.0, ()))
        try:
            found = measured(engine, weights, given.batches, given.tokens)
        finally:
            engine.close()
    report(found, given.device, given.json)
    return 0 if found["swaps"]["paused_share"] <= ASKED_PAUSED else 1


def measured(engine: VllmEngine, weights: dict[str, torch.Tensor], batches: int, tokens: int) -> dict[str, Any]:
    """Figures of the three ways, one after the other in one engine."""
    generate(engine, 0, 2)  # warm
    note("vLLM's own API ...")
    alone = alone_rate(engine, batches, tokens)
    note("our engine ...")
    quiet = rate(engine, batches, tokens)
    note("our engine with swaps ...")
    before = engine.paused_seconds
    swaps = rate(engine, batches, tokens, weights)
    swaps["paused_share"] = (engine.paused_seconds - before) / swaps["seconds"]
    swaps["paused_ms_a_swap"] = 1000 * (engine.paused_seconds - before) / batches
    for way in (quiet, swaps):
        way["share_of_alone"] = way["tokens_a_second"] / alone["tokens_a_second"]
    return {"alone": alone, "engine": quiet, "swaps": swaps}


def rate(
    engine: VllmEngine, batches: int, tokens: int, weights: dict[str, torch.Tensor] | None = None
) -> dict[str, float]:
    """Seconds and tokens per second of so many batches; with `weights`, swapped once in each."""
    began = time.perf_counter()
    for batch in range(batches):
        generate(engine, batch, 1, weights)
    return throughput(time.perf_counter() - began, batches, tokens)


def generate(engine: VllmEngine, first: int, count: int, weights: dict[str, torch.Tensor] | None = None) -> None:
    for batch in range(first, first + count):
        engine.submit([Request(p, prompt(p), SAMPLES, (batch, p)) for p in range(PROMPTS)])
        engine.step()  # let it begin
        if weights is not None:
            engine.load_weights(engine.version + 1, weights)
        while engine.busy:
            engine.step()


def alone_rate(engine: VllmEngine, batches: int, tokens: int) -> dict[str, float]:
    """The same requests by vLLM's API alone: no seeds of ours, no groups, no polling."""
    adapter, loop = engine._running, engine._loop

    async def batch() -> None:
        await asyncio.gather(
            *(
                adapter.complete(prompt(p).tokens, p * SAMPLES + s, tokens)
                for p in range(PROMPTS)
                for s in range(SAMPLES)
            )
        )

    began = time.perf_counter()
    for _ in range(batches):
        asyncio.run_coroutine_threadsafe(batch(), loop).result()
    return throughput(time.perf_counter() - began, batches, tokens)


def throughput(seconds: float, batches: int, tokens: int) -> dict[str, float]:
    return {"seconds": seconds, "tokens_a_second": batches * PROMPTS * SAMPLES * tokens / seconds}


def prompt(place: int) -> Prompt:
    return Prompt("", "", np.random.default_rng(place).integers(0, VOCABULARY, PROMPT_TOKENS))


def save_model(folder: Path, width: int, context: int) -> dict[str, torch.Tensor]:
    """A random Qwen3, saved; its weights."""
    from transformers import AutoModelForCausalLM, Qwen3Config

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=max(32, width // 4),
        max_position_embeddings=context,
        tie_word_embeddings=False,
    )
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.save_pretrained(folder)
    return model.state_dict()


def report(found: dict[str, Any], device: str, as_json: bool) -> None:
    if as_json:
        answer(found | {"device": device, "asked_paused": ASKED_PAUSED, "asked_of_alone": ASKED_ALONE})
        return
    swaps = found["swaps"]
    rows = [[name, way["tokens_a_second"], way.get("share_of_alone")] for name, way in found.items()]
    table(["", "tokens/s", "of alone"], rows)
    print(
        f"paused {swaps['paused_share']:.2%} of wall time (asked: at most {ASKED_PAUSED:.0%}), "
        f"{swaps['paused_ms_a_swap']:.1f} ms a swap, on a {device}; {ASKED_ALONE:.0%} of vLLM alone is asked of a GPU"
    )


if __name__ == "__main__":
    raise SystemExit(main())
