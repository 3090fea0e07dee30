"""Memory: the most that a step took, and running out of it told as what to change."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from forecurve.recipes import Recipe
from trainer.errors import OutOfMemory
from trainer.types import Memory


def forget_peak(device: torch.device) -> None:
    """From here on the peak of a GPU is counted anew."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)


def peak_memory(device: torch.device) -> Memory:
    """Of a GPU what torch has allocated at most since `forget_peak`; of a CPU what this process ever had in memory."""
    if device.type == "cuda":
        return Memory(torch.cuda.max_memory_allocated(device), torch.cuda.get_device_properties(device).total_memory)
    return Memory(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)  # Linux counts it in KiB


@contextmanager
def memory_named(recipe: Recipe, micro_tokens: int) -> Iterator[None]:
    """Turn torch's out-of-memory, on a GPU or a CPU, into an `OutOfMemory` that says which field to lower."""
    with _named(
        f"the learner ran out of memory with batch.micro_tokens {micro_tokens}: lower it"
        f"{_checkpointing(recipe)}, or lower generation.max_tokens ({recipe.generation.max_tokens}), since "
        "a response always runs whole"
    ):
        yield


@contextmanager
def generator_memory_named(recipe: Recipe) -> Iterator[None]:
    """The same of a generator."""
    batch = recipe.batch
    with _named(
        f"a generator ran out of memory at {batch.prompts_per_step} prompts x {batch.generations_per_prompt} responses "
        f"of at most {recipe.generation.max_tokens} tokens: lower batch.prompts_per_step, "
        "batch.generations_per_prompt or generation.max_tokens, or give the run more generators"
    ):
        yield


@contextmanager
def _named(text: str) -> Iterator[None]:
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not _is_out_of_memory(error):
            raise
        raise OutOfMemory(text) from error


@contextmanager
def suppress_out_of_memory() -> Iterator[None]:
    """Go on without what did not fit into memory."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not _is_out_of_memory(error):
            raise


def _is_out_of_memory(error: Exception) -> bool:
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return "can't allocate memory" in str(error) or "not enough memory" in str(error)  # torch's CPU allocator


def _checkpointing(recipe: Recipe) -> str:
    on = getattr(recipe.model, "gradient_checkpointing", None)
    return "" if on is None or on else ", set model.gradient_checkpointing"
