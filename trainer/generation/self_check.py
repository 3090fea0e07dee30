"""Do engine and learner agree? Asked before the first token that counts.

Importance ratios are only what they say when both sides give the same token the same log-prob under the same
weights. Here the engine samples a few held-out prompts, the learner's forward pass gives its own log-probs for those
tokens, and a difference beyond the recipe's threshold ends the run: a wrong position, a head of another precision, a
cache that serves old weights, or another temperature would otherwise train on quietly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from forecurve.recipes import Recipe
from trainer.engines import Engine
from trainer.errors import TrainerError
from trainer.learner.forward import Bucket, ResponseLogprobs
from trainer.models.base import Policy, pad_left
from trainer.streams import Stream
from trainer.tasks import Task
from trainer.types import Request, Responses

PROMPTS, SAMPLES, TOKENS = 4, 2, 64
"""Size of the check: held-out prompts, responses of each, and most tokens of a response."""


class EngineMismatch(TrainerError):
    """Engine and learner give the same tokens other log-probs under the same weights."""


@dataclass(frozen=True, slots=True)
class SelfCheck:
    """|log-prob difference| of engine and learner over `tokens` sampled tokens."""

    mean: float
    largest: float
    tokens: int


def check(recipe: Recipe, task: Task, engine: Engine, policy: Policy) -> SelfCheck:
    """Compare `engine` with the learner's forward pass of `policy`, which holds the same weights.

    Raises:
        EngineMismatch: the mean difference is above `generation.self_check_threshold`.
    """
    result = compare(recipe, task, engine, policy)
    threshold = recipe.generation.self_check_threshold
    if not result.mean <= threshold:
        raise EngineMismatch(
            f"engine {recipe.generation.engine} and learner disagree: mean |log-prob difference| {result.mean:.3g} "
            f"(largest {result.largest:.3g}) over {result.tokens} tokens of the same weights, above "
            f"generation.self_check_threshold {threshold:g}; compare algorithm.logits_precision, model.dtype and the "
            "versions of engine and transformers, or raise the threshold if the precision explains it"
        )
    return result


def compare(recipe: Recipe, task: Task, engine: Engine, policy: Policy) -> SelfCheck:
    """The differences, whatever they are."""
    prompts = task.held_out_prompts(PROMPTS)
    seeds = [(Stream.SELF_CHECK_NOISE, recipe.seed, place) for place in range(len(prompts))]
    pairs = enumerate(zip(prompts, seeds, strict=True))
    requests = [Request(place, prompt, SAMPLES, seed, budget=TOKENS) for place, (prompt, seed) in pairs]
    engine.submit(requests)
    answers: list[Responses] = []
    while engine.busy:
        answers += engine.step()
    answers.sort(key=lambda responses: responses.key)
    differences = np.concatenate(
        [_differences(recipe, policy, request, found) for request, found in zip(requests, answers, strict=True)]
    )
    return SelfCheck(float(differences.mean()), float(differences.max()), len(differences))


@torch.no_grad()
def _differences(recipe: Recipe, policy: Policy, request: Request, found: Responses) -> NDArray[np.float32]:
    """|difference| at each sampled token of one request."""
    device = policy.head_weight.device
    forward = ResponseLogprobs(policy, recipe.generation.temperature, recipe.algorithm.logits_precision).eval()
    width = max(2, found.tokens.shape[1])
    pad = ((0, 0), (0, width - found.tokens.shape[1]))
    tokens, sampled = np.pad(found.tokens, pad), np.pad(found.sampled, pad)
    bucket = Bucket(
        owner=np.zeros(len(tokens), dtype=np.int64),
        lengths=found.lengths,
        tokens=torch.from_numpy(tokens).to(device),
        trained=torch.from_numpy(sampled).to(device),
    )
    prompts, _ = pad_left([request.prompt.tokens])
    logprobs = forward(prompts.to(device), None, [bucket])[0][0].cpu().numpy()
    differences: NDArray[np.float32] = np.abs(logprobs - np.pad(found.logprobs, pad))[sampled]
    return differences
