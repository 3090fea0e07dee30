"""The learner: one optimiser step per batch of groups.

Prompts run once and their keys and values serve all G responses; responses to a prompt that are the same run once, and
their gradients add up. Responses run in buckets of like length; a batch that does not fit into memory runs in
micro-batches. A step whose loss or gradient is not finite leaves the weights alone and is counted.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from forecurve.recipes import Recipe
from trainer.algorithm.batching import Alike, TrainingBatch, padded, training_batch
from trainer.algorithm.schedule import learning_rate
from trainer.learner.forward import Bucket, ResponseLogprobs, checkpoint_layers
from trainer.learner.objective import SUMS, Tokens, combined, means, nothing_summed, objective, token_sums
from trainer.learner.optimizer import PolicyOptimizer
from trainer.learner.plan import MICRO_TOKENS, ROWS_PER_BUCKET, MicroBatch, Rows, micro_batches, shares
from trainer.learner.ranks import Ranks, shard, whole
from trainer.measuring.clock import Stopwatch
from trainer.memory import forget_peak, memory_named, peak_memory, suppress_out_of_memory
from trainer.models.base import Policy, pad_left
from trainer.models.packed import kernel_takes
from trainer.types import Group, LearnerState, StepResult, WeightVersion

REHEARSED = 8192
"""Tokens of the rehearsal, at most: what is enough to be quick afterwards, not what a batch may need."""


class Learner:
    """Policy, optimiser and counters. `version` counts the batches consumed, and names the weights.

    `policy` holds the starting weights: the KL term's reference is a frozen copy of them, also after a resume. With
    `ranks`, every rank makes one of these and calls the same methods with the same arguments; weights and states
    come back whole, from rank 0 only.
    """

    def __init__(
        self,
        recipe: Recipe,
        policy: Policy,
        device: str = "cpu",
        ranks: Ranks | None = None,
        rows_per_bucket: int = ROWS_PER_BUCKET,
    ):
        self.recipe, self.version = recipe, 0
        self._device, self._ranks, self._rows_per_bucket = torch.device(device), ranks or Ranks(), rows_per_bucket
        self._micro_tokens = recipe.batch.micro_tokens or MICRO_TOKENS
        policy = policy.to(self._device).eval()  # no dropout: the generator has none either
        self._packs, precision = _packs(policy), recipe.algorithm.logits_precision
        self._forward = ResponseLogprobs(policy, recipe.generation.temperature, precision, self._packs).eval()
        # Copied before the layers' forward methods are replaced: a replaced one belongs to its own module.
        self._reference = copy.deepcopy(self._forward).requires_grad_(False) if self._with_kl else None
        self._dtype = self._forward.policy.head_weight.dtype
        if getattr(recipe.model, "gradient_checkpointing", False):
            checkpoint_layers(self._forward)
        for module in (self._forward, self._reference) if self._ranks.sharded else ():
            if module is not None:
                shard(module, self._ranks, self._dtype)
        self._optimizer = PolicyOptimizer(recipe.optimizer, self._forward.policy.named_tensors())

    @property
    def policy(self) -> Policy:
        """The policy that is trained; in parts where the learner is sharded."""
        policy: Policy = self._forward.policy
        return policy

    def step(self, groups: Sequence[Group]) -> StepResult:
        """Consume a batch of groups; the weights that come out are version `self.version`.

        Raises:
            OutOfMemory: the batch does not fit; the text says what to lower.
        """
        watch = Stopwatch.start()
        forget_peak(self._device)
        self.version += 1
        batch = training_batch(groups, self.recipe.algorithm)
        metrics: dict[str, float] = {"train/kept_prompts": float(len(batch.prompts) if batch else 0)}
        not_finite = False
        if batch is not None:
            with memory_named(self.recipe, self._micro_tokens):
                metrics |= self._update(batch)
            not_finite = metrics["train/skipped"] > 0
        applied = batch is not None and not not_finite
        weights = WeightVersion(self.version, self.weights())
        memory = peak_memory(self._device)
        return StepResult(self.version, metrics, weights, applied, not_finite, watch.cost(), memory)

    def rehearse(self) -> None:
        """Go forward and backward once on made-up tokens, for nothing: the first step then is as fast as any.

        Kernels and compiled loops are loaded then, and memory is asked of the system, which would otherwise fall into
        that step. At most REHEARSED tokens; where even those do not fit it is left to the first batch to say so.
        """
        batch, longest = self.recipe.batch, max(2, min(self.recipe.generation.max_tokens, REHEARSED))
        tokens = min(REHEARSED, self._micro_tokens, batch.prompts_per_step * batch.generations_per_prompt * longest)
        rows = max(1, tokens // longest)
        made_up = torch.zeros(rows, longest, dtype=torch.int64, device=self._device)
        parts = torch.split(made_up, self._rows_per_bucket)
        buckets = [_whole_rows(part) for part in parts]
        with suppress_out_of_memory():
            outputs = self._forward(made_up.new_zeros(1, self.policy.shortest_prompt), None, buckets)
            torch.stack([logprobs.sum() for logprobs, _ in outputs]).sum().backward()  # type: ignore[no-untyped-call]
        self._optimizer.clear()

    def weights(self) -> dict[str, Any]:
        """A copy of the policy's weights in the precision in which it runs, by the names that engines load.

        Numpy arrays; torch tensors where numpy has no such type (bfloat16). Empty on all ranks but the first.
        """
        named = {}
        for name, value in self.policy.named_tensors().items():
            value = whole(value.detach())  # collective
            if self._ranks.rank == 0:
                named[name] = _portable(value.to(self._dtype) if value.is_floating_point() else value)
        return named

    def state(self) -> LearnerState:
        """Master weights, optimiser moments and counters, copied. Without tensors on all ranks but the first."""
        tensors = self._optimizer.state(keep=self._ranks.rank == 0)
        return LearnerState(tensors, {"version": self.version, "optimizer_steps": self._optimizer.steps})

    def load_state(self, state: LearnerState) -> None:
        """Go on from `state`; CheckpointError when its tensors are not this model's."""
        self._optimizer.load_state(state.tensors, state.counters["optimizer_steps"])
        self.version = state.counters["version"]

    def plan(self, batch: TrainingBatch) -> list[MicroBatch]:
        """The micro-batches that this process runs."""
        if self._ranks.sharded:
            return shares(batch, self._micro_tokens, self._ranks.count, self._packs)[self._ranks.rank]
        return micro_batches(batch, self._micro_tokens, self._rows_per_bucket, self._packs)

    def gradients(self, batch: TrainingBatch, plan: Sequence[MicroBatch]) -> Tensor:
        """Gradients of the whole batch, left on the weights; the sums of `token_sums` over all ranks.

        `plan` says how the batch is cut, and has no influence on either but rounding.
        """
        self._optimizer.clear()
        sums = nothing_summed(self._device)
        for micro in plan:
            sums = combined(sums, self._backward(batch, micro))
            self._optimizer.collect()
        return torch.cat([self._ranks.sum(sums[: len(SUMS)]), self._ranks.largest(sums[len(SUMS) :])])

    @property
    def _with_kl(self) -> bool:
        return self.recipe.algorithm.kl_coefficient > 0

    def _update(self, batch: TrainingBatch) -> dict[str, float]:
        rate = learning_rate(self.recipe.optimizer, self.version, self.recipe.budget.last_step)
        metrics = means(self.gradients(batch, self.plan(batch)), batch.token_count, self._with_kl)
        norm = self._optimizer.clip()
        finite = bool(np.isfinite(norm)) and bool(np.isfinite(metrics["train/loss"]))
        if finite:
            self._optimizer.step(rate)
        return metrics | {
            "train/grad_norm": norm,
            "train/lr": rate,
            "train/skipped": float(not finite),
            "policy/not_finite_tokens": float(batch.not_finite_tokens),
        }

    def _backward(self, batch: TrainingBatch, micro: MicroBatch) -> Tensor:
        """Run some rows forward and backward; the sums over their tokens."""
        owners = np.unique(batch.prompt_of_row[micro.rows])
        prompts, mask = pad_left([batch.prompts[owner] for owner in owners])
        alike = [batch.alike(rows) for rows in micro.buckets]
        pairs = zip(micro.buckets, alike, strict=True)
        buckets = [self._bucket(batch, rows, its, owners, micro.counts) for rows, its in pairs]
        arguments = prompts.to(self._device), None if mask is None else mask.to(self._device), buckets
        outputs = self._forward(*arguments)
        references = self._reference_logprobs(*arguments)
        loss = torch.zeros((), device=self._device)
        sums = nothing_summed(self._device)
        for i, its in enumerate(alike):
            tokens = self._tokens(batch, its, micro.counts, outputs[i], references[i])
            of_rows = objective(self.recipe.algorithm, tokens)
            found = token_sums(self.recipe.algorithm, tokens, of_rows.detach())
            sums = combined(sums, found)
            loss = loss + of_rows
        loss.backward()  # type: ignore[no-untyped-call]
        return sums

    @torch.no_grad()
    def _reference_logprobs(self, prompts: Tensor, mask: Tensor | None, buckets: list[Bucket]) -> list[Tensor | None]:
        if self._reference is None:
            return [None] * len(buckets)
        return [logprobs for logprobs, _ in self._reference(prompts, mask, buckets)]

    def _bucket(
        self, batch: TrainingBatch, rows: Rows, alike: Alike, owners: NDArray[np.int64], counts: bool
    ) -> Bucket:
        longest = max(2, int(batch.lengths[rows].max()))
        starts = np.searchsorted(alike.places, np.arange(len(rows)))  # of the rows that run as each
        trained = np.logical_or.reduceat(padded(batch.trained[alike.rows], longest), starts)
        return Bucket(
            owner=np.searchsorted(owners, batch.prompt_of_row[rows]),
            lengths=batch.lengths[rows],
            tokens=self._tensor(padded(batch.tokens[rows], longest)),
            trained=self._tensor(trained & counts),
        )

    def _tokens(
        self, batch: TrainingBatch, alike: Alike, counts: bool, output: tuple[Tensor, Tensor], reference: Tensor | None
    ) -> Tokens:
        """What each of these rows has in the loss, whether it ran itself or another ran for it."""
        rows, places, longest = alike.rows, self._tensor(alike.places), output[0].shape[1]
        trained = self._tensor(padded(batch.trained[rows], longest) & counts)
        return Tokens(
            logprobs=output[0].index_select(0, places),
            generator_logprobs=self._tensor(padded(batch.generator_logprobs[rows], longest)),
            advantages=self._tensor(batch.advantages[rows])[:, None],
            weights=self._tensor(batch.weights[rows])[:, None] * trained,
            trained=trained,
            entropy=output[1].index_select(0, places),
            reference=None if reference is None else reference.index_select(0, places),
        )

    def _tensor(self, array: NDArray[Any]) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(array)).to(self._device)


def _whole_rows(tokens: Tensor) -> Bucket:
    """Rows [N, T] after the only prompt, all of which count."""
    owner, lengths = np.zeros(len(tokens), dtype=np.int64), np.full(len(tokens), tokens.shape[1])
    return Bucket(owner, lengths, tokens, torch.ones_like(tokens, dtype=torch.bool))


@torch.no_grad()
def _packs(policy: Policy) -> bool:
    """Whether rows can run end to end, by the keys and values of a prompt."""
    prompt = torch.zeros(1, policy.shortest_prompt, dtype=torch.int64, device=policy.head_weight.device)
    _, cache = policy.prefill(prompt)
    return all(kernel_takes(*layer) for layer in cache.layers)


def _portable(value: Tensor) -> Any:
    # A GPU writes several times as fast into memory that is pinned, and torch keeps that for the next time.
    copied = torch.empty_like(value, device="cpu", pin_memory=value.is_cuda).copy_(value)
    return copied if copied.dtype == torch.bfloat16 else copied.numpy()
