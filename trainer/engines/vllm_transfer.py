"""How vLLM's workers take new weights: a backend of vLLM's own weight transfer, from a file that all of them can read.

Imported by the workers alone (`vllm_worker`), since it needs vLLM. Its sessions are those of vLLM's other backends:
`start_weight_update`, `update_weights`, `finish_weight_update`.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import torch
from safetensors.torch import load_file
from torch.nn import Module
from torch.nn.functional import linear
from vllm.distributed.weight_transfer.base import (
    WeightTransferEngine,
    WeightTransferInitInfo,
    WeightTransferUpdateInfo,
)
from vllm.model_executor.layers.attention import Attention
from vllm.model_executor.layers.linear import UnquantizedLinearMethod
from vllm.model_executor.layers.vocab_parallel_embedding import UnquantizedEmbeddingMethod
from vllm.model_executor.model_loader import get_model_loader
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload
from vllm.model_executor.model_loader.reload.layerwise import get_layerwise_info
from vllm.model_executor.model_loader.reload.meta import materialize_layer, restore_layer_on_meta


@dataclass
class Beginning(WeightTransferInitInfo):
    """Nothing is to be agreed upon."""


@dataclass
class File(WeightTransferUpdateInfo):
    """A safetensors file with Hugging Face names; tensor-parallel workers each take their part of it."""

    path: str


class FileTransfer(WeightTransferEngine[Beginning, File]):
    """Replaces the weights of the model that a worker runs, its key-value cache untouched.

    On a CPU a model whose layers are matrices and vectors alone has its weights written over where they lie. Any other
    goes through vLLM's reload, which takes every layer apart and does again what its backend did to it.
    """

    init_info_cls = Beginning
    update_info_cls = File

    in_place = False
    seconds = 0.0
    """How long the last session took: no token was made meanwhile."""

    def init_transfer_engine(self, init_info: Beginning) -> None:
        """Make ready for swaps: once, before any request."""
        self._on_cpu = self.device.type == "cpu"
        if self._on_cpu and all(_only_multiplies(module) for module in self.model.modules()):
            self._keep_weights_as_loaded()
            self.in_place = True

    def start_weight_update(self) -> None:
        """See `WeightTransferEngine`."""
        self._began = time.perf_counter()
        if self.in_place:
            return
        if self._on_cpu:
            _forget_expert_kernels(self.model)
        initialize_layerwise_reload(self.model)

    def update_weights(self, update_info: dict[str, Any]) -> None:
        """See `WeightTransferEngine`; that one waits for an accelerator, which a CPU has not."""
        self.receive_weights(self.parse_update_info(update_info))
        if not self._on_cpu:
            torch.accelerator.synchronize()

    def receive_weights(self, update_info: File) -> None:
        """See `WeightTransferEngine`."""
        self._load(load_file(update_info.path).items())

    def finish_weight_update(self) -> None:
        """See `WeightTransferEngine`."""
        if not self.in_place:
            finalize_layerwise_reload(self.model, self.model_config)  # type: ignore[no-untyped-call]
        self.seconds = time.perf_counter() - self._began

    def shutdown(self) -> None:
        """See `WeightTransferEngine`: nothing is held."""

    def _keep_weights_as_loaded(self) -> None:
        """Undo what vLLM's CPU backend does to a matrix: packed anew for oneDNN, and the loaded one thrown away."""
        module: Any
        for module in self.model.modules():
            method = getattr(module, "quant_method", None)
            if isinstance(method, UnquantizedLinearMethod):
                info = get_layerwise_info(module)
                restore_layer_on_meta(module, info)  # the parameters that a checkpoint fills
                materialize_layer(module, info)
            if method is not None:
                module.cpu_linear = linear
        loader: Any = get_model_loader(self.vllm_config.load_config)
        self._load(loader.get_all_weights(self.model_config, self.model))

    def _load(self, tensors: Iterable[tuple[str, torch.Tensor]]) -> None:
        model: Any = self.model
        with torch.no_grad():
            model.load_weights(iter(tensors))


def _only_multiplies(module: Module) -> bool:
    """True when nothing but its matrix product is derived from the module's weights after they are loaded."""
    method = getattr(module, "quant_method", None)
    if method is None:  # attention's scales are of its quantised caches, and constants here
        return type(module) is Attention or not hasattr(module, "process_weights_after_loading")
    if type(method) is UnquantizedEmbeddingMethod:
        return True
    parameters, _ = get_layerwise_info(module).restore_metadata
    return type(method) is UnquantizedLinearMethod and len(parameters["weight"].shape) == 2


def _forget_expert_kernels(model: Module) -> None:
    """Have the reload make them anew: vLLM 0.32 packs experts for its CPU kernel when it makes that kernel and not when
    it reloads them, so that they would be read in the wrong order from then on."""
    for module in model.modules():
        method: Any = getattr(module, "quant_method", None)
        if getattr(method, "moe_kernel", None) is not None:
            method.moe_kernel = None
