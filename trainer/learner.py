"""The learner: one optimiser step per batch of groups.

Prompts run once and their keys and values serve all G responses; responses are run in buckets of like length.
A step whose loss or gradient is not finite leaves the weights alone and is counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from forecurve.recipes import Recipe
from trainer.batching import TrainingBatch, length_buckets, training_batch
from trainer.clock import Stopwatch
from trainer.errors import CheckpointError
from trainer.losses import cispo_loss, dapo_loss, importance_ratio
from trainer.models import TinyDecoder
from trainer.models.base import PromptCache
from trainer.schedule import learning_rate
from trainer.types import Group, LearnerState, StepResult, WeightVersion

ROWS_PER_BUCKET = 128
"""Responses run together: few enough to stay in the cache and to pad little."""


class Learner:
    """Policy, optimiser and counters. `version` counts the batches consumed, and names the weights."""

    def __init__(self, recipe: Recipe, model: TinyDecoder, device: str = "cpu", rows_per_bucket: int = ROWS_PER_BUCKET):
        self.recipe, self.model = recipe, model.to(device)
        self.version = 0
        self._device = torch.device(device)
        self._rows_per_bucket = rows_per_bucket
        knobs = recipe.optimizer
        self._optimizer = torch.optim.AdamW(
            self.model.parameters(),
            lr=knobs.learning_rate,
            betas=(knobs.beta1, knobs.beta2),
            eps=knobs.epsilon,
            weight_decay=knobs.weight_decay,
            fused=True,
        )

    def step(self, groups: Sequence[Group]) -> StepResult:
        """Consume a batch of groups; the weights that come out are version `self.version`."""
        watch = Stopwatch.start()
        self.version += 1
        batch = training_batch(groups, self.recipe.algorithm)
        metrics = {"train/kept_prompts": float(len(batch.prompts) if batch else 0)}
        not_finite = False
        if batch is not None:
            metrics |= self._update(batch)
            not_finite = metrics["train/skipped"] > 0
        applied = batch is not None and not not_finite
        weights = WeightVersion(self.version, self.weights())
        return StepResult(self.version, metrics, weights, applied, not_finite, watch.cost())

    def weights(self) -> dict[str, NDArray[Any]]:
        """A copy of the policy's weights, by parameter name."""
        return {name: value.detach().cpu().numpy().copy() for name, value in self.model.state_dict().items()}

    def _update(self, batch: TrainingBatch) -> dict[str, float]:
        rate = learning_rate(self.recipe.optimizer, self.version, self.recipe.budget.last_step)
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.zero_grad(set_to_none=True)
        loss, sums = self._backward(batch)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.recipe.optimizer.max_grad_norm)
        finite = bool(torch.isfinite(norm)) and bool(np.isfinite(loss))
        if finite:
            self._optimizer.step()
        means = {name: value / batch.token_count for name, value in sums.items()}
        return means | {
            "train/loss": loss,
            "train/grad_norm": float(norm),
            "train/lr": rate,
            "train/skipped": float(not finite),
        }

    def _backward(self, batch: TrainingBatch) -> tuple[float, dict[str, float]]:
        """Gradients of the whole batch; its loss, and sums over tokens of what is reported."""
        prompts = torch.from_numpy(batch.prompts).to(self._device)
        last_hidden, prompt_cache = self.model.prefill(prompts)
        total = torch.zeros((), device=self._device)
        sums: dict[str, float] = {}
        for rows in length_buckets(batch.lengths, self._rows_per_bucket):
            loss, bucket_sums = self._bucket(batch, rows, last_hidden, prompt_cache)
            total = total + loss
            sums = {name: sums.get(name, 0.0) + value for name, value in bucket_sums.items()}
        total.backward()  # type: ignore[no-untyped-call]
        return float(total.detach()), sums

    def _bucket(
        self,
        batch: TrainingBatch,
        rows: NDArray[np.int64],
        last_hidden: Tensor,
        prompt_cache: PromptCache,
    ) -> tuple[Tensor, dict[str, float]]:
        """Loss of some rows, padded to their own longest."""
        lengths, longest = batch.lengths[rows], int(batch.lengths[rows].max())
        owner = self._tensor(batch.prompt_of_row[rows])
        tokens = self._tensor(batch.tokens[rows, :longest])
        inside = torch.arange(longest, device=self._device) < self._tensor(lengths)[:, None]
        logits = self._logits(tokens, owner, last_hidden, prompt_cache)
        distribution = (logits / self.recipe.generation.temperature).log_softmax(-1)
        logprobs = distribution.gather(-1, tokens[..., None])[..., 0]
        generator_logprobs = self._tensor(batch.generator_logprobs[rows, :longest])
        advantages = self._tensor(batch.advantages[rows])[:, None]
        weights = self._tensor(batch.weights[rows])[:, None] * inside
        loss = self._loss(logprobs, generator_logprobs, advantages, weights)
        return loss, self._token_sums(distribution.detach(), logprobs.detach(), generator_logprobs, inside)

    def _logits(self, tokens: Tensor, owner: Tensor, last_hidden: Tensor, prompt_cache: PromptCache) -> Tensor:
        """Logits of response tokens [N, T, V]: the first from the prompt's last state, the rest from the response."""
        first = last_hidden.index_select(0, owner)[:, None]
        if tokens.shape[1] == 1:
            return self.model.logits(first, self.recipe.algorithm.logits_precision)
        rest = self.model.respond(tokens[:, :-1], prompt_cache.rows(owner))
        return self.model.logits(torch.cat([first, rest], dim=1), self.recipe.algorithm.logits_precision)

    def _loss(self, logprobs: Tensor, generator_logprobs: Tensor, advantages: Tensor, weights: Tensor) -> Tensor:
        knobs = self.recipe.algorithm
        if knobs.loss == "cispo":
            return cispo_loss(logprobs, generator_logprobs, advantages, weights, knobs.is_weight_cap)
        return dapo_loss(logprobs, generator_logprobs, advantages, weights, knobs.clip_low, knobs.clip_high)

    def _token_sums(
        self, distribution: Tensor, logprobs: Tensor, generator_logprobs: Tensor, inside: Tensor
    ) -> dict[str, float]:
        knobs = self.recipe.algorithm
        ratio = importance_ratio(logprobs, generator_logprobs)
        if knobs.loss == "cispo":
            capped = ratio > knobs.is_weight_cap
        else:
            capped = (ratio > 1 + knobs.clip_high) | (ratio < 1 - knobs.clip_low)
        entropy = -(distribution.exp() * distribution).sum(-1)
        values = {
            "train/entropy": entropy,
            "policy/ratio_mean": ratio,
            "policy/ratio_capped_share": capped.float(),
            "policy/logprob_diff_mean": (logprobs - generator_logprobs).abs(),
        }
        return {name: float((value * inside).sum()) for name, value in values.items()}

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device)

    def state(self) -> LearnerState:
        """Weights, optimiser moments and counters, copied."""
        tensors = {f"weight.{name}": value for name, value in self.weights().items()}
        steps = 0
        for name, parameter in self.model.named_parameters():
            moments = self._optimizer.state.get(parameter)
            if moments:
                tensors[f"first.{name}"] = moments["exp_avg"].cpu().numpy().copy()
                tensors[f"second.{name}"] = moments["exp_avg_sq"].cpu().numpy().copy()
                steps = int(moments["step"].item())
        return LearnerState(tensors, {"version": self.version, "optimizer_steps": steps})

    def load_state(self, state: LearnerState) -> None:
        """Go on from `state`; CheckpointError when its tensors are not this model's."""
        self._load_weights({n.removeprefix("weight."): t for n, t in state.tensors.items() if n.startswith("weight.")})
        self.version = state.counters["version"]
        self._optimizer.state.clear()
        if not state.counters["optimizer_steps"]:
            return
        for name, parameter in self.model.named_parameters():
            self._optimizer.state[parameter] = {
                "step": torch.tensor(float(state.counters["optimizer_steps"]), device=self._device),
                "exp_avg": torch.from_numpy(state.tensors[f"first.{name}"].copy()).to(self._device),
                "exp_avg_sq": torch.from_numpy(state.tensors[f"second.{name}"].copy()).to(self._device),
            }

    def _load_weights(self, weights: Mapping[str, NDArray[Any]]) -> None:
        try:
            self.model.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in weights.items()})
        except RuntimeError as error:
            raise CheckpointError(f"the checkpoint's weights do not fit this model: {error}") from None
