"""Weights by broadcast: the learner's first rank and the generators in a process group of their own.

A group lives for an epoch, from one change of its members to the next. Its store is not that of the learner's ranks,
and its ranks are not theirs. A version travels as one run of bytes: its number, then every tensor; what the tensors
are called stands in the group's store, once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import prod
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor
from torch._C._distributed_c10d import PrefixStore, Store, TCPStore  # where torch's own types say they are

from forecurve.recipes import Recipe
from trainer.errors import ConfigurationError, TrainerError

TIMEOUT_S = 30.0
"""For members to meet, and for every bucket of a broadcast."""
BUCKET_BYTES = 256 * 2**20
ALIGNMENT = 16
"""Every tensor begins at a multiple of so many bytes: a view needs that of its own type."""
POLL_S = 0.001

LEARNER = 0
"""The rank that sends."""


def refuse(recipe: Recipe, ray: bool) -> None:
    """ConfigurationError when this recipe asks for a broadcast that cannot be."""
    resources = recipe.resources
    if resources.weight_transfer != "collective":
        return
    if not ray:
        raise ConfigurationError(
            "resources.weight_transfer is collective but --no-ray has one process, which broadcasts to nobody; "
            "leave --no-ray out, or use store"
        )
    actors = resources.generators + resources.learners
    if transfer_device(recipe) == "cuda" and resources.gpus < actors:
        raise ConfigurationError(
            f"resources.weight_transfer is collective, and NCCL wants a GPU for each of the {actors} actors, but "
            f"resources.gpus is {resources.gpus:g}; reserve {actors}, or use store"
        )


def transfer_device(recipe: Recipe) -> str:
    """Where weights lie while they travel. vLLM reads them from the host's memory, so that they need no GPU's."""
    return "cuda" if recipe.resources.gpus and recipe.generation.engine == "torch" else "cpu"


def host(name: str) -> tuple[TCPStore, str]:
    """The store in which members meet, epoch after epoch, and its host:port. It lives as long as it is held."""
    store = TCPStore(name, 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=TIMEOUT_S))
    return store, f"{name}:{store.port}"


@dataclass(frozen=True, slots=True)
class Place:
    """Where members meet (`address`, host:port), for the how manieth time, and which of them we are."""

    address: str
    epoch: int
    rank: int
    size: int


class Channel:
    """One member's end of an epoch's group. Used by one thread.

    Raises:
        TrainerError: by every method: a peer did not come, is gone, or does not answer. The channel is of no use then.
    """

    def __init__(self, place: Place, device: str, timeout_s: float = TIMEOUT_S):
        self._device, self._timeout = torch.device(device), timedelta(seconds=timeout_s)
        self._layout: list[Entry] | None = None
        self._epoch = place.epoch
        try:
            self._store = self._own_store(place)
            self._group = self._meet(place)
            self._broadcast(torch.zeros(1, dtype=torch.uint8, device=self._device))  # connections are made by use
        except (RuntimeError, TimeoutError) as error:
            raise self._lost("meet", error) from None

    def send(self, version: int, weights: Mapping[str, Any]) -> None:
        """Give every member these weights; as the learner."""
        layout = layout_of(weights)
        if self._layout is None:
            self._store.set("layout", json.dumps([[e.name, e.dtype, e.shape] for e in layout]))
            self._layout = layout
        assert layout == self._layout, "a policy's tensors stay the same ones"
        flat = torch.from_numpy(fused(version, weights, layout)).to(self._device)
        try:
            self._broadcast(flat)
        except (RuntimeError, TimeoutError) as error:
            self.close()
            raise self._lost(f"send version {version}", error) from None

    def receive(self, version: int) -> dict[str, Tensor]:
        """The weights that the learner sends next, which must be those of `version`; in memory of their own."""
        try:
            if self._layout is None:
                self._layout = [Entry(name, dtype, tuple(shape)) for name, dtype, shape in self._sent_layout()]
            flat = torch.empty(size_of(self._layout), dtype=torch.uint8, device=self._device)
            self._broadcast(flat)
        except (RuntimeError, TimeoutError) as error:
            self.close()
            raise self._lost(f"receive version {version}", error) from None
        came, weights = parted(flat, self._layout)
        if came != version:
            raise self._lost(f"receive version {version}", ValueError(f"version {came} came"))
        return weights

    def close(self) -> None:
        """Leave, whatever the others do: one that waits for us gives up in its own time."""
        self._group.abort()

    def _own_store(self, place: Place) -> Store:
        name, _, port = place.address.rpartition(":")
        shared = TCPStore(name, int(port), is_master=False, timeout=self._timeout)
        own = PrefixStore(f"weights/{place.epoch}", shared)
        own.set_timeout(self._timeout)
        return own

    def _meet(self, place: Place) -> Any:
        if self._device.type == "cpu":
            return dist.ProcessGroupGloo(self._store, place.rank, place.size, self._timeout)
        torch.cuda.set_device(0)  # of those that Ray shows this actor; a thread begins without
        options = dist.ProcessGroupNCCL.Options()
        options._timeout = timedelta(days=1)  # we keep the time: NCCL's own watchdog would end the process
        return dist.ProcessGroupNCCL(self._store, place.rank, place.size, options)

    def _sent_layout(self) -> Any:
        return json.loads(self._store.get("layout"))

    def _broadcast(self, flat: Tensor) -> None:
        options = dist.BroadcastOptions()
        options.rootRank = LEARNER
        for bucket in torch.split(flat, BUCKET_BYTES):
            work = self._group.broadcast([bucket], options)
            if self._device.type == "cpu":
                work.wait(self._timeout)
            else:
                self._poll(work)

    def _poll(self, work: Any) -> None:
        """Wait for NCCL without blocking on the device, where nothing could be given up."""
        deadline = time.monotonic() + self._timeout.total_seconds()
        while not work.is_completed():
            if time.monotonic() > deadline:
                raise TimeoutError(f"no end within {self._timeout.total_seconds():g} s")
            time.sleep(POLL_S)
        torch.cuda.current_stream().synchronize()

    def _lost(self, doing: str, error: BaseException) -> TrainerError:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        return TrainerError(f"weights by broadcast, group {self._epoch}: could not {doing}: {reason[:300]}")


@dataclass(frozen=True, slots=True)
class Entry:
    """One tensor of a layout; `dtype` by the name that numpy and torch share."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes, without what aligns the next."""
        dtype: torch.dtype = getattr(torch, self.dtype)
        return prod(self.shape) * dtype.itemsize


def layout_of(weights: Mapping[str, Any]) -> list[Entry]:
    """What these arrays or tensors are, in their order."""
    return [Entry(name, str(v.dtype).removeprefix("torch."), tuple(v.shape)) for name, v in weights.items()]


def size_of(layout: list[Entry]) -> int:
    """Bytes of a version in this layout."""
    return ALIGNMENT + sum(_aligned(entry.size) for entry in layout)


def fused(version: int, weights: Mapping[str, Any], layout: list[Entry]) -> NDArray[np.uint8]:
    """A version as one run of bytes [size_of(layout)]."""
    flat = np.zeros(size_of(layout), dtype=np.uint8)
    flat[:8] = np.frombuffer(np.int64(version).tobytes(), dtype=np.uint8)
    at = ALIGNMENT
    for entry in layout:
        flat[at : at + entry.size] = _bytes(weights[entry.name])
        at += _aligned(entry.size)
    return flat


def parted(flat: Tensor, layout: list[Entry]) -> tuple[int, dict[str, Tensor]]:
    """The version and the tensors, which are views of `flat`."""
    version, at, tensors = int(flat[:8].view(torch.int64).item()), ALIGNMENT, {}
    for entry in layout:
        tensors[entry.name] = flat[at : at + entry.size].view(getattr(torch, entry.dtype)).reshape(entry.shape)
        at += _aligned(entry.size)
    return version, tensors


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _bytes(value: Any) -> NDArray[np.uint8]:
    if isinstance(value, Tensor):
        raw: NDArray[np.uint8] = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        return raw
    return np.ascontiguousarray(value).reshape(-1).view(np.uint8)
