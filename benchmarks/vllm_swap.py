"""In-flight weight swaps in vLLM: the share of wall time that generation stands still, and tokens per second beside
the same engine without swaps and beside vLLM's own API without any of ours.

A random Qwen3, of the testbed's size if nothing else is said, generates batches of 32 prompts x 16 responses of
`--tokens` tokens (no end token, so that every batch is the same work). In the runs with swaps new weights come once a
batch, while it is under way, as in training.
Asked: at most 1 % paused, and at least 85 % of vLLM alone on a GPU; what a CPU gives is told as such.

    python benchmarks/vllm_swap.py [--batches 20] [--tokens 24] [--width 64] [--device cpu] [--json]
    python benchmarks/vllm_swap.py --device cuda --width 1024 --layers 28 --vocabulary 151936 --dtype bf16 --tokens 256
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import answer, note, parser, table

from trainer.engines.base import SamplingConfig
from trainer.engines.vllm_adapter import VllmOptions, missing
from trainer.engines.vllm_engine import VllmEngine
from trainer.types import Prompt, Request

PROMPTS, SAMPLES, PROMPT_TOKENS, PROMPT_VOCABULARY, ROWS = 32, 16, 28, 64, 512
ASKED_PAUSED, ASKED_ALONE = 0.01, 0.85


def main() -> int:
    made = parser(__doc__)
    made.add_argument("--batches", type=int, default=20)
    made.add_argument("--tokens", type=int, default=24)
    made.add_argument("--width", type=int, default=64)
    made.add_argument("--layers", type=int, default=2)
    made.add_argument("--vocabulary", type=int, default=64)
    made.add_argument("--dtype", choices=["fp32", "bf16"], default="fp32")
    made.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    given = made.parse_args()
    if reason := missing():
        raise SystemExit(reason)
    with tempfile.TemporaryDirectory() as folder:
        context = PROMPT_TOKENS + given.tokens
        weights = save_model(Path(folder), given, context)
        options = VllmOptions(folder, dtype=given.dtype, device=given.device, context=context, rows=ROWS)
        engine = VllmEngine(options, SamplingConfig(given.tokens, 1.0, ()))
        try:
            found = measured(engine, weights, given.batches, given.tokens)
        finally:
            engine.close()
    report(found, given.device, given.json)
    return 0 if found["swaps"]["paused_share"] <= ASKED_PAUSED else 1


def measured(engine: VllmEngine, weights: dict[str, torch.Tensor], batches: int, tokens: int) -> dict[str, Any]:
    """Figures of the three ways. They take turns, a batch each, so that what else the machine does meets all alike;
    speeds are of the median batch. `core_cpu_ms` is CPU time of vLLM's processes in a batch, in the median."""
    ways: dict[str, Callable[[int], float]] = {
        "alone": lambda batch: alone(engine, tokens),
        "engine": lambda batch: generate(engine, batch),
        "swaps": lambda batch: generate(engine, batch, lambda: engine.load_weights(engine.version + 1, weights)),
    }
    generate(engine, 0)  # warm
    taken: dict[str, list[tuple[float, float, float]]] = {name: [] for name in ways}
    for batch in range(batches):
        for name, way in ways.items():
            began, used = time.perf_counter(), engine.cpu_seconds()
            stood = way(batch)
            seconds = time.perf_counter() - began
            note(f"batch {batch + 1} of {batches}, {name}: {seconds:.1f} s")
            taken[name].append((seconds, stood, engine.cpu_seconds() - used))
    middle = {name: np.median(batches_of, axis=0) for name, batches_of in taken.items()}
    return {
        name: {
            "tokens_a_second": float(PROMPTS * SAMPLES * tokens / seconds),
            "share_of_alone": float(middle["alone"][0] / seconds),
            "paused_share": float(stood / seconds),
            "paused_ms_a_swap": float(1000 * stood),
            "core_cpu_ms": float(1000 * cpu),
        }
        for name, (seconds, stood, cpu) in middle.items()
    }


def generate(engine: VllmEngine, batch: int, under_way: Callable[[], float] = lambda: 0.0) -> float:
    """One batch through the engine, and what is to happen while it is under way; for how many seconds that made
    generation stand still."""
    engine.submit([Request(p, prompt(p), SAMPLES, (batch, p)) for p in range(PROMPTS)])
    engine.step()  # let it begin
    stood = under_way()
    while engine.busy:
        engine.step()
    return stood


def alone(engine: VllmEngine, tokens: int) -> float:
    """The same requests by vLLM's API alone: no groups, no polling."""
    adapter, loop = engine._running, engine._loop

    async def batch() -> None:
        rows = [(prompt(p).tokens, p * SAMPLES + s) for p in range(PROMPTS) for s in range(SAMPLES)]
        await asyncio.gather(*(adapter.complete(given, seed, tokens) for given, seed in rows))

    asyncio.run_coroutine_threadsafe(batch(), loop).result()
    return 0.0


def prompt(place: int) -> Prompt:
    return Prompt("", "", np.random.default_rng(place).integers(0, PROMPT_VOCABULARY, PROMPT_TOKENS))


def save_model(folder: Path, given: Namespace, context: int) -> dict[str, torch.Tensor]:
    """A random Qwen3, saved; its weights."""
    from transformers import AutoModelForCausalLM, Qwen3Config

    width, dtype = given.width, torch.bfloat16 if given.dtype == "bf16" else torch.float32

    torch.manual_seed(0)
    config = Qwen3Config(
        vocab_size=given.vocabulary,
        hidden_size=width,
        intermediate_size=4 * width,
        num_hidden_layers=given.layers,
        num_attention_heads=4,
        num_key_value_heads=4,
        head_dim=max(32, width // 4),
        max_position_embeddings=context,
        tie_word_embeddings=False,
    )
    model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    model.save_pretrained(folder)
    return model.state_dict()


def report(found: dict[str, Any], device: str, as_json: bool) -> None:
    if as_json:
        answer(found | {"device": device, "asked_paused": ASKED_PAUSED, "asked_of_alone": ASKED_ALONE})
        return
    columns = ["tokens_a_second", "share_of_alone", "paused_share", "paused_ms_a_swap", "core_cpu_ms"]
    table(["", *columns], [[name, *(way[column] for column in columns)] for name, way in found.items()])
    print(
        f"paused {found['swaps']['paused_share']:.2%} of wall time (asked: at most {ASKED_PAUSED:.0%}), on a {device}; "
        f"{ASKED_ALONE:.0%} of vLLM alone is asked of a GPU"
    )


if __name__ == "__main__":
    raise SystemExit(main())
