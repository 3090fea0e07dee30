"""What runs inside vLLM's worker processes. Named by `worker_extension_cls`; imports nothing of the trainer."""

from __future__ import annotations

import ctypes
import signal
import sys
import time
from typing import Any

from safetensors.torch import load_file

PR_SET_PDEATHSIG = 1


class WeightLoading:
    """Mixed into vLLM's worker: replaces the weights of the model that it runs, its key-value cache untouched."""

    reload_weights: Any  # the worker's own: it undoes and redoes what a backend did to the weights (repacking)

    def load_weights_from(self, path: str) -> float:
        """Read a safetensors file with Hugging Face names; tensor-parallel workers each take their part of it.

        Seconds that it took: no token was made meanwhile.
        """
        began = time.perf_counter()
        tensors = load_file(path)
        self.reload_weights(weights_iterator=iter(tensors.items()))
        return time.perf_counter() - began

    def end_with_parent(self) -> None:
        """Have the kernel end this process when the one that started it is gone, killed or not (Linux)."""
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
