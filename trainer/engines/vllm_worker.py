"""What runs inside vLLM's worker processes. Named by `worker_extension_cls`; imports nothing of the trainer."""

from __future__ import annotations

import ctypes
import signal
import sys
import time
from typing import TYPE_CHECKING, Any

from safetensors.torch import load_file

if TYPE_CHECKING:
    from torch.nn import Module

PR_SET_PDEATHSIG = 1


class WeightLoading:
    """Mixed into vLLM's worker: replaces the weights of the model that it runs, its key-value cache untouched."""

    get_model: Any
    reload_weights: Any  # the worker's own: it undoes and redoes what a backend did to the weights (repacking)
    vllm_config: Any

    _where_they_lie = False

    def keep_weights_where_they_lie(self) -> bool:
        """On a CPU: multiply by the weights as they were loaded, so that a swap need only write over them.

        vLLM's CPU backend packs every matrix anew for oneDNN and throws the loaded one away, so that its own reload has
        to take each layer apart and pack it again. False, and nothing is changed, for a model with a layer whose
        weights are more than matrices and vectors (experts, latent attention, quantised ones): that keeps vLLM's way.
        """
        from torch.nn.functional import linear
        from vllm.model_executor.layers.linear import UnquantizedLinearMethod
        from vllm.model_executor.model_loader import get_model_loader

        model = self.get_model()
        if not all(_only_multiplies(module) for module in model.modules()):
            return False
        for module in model.modules():
            method = getattr(module, "quant_method", None)
            if isinstance(method, UnquantizedLinearMethod):
                _unpack(module)
            if method is not None:
                module.cpu_linear = linear
        loader: Any = get_model_loader(self.vllm_config.load_config)
        config = self.vllm_config.model_config
        _write_over(model, loader.get_all_weights(config, model))
        self._where_they_lie = True
        return True

    def load_weights_from(self, path: str) -> float:
        """Read a safetensors file with Hugging Face names; tensor-parallel workers each take their part of it.

        Seconds that it took: no token was made meanwhile.
        """
        began = time.perf_counter()
        tensors = iter(load_file(path).items())
        if self._where_they_lie:
            _write_over(self.get_model(), tensors)
        else:
            self._reload(tensors)
        return time.perf_counter() - began

    def _reload(self, tensors: Any) -> None:
        if self.vllm_config.device_config.device_type == "cpu":
            # vLLM 0.32 packs experts for its CPU kernel when it makes that kernel, and not when it reloads them: they
            # would be read in the wrong order from then on.
            for module in self.get_model().modules():
                if getattr(getattr(module, "quant_method", None), "moe_kernel", None) is not None:
                    module.quant_method.moe_kernel = None
        self.reload_weights(weights_iterator=tensors)

    def end_with_parent(self) -> None:
        """Have the kernel end this process when the one that started it is gone, killed or not (Linux)."""
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _only_multiplies(module: Module) -> bool:
    """True when nothing but its matrix product is derived from the module's weights after they are loaded."""
    from vllm.model_executor.layers.attention import Attention
    from vllm.model_executor.layers.linear import UnquantizedLinearMethod
    from vllm.model_executor.layers.vocab_parallel_embedding import UnquantizedEmbeddingMethod

    method = getattr(module, "quant_method", None)
    if method is None:  # attention's scales are of its quantised caches, and constants here
        return type(module) is Attention or not hasattr(module, "process_weights_after_loading")
    if type(method) is UnquantizedEmbeddingMethod:
        return True
    return type(method) is UnquantizedLinearMethod and len(_loaded(module)["weight"].shape) == 2


def _loaded(module: Module) -> dict[str, Any]:
    """The module's parameters as a checkpoint fills them, without data: vLLM remembers them for its own reload."""
    from vllm.model_executor.model_loader.reload.layerwise import get_layerwise_info

    parameters, _ = get_layerwise_info(module).restore_metadata
    return parameters


def _unpack(module: Module) -> None:
    """Give a module the parameters that a checkpoint fills, which hold nothing yet."""
    from vllm.model_executor.model_loader.reload.layerwise import get_layerwise_info
    from vllm.model_executor.model_loader.reload.meta import materialize_layer, restore_layer_on_meta

    info = get_layerwise_info(module)
    restore_layer_on_meta(module, info)
    materialize_layer(module, info)


def _write_over(model: Any, tensors: Any) -> None:
    import torch

    with torch.no_grad():
        model.load_weights(tensors)
