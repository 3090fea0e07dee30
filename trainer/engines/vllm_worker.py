"""What runs inside vLLM's worker processes, beside its own code. Named by `worker_extension_cls`, and imported before
a worker makes its weight transfer."""

from __future__ import annotations

import ctypes
import signal
import sys
from typing import Any

from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory

from trainer.engines.vllm_adapter import TRANSFER

PR_SET_PDEATHSIG = 1

WeightTransferEngineFactory.register_engine(TRANSFER, "trainer.engines.vllm_transfer", "FileTransfer")


class WorkerExtension:
    """Mixed into vLLM's worker: what `collective_rpc` can ask of it."""

    weight_transfer_engine: Any  # the worker's own

    def swaps_in_place(self) -> bool:
        """True where a swap writes over the weights and vLLM's reload is not needed."""
        return bool(self.weight_transfer_engine.in_place)

    def swap_seconds(self) -> float:
        """For how long the last swap kept this worker."""
        return float(self.weight_transfer_engine.seconds)

    def end_with_parent(self) -> None:
        """Have the kernel end this process when the one that started it is gone, killed or not (Linux)."""
        if sys.platform == "linux":
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
