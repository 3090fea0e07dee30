"""AdamW over float32 master weights, whatever precision the policy runs in."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from forecurve.recipes.schema import Optimizer
from trainer.errors import CheckpointError
from trainer.learner.ranks import part_of, whole

Arrays = Mapping[str, NDArray[np.float32]]


class PolicyOptimizer:
    """Moves the trainable ones of a policy's tensors; `tensors` are named as in `Policy.named_tensors`.

    A float32 weight is its own master. One of less precision has a float32 copy, which collects its gradient over
    micro-batches, is moved by the optimiser, and is rounded back into the policy after each step: an update that is
    smaller than the policy's precision is not lost.
    """

    def __init__(self, knobs: Optimizer, tensors: Mapping[str, Tensor]):
        self._max_norm = knobs.max_grad_norm
        self._tensors = dict(tensors)
        self._masters = {name: _master(value) for name, value in tensors.items() if value.requires_grad}
        self._adam = torch.optim.AdamW(
            self._masters.values(),
            lr=knobs.learning_rate,
            betas=(knobs.beta1, knobs.beta2),
            eps=knobs.epsilon,
            weight_decay=knobs.weight_decay,
            fused=True,
        )

    def clear(self) -> None:
        """Forget all gradients."""
        for value in (*self._tensors.values(), *self._masters.values()):
            value.grad = None

    def collect(self) -> None:
        """Take in the gradients of a micro-batch; after its backward pass."""
        for name, master in self._masters.items():
            value = self._tensors[name]
            if value is master or value.grad is None:
                continue
            gradient = value.grad.float()
            master.grad = gradient if master.grad is None else master.grad.add_(gradient)
            value.grad = None

    def clip(self) -> float:
        """Clip the gradient to the largest norm allowed; its norm before that, over all weights and ranks.

        A weight that no token reached gets a gradient of 0, so that every weight takes every step.
        """
        masters = list(self._masters.values())
        for master in masters:
            if master.grad is None:
                master.grad = torch.zeros_like(master)
        norm = whole(torch.nn.utils.get_total_norm([master.grad for master in masters if master.grad is not None]))
        torch.nn.utils.clip_grads_with_norm_(masters, self._max_norm, norm)
        return float(norm)

    def step(self, rate: float) -> None:
        """One update at this learning rate, and the policy's weights after it."""
        for group in self._adam.param_groups:
            group["lr"] = rate
        self._adam.step()
        self._round()

    @property
    def steps(self) -> int:
        """Updates so far."""
        moments = next(iter(self._adam.state.values()), None)
        return int(moments["step"].item()) if moments else 0

    def state(self, keep: bool = True) -> dict[str, NDArray[np.float32]]:
        """Master weights (`weight.NAME`) and moments (`first.NAME`, `second.NAME`), whole and copied.

        Collective; a rank that does not `keep` them only takes part.
        """
        held = {f"weight.{name}": self._masters.get(name, value) for name, value in self._tensors.items()}
        for name, master in self._masters.items():
            if moments := self._adam.state.get(master):
                held |= {f"first.{name}": moments["exp_avg"], f"second.{name}": moments["exp_avg_sq"]}
        arrays = {}
        for name, value in held.items():
            gathered = whole(value.detach())
            if keep:
                arrays[name] = gathered.float().cpu().numpy().copy()
        return arrays

    def load_state(self, arrays: Arrays, steps: int) -> None:
        """Go on from `state` after `steps` updates.

        Raises:
            CheckpointError: names or shapes that are not this policy's.
        """
        moments = ("weight", "first", "second") if steps else ("weight",)
        for kind in moments:
            self._check(kind, arrays)
        for name, value in self._tensors.items():
            _copy(arrays[f"weight.{name}"], self._masters.get(name, value))
        self._round()
        self._adam.state.clear()
        for name, master in self._masters.items() if steps else ():
            self._adam.state[master] = {
                "step": torch.tensor(float(steps), device=master.device),
                "exp_avg": _copy(arrays[f"first.{name}"], torch.zeros_like(master)),
                "exp_avg_sq": _copy(arrays[f"second.{name}"], torch.zeros_like(master)),
            }

    def _check(self, kind: str, arrays: Arrays) -> None:
        expected = self._tensors if kind == "weight" else self._masters
        shapes = {f"{kind}.{name}": tuple(value.shape) for name, value in expected.items()}
        found = {name: value.shape for name, value in arrays.items() if name.startswith(f"{kind}.")}
        if wrong := sorted(name for name in shapes.keys() | found.keys() if shapes.get(name) != found.get(name)):
            name = wrong[0]
            raise CheckpointError(
                f"the checkpoint's weights do not fit this model: {name} has shape {found.get(name)} in the checkpoint "
                f"and {shapes.get(name)} in the model ({len(wrong)} differ); resume with the recipe it was made by"
            )

    @torch.no_grad()
    def _round(self) -> None:
        for name, master in self._masters.items():
            if self._tensors[name] is not master:
                self._tensors[name].copy_(master)


def _master(value: Tensor) -> Tensor:
    return value if value.dtype == torch.float32 else nn.Parameter(value.detach().float())


@torch.no_grad()
def _copy(array: NDArray[np.float32], target: Tensor) -> Tensor:
    target.copy_(part_of(torch.from_numpy(np.array(array)), target))
    return target
