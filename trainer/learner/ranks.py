"""The ranks of a sharded learner (FSDP2): every rank holds a part of each weight and runs a part of the rows.

All ranks get the same groups, cut them the same way and run their own share (see `plan`). Gradients are summed, not
averaged: token weights are global. Collective calls must be made by all ranks, in the same order.

What only several ranks need of torch is imported where they need it: it takes about half as long as torch itself, and
generators never do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

import torch
import torch.distributed as dist
from torch import Tensor, nn

from trainer.learner.forward import layers_of

if TYPE_CHECKING:
    from torch.distributed.device_mesh import DeviceMesh
    from torch.distributed.tensor import DTensor


@dataclass(frozen=True, slots=True)
class Ranks:
    """Who we are among the learner's processes; without a mesh the only one."""

    rank: int = 0
    count: int = 1
    mesh: DeviceMesh | None = None

    @property
    def sharded(self) -> bool:
        """True where there is a mesh, be it of one rank only."""
        return self.mesh is not None

    def sum(self, values: Tensor) -> Tensor:
        """The sum over ranks, on each of them."""
        return self._reduced(values, dist.ReduceOp.SUM)

    def largest(self, values: Tensor) -> Tensor:
        """The largest over ranks, on each of them."""
        return self._reduced(values, dist.ReduceOp.MAX)

    def _reduced(self, values: Tensor, how: Any) -> Tensor:
        if self.sharded:
            dist.all_reduce(values, how)
        return values


def join(address: str, rank: int, count: int, device: str = "cpu") -> Ranks:
    """Meet the other ranks at `address`; returns once all of them are there.

    `address` is host:port on rank 0's machine, or the URL of a file that all ranks see (`file:///...`). `device` is
    this process's: gloo connects CPUs, nccl GPUs.
    """
    from torch.distributed.device_mesh import init_device_mesh

    kind = torch.device(device).type
    if kind == "cuda":
        torch.cuda.set_device(device)
    backend = "nccl" if kind == "cuda" else "gloo"
    where = address if "://" in address else f"tcp://{address}"
    dist.init_process_group(backend, init_method=where, rank=rank, world_size=count)
    return Ranks(rank, count, init_device_mesh(kind, (count,)))


def leave() -> None:
    """End the meeting; the process can join another."""
    if dist.is_initialized():
        dist.destroy_process_group()


def shard(module: nn.Module, ranks: Ranks, compute_dtype: torch.dtype) -> None:
    """Cut every weight of `module` into one part per rank: each layer by itself, and all that is outside of layers.

    Parts are float32 (the master weights that the optimiser moves) and gathered in `compute_dtype` when they are
    needed; gradients are summed over ranks in float32.
    """
    from torch.distributed.fsdp import FSDPModule, MixedPrecisionPolicy, fully_shard

    module.float()
    mixed = MixedPrecisionPolicy(param_dtype=compute_dtype, reduce_dtype=torch.float32, cast_forward_inputs=False)
    for part in (*layers_of(module), module):
        fully_shard(part, mesh=ranks.mesh, mp_policy=mixed)
        assert isinstance(part, FSDPModule)
        part.set_gradient_divide_factor(1.0)
        part.set_force_sum_reduction_for_comms(True)  # a plain sum: gloo has no other


def whole(tensor: Tensor) -> Tensor:
    """All of a weight, gathered from every rank where it is cut (collective)."""
    return tensor.full_tensor() if _is_cut(tensor) else tensor


def part_of(value: Tensor, like: Tensor) -> Tensor:
    """This rank's part of a whole value that every rank has, cut as `like` is; the value itself where that is not."""
    if not _is_cut(like):
        return value.to(like.device)
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(value.to(like.device), like.device_mesh, like.placements, src_data_rank=None)


def _is_cut(tensor: Tensor) -> TypeGuard[DTensor]:
    """Whether a weight is cut into parts: none is where nothing has loaded what cuts them."""
    return hasattr(tensor, "full_tensor")
