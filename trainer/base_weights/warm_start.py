"""The base model's warm start: supervised steps on demonstrations that are right only some of the time.

    python -m trainer.base_weights.warm_start --out FILE [--layout walls --width 64 --layers 2 --heads 4 --no-echo]

Demonstrations mix clean chains, chains that slip and go on from the slip, direct answers and rambling that never
ends, so that the base solves a fifth of the prompts and RL has habits to unlearn. The held-out prompts are not
among them. The same arguments give the same weights on the same machine and torch build; the files that ship with
the trainer (`trainer/assets`) are those of the default size on every layout, checked by digest whenever one is
loaded.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from torch.nn import functional as F

from trainer.models import Policy, TinyConfig, TinyDecoder
from trainer.streams import Stream
from trainer.tasks import TorusTask
from trainer.tasks import vocabulary as vocab
from trainer.tasks.walks import LAYOUTS, MAX_MOVES, Cell, Layout, Walk, cells_text

STEPS = 1400
BATCH = 64
PEAK_LEARNING_RATE = 3e-3
RESPONSE_TOKENS = 36
"""Longest demonstration; rambling fills it without an end token."""
SHARES = {"clean": 0.25, "noisy": 0.35, "direct": 0.25, "rambling": 0.15}
SLIP = 0.25
"""Chance that a cell of a noisy chain is a random neighbour of the right one."""
SEEDS = (1, 2)
"""Seeds to try in turn: now and then one gets stuck before it has learned to follow every move."""
SKILLED = 0.99
"""Share of a clean chain's tokens that a skilled base finds likelier than not (see `skill`)."""
IGNORED = -100


def main(arguments: list[str] | None = None) -> int:
    """Train a base model and write it; the loss is printed as it falls."""
    parser = argparse.ArgumentParser(
        prog="python -m trainer.base_weights.warm_start", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--width", type=int, default=64)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--layout", choices=sorted(LAYOUTS), default="open")
    parser.add_argument("--no-echo", action="store_true", help="responses do not begin with the start cell")
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--seed", type=int, default=SEEDS[0])
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    task = TorusTask(1, MAX_MOVES, not given.no_echo, given.layout)
    config = TinyConfig(given.width, given.layers, given.heads, task.vocabulary_size, task.prompt_length)
    model = warm_started(config, task, given.steps, given.seed, progress=True)
    save(model, given.out)
    print(f"wrote {given.out}", file=sys.stderr)
    return 0


def settings() -> dict[str, Any]:
    """All that decides a warm start's weights beside the model's sizes and the task."""
    return {
        "steps": STEPS,
        "batch": BATCH,
        "rate": PEAK_LEARNING_RATE,
        "tokens": RESPONSE_TOKENS,
        "shares": SHARES,
        "slip": SLIP,
        "seeds": SEEDS,
    }


def save(model: TinyDecoder, path: Path) -> None:
    """Weights as safetensors; a reader never sees half a file."""
    partial = path.with_name(path.name + ".tmp")
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file({name: tensor.contiguous() for name, tensor in model.state_dict().items()}, partial)
    partial.replace(path)


def warm_started(
    config: TinyConfig, task: TorusTask, steps: int | None = None, seed: int = SEEDS[0], progress: bool = False
) -> TinyDecoder:
    """A tiny decoder of these sizes, taught for `steps` steps (`STEPS` by default)."""
    torch.manual_seed(seed)
    model = TinyDecoder(config)
    teach(model, task, STEPS if steps is None else steps, seed, progress)
    return model


def teach(model: Policy, task: TorusTask, steps: int, seed: int = SEEDS[0], progress: bool = False) -> None:
    """Train any policy for `steps` steps of `BATCH` demonstrations: AdamW, cosine to zero."""
    rng = np.random.default_rng((Stream.DEMONSTRATIONS, seed))
    optimizer = torch.optim.AdamW(model.parameters(), lr=PEAK_LEARNING_RATE, weight_decay=0.01, fused=True)
    started = time.thread_time()
    for step in range(steps):
        rate = PEAK_LEARNING_RATE * min(1.0, (step + 1) / 50) * 0.5 * (1 + math.cos(math.pi * step / steps))
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = demonstration_loss(model, *demonstrations(task, rng, BATCH))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if progress and step % 100 == 99:
            spent = time.thread_time() - started
            print(f"step {step + 1}/{steps}  loss {loss.item():.4f}  cpu {spent:.1f} s", file=sys.stderr)


def skilled_base(config: TinyConfig, task: TorusTask) -> TinyDecoder:
    """A warm-started model that can follow every move, or the most skilled of a few that cannot (too small ones)."""
    best, best_skill = None, -1.0
    with _one_thread():
        for seed in SEEDS:
            model = warm_started(config, task, seed=seed, progress=True)
            found = skill(model, task)
            if found > best_skill:
                best, best_skill = model, found
            if found >= SKILLED:
                break
            print(f"seed {seed}: only {found:.2f} of a chain's tokens are likely", file=sys.stderr)
    assert best is not None
    return best


@contextmanager
def _one_thread() -> Iterator[None]:
    """Sums of several threads differ in their last bits from those of one, and weights would depend on the cores."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@torch.inference_mode()
def skill(model: Policy, task: TorusTask, walks: int = 128) -> float:
    """Share of the tokens of clean chains to which the model gives more than one half, the others' cells given."""
    rng, shares = np.random.default_rng((Stream.WARM_START_SKILL,)), []
    for _ in range(walks):
        walk = task.training_walk(rng)
        chain = torch.tensor([vocab.encode(task.chain(walk, task.layout.cells(walk)))])
        prompt = torch.from_numpy(task.prompt(walk).tokens[None])
        probabilities = model.logits(model.full(prompt, chain[:, :-1])).softmax(-1)
        shares.append(float((probabilities.gather(-1, chain[..., None]) > 0.5).float().mean()))
    return float(np.mean(shares))


def demonstration_loss(model: Policy, prompts: torch.Tensor, responses: torch.Tensor) -> torch.Tensor:
    """Mean cross-entropy of response tokens; `responses` [N, T] is padded with IGNORED."""
    inputs = responses[:, :-1].clamp(min=0)
    logits = model.logits(model.full(prompts, inputs))
    return F.cross_entropy(logits.flatten(0, 1), responses.flatten(), ignore_index=IGNORED)


def demonstrations(task: TorusTask, rng: np.random.Generator, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """`count` fresh demonstrations: prompts [N, S], responses [N, T] padded with IGNORED to the longest."""
    prompts, rows = [], []
    kinds = rng.choice(len(SHARES), size=count, p=list(SHARES.values()))
    for kind in kinds.tolist():
        walk = task.training_walk(rng)
        prompts.append(task.prompt(walk).tokens)
        rows.append(_demonstration(task, walk, list(SHARES)[kind], rng))
    longest = max(map(len, rows))
    padded = np.full((count, longest), IGNORED, dtype=np.int64)
    for row, tokens in zip(padded, rows, strict=True):
        row[: len(tokens)] = tokens
    return torch.from_numpy(np.stack(prompts)), torch.from_numpy(padded)


def _demonstration(task: TorusTask, walk: Walk, kind: str, rng: np.random.Generator) -> list[int]:
    cells = task.layout.cells(walk)
    if kind == "rambling":
        chain = task.chain(walk, cells).partition(">")[0] + cells_text(cells[-1:]) * RESPONSE_TOKENS
        return vocab.encode(chain[:RESPONSE_TOKENS])
    if kind == "direct":
        text = (cells_text(walk.starts) if task.echo_start else "") + ">" + task.prompt(walk).answer
    else:
        text = task.chain(walk, _slipping_cells(task.layout, walk, rng) if kind == "noisy" else cells)
    return [*vocab.encode(text), vocab.END]


def _slipping_cells(layout: Layout, walk: Walk, rng: np.random.Generator) -> list[Cell]:
    """Cells of a chain in which a cell slips to a neighbour now and then, and the chain goes on from there."""
    here, cells = list(walk.starts), []
    for turn, move in enumerate(walk.moves):
        robot = turn % layout.robots
        here[robot] = layout.moved(here[robot], move)
        if rng.random() < SLIP:
            here[robot] = layout.moved(here[robot], ("NSEW"[rng.integers(4)], 1))
        cells.append(here[robot])
    return cells


if __name__ == "__main__":
    sys.exit(main())
