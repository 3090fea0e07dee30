"""The vLLM engine: vLLM's asynchronous engine behind the same protocol as the torch engine.

vLLM decodes in processes of its own and does not wait for us. `step` therefore waits a moment for requests that have
finished, and a weight swap pauses vLLM between two of its steps: running requests keep their keys and values and go
on with the new weights. New weights reach the workers through a file in shared memory, written before the pause.

A response is one vLLM request. One that is interrupted becomes two: the second has the phrase at the end of its
prompt, so that its keys and values are computed anew, with the weights of that moment.
"""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import psutil
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.torch import save_file

from trainer.errors import ConfigurationError, NotFinite, TrainerError, WorkerLost
from trainer.types import Request, Responses

from .base import SamplingConfig
from .staging import Staging
from .vllm_adapter import Completion, VllmAdapter, VllmOptions, check
from .vllm_rows import Row, budget_after_interruption, row, sample_seed, to_responses

if TYPE_CHECKING:
    from trainer.models.huggingface import SavedForm

POLL_S = 0.02
"""How long a `step` waits for a finished request: the caller looks for new weights between two steps."""
CALL_TIMEOUT_S = 600.0

T = TypeVar("T")


class VllmEngine:
    """See `Engine`. Starts vLLM's processes, some twenty seconds; `version` names the weights of the folder.

    Raises:
        ConfigurationError: vLLM is not here, is another release, or cannot read the model's folder.
        WorkerLost: vLLM did not start.
    """

    def __init__(self, options: VllmOptions, sampling: SamplingConfig):
        check(options, sampling.temperature)
        self._sampling, self._version = sampling, 0
        self._folder = Path(options.model)
        self._names = tensor_names(self._folder)
        self._outstanding = 0
        self._done: queue.SimpleQueue[Responses | BaseException] = queue.SimpleQueue()
        self._tasks: set[Future[None]] = set()
        self._staging = Staging()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="vllm", daemon=True)
        self._thread.start()
        self._adapter: VllmAdapter | None = None
        try:
            self._adapter = self._call(_start(options, sampling), "start")
            self._call(self._adapter.end_with_parent(), "start")
            self._call(self._adapter.open_transfer(), "start")
            self._call(self._adapter.name_version(self._version), "start")
        except TrainerError:
            self.close()
            raise

    @property
    def version(self) -> int:
        """See `Engine`."""
        return self._version

    @property
    def busy(self) -> bool:
        """See `Engine`."""
        return self._outstanding > 0

    def tokens_made(self) -> int:
        """See `Engine`."""
        return self._adapter.tokens_made if self._adapter is not None else 0

    def cpu_seconds(self) -> float:
        """See `Engine`: vLLM's core and workers."""
        total = 0.0
        for process_id in self.process_ids:
            try:
                core = psutil.Process(process_id)
                family = [core, *core.children(recursive=True)]
                total += sum(sum(process.cpu_times()[:2]) for process in family)
            except psutil.NoSuchProcess:
                continue
        return total

    @property
    def process_ids(self) -> list[int]:
        """The processes that this engine has started, which may have started others."""
        return self._running.process_ids

    @property
    def staging(self) -> Path:
        """The folder in which weights lie while workers read them."""
        return self._staging.path

    def load_weights(self, version: int, tensors: Mapping[str, Any]) -> float:
        """See `Engine`. Hugging Face names.

        Generation goes on while the weights are written to where the workers find them, and stands still while they
        read them.

        Raises:
            TrainerError: a tensor of the model is not among them; the engine keeps the weights it has.
        """
        path, doing = self._stage(version, self._as_in_the_folder(tensors)), f"load weights of version {version}"
        try:
            stood = self._call(self._running.swap(str(path), version), doing)
        finally:
            path.unlink(missing_ok=True)
        self._version = version
        return stood

    def submit(self, requests: Sequence[Request]) -> None:
        """See `Engine`. ConfigurationError when a prompt and its budget do not fit into the model's context."""
        longest = max((len(request.prompt.tokens) for request in requests), default=0)
        context = self._running.context
        if longest + self._sampling.max_tokens > context:
            raise ConfigurationError(
                f"a prompt of {longest} tokens and generation.max_tokens {self._sampling.max_tokens} do not fit into "
                f"the model's context of {context} tokens; lower one of them"
            )
        for request in requests:
            self._outstanding += 1
            task = asyncio.run_coroutine_threadsafe(self._respond(request), self._loop)
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def step(self) -> list[Responses]:
        """See `Engine`. Waits at most a moment; empty when nothing has finished meanwhile."""
        if not self._outstanding:
            return []
        finished: list[Responses] = []
        block = True
        while True:
            try:
                item = self._done.get(block=block, timeout=POLL_S)
            except queue.Empty:
                break
            if isinstance(item, BaseException):
                raise self._named(item) from item
            finished.append(item)
            block = False
        if not finished and self._running.dead:
            raise self._lost("generate")
        self._outstanding -= len(finished)
        return finished

    def close(self) -> None:
        """See `Engine`. Requests that still run are dropped; the processes are gone on return."""
        if self._loop.is_closed():
            return
        for task in list(self._tasks):
            task.cancel()
        try:
            if self._adapter is not None:
                asyncio.run_coroutine_threadsafe(self._adapter.shutdown(), self._loop).result(CALL_TIMEOUT_S)
        finally:
            self._adapter = None
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
            self._staging.close()
            self._outstanding = 0

    @property
    def _running(self) -> VllmAdapter:
        if self._adapter is None or self._loop.is_closed():
            raise TrainerError("this vLLM engine is closed")
        return self._adapter

    def _call(self, work: Coroutine[Any, Any, T], doing: str) -> T:
        """Run `work` in vLLM's event loop; WorkerLost when vLLM dies or does not answer."""
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        deadline = time.monotonic() + CALL_TIMEOUT_S
        while True:
            try:
                return future.result(timeout=0.2)
            except TimeoutError as error:
                if future.done():
                    raise self._named(error, doing) from error
                dead = self._adapter is not None and self._adapter.dead
                if dead or time.monotonic() > deadline:
                    future.cancel()
                    raise self._lost(doing) from None
            except Exception as error:
                raise self._named(error, doing) from error

    def _lost(self, doing: str) -> WorkerLost:
        died = self._adapter is not None and self._adapter.dead
        what = "died" if died else f"did not answer within {CALL_TIMEOUT_S:.0f} s"
        return WorkerLost(f"vLLM's engine process {what} while it was to {doing}; its own log says why")

    def _named(self, error: BaseException, doing: str = "generate") -> TrainerError:
        if isinstance(error, TrainerError):
            return error
        if self._adapter is not None and self._adapter.dead:
            return self._lost(doing)
        return WorkerLost(f"vLLM failed to {doing}: {type(error).__name__}: {str(error).strip()[:500]}")

    def _as_in_the_folder(self, tensors: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """What vLLM loads: of tensors that lack one it would only warn, and sample from old and new weights mixed."""
        given = {name: _tensor(value) for name, value in tensors.items()}
        needed = self._names - ({"lm_head.weight"} if self._running.tied_head else set())
        if not needed <= given.keys():
            given = self._saved_form(given)
        absent = sorted(needed - given.keys())
        if absent:
            raise TrainerError(f"the new weights lack {len(absent)} of the model's tensors: {', '.join(absent[:3])}")
        return given

    @cached_property
    def _saved_form(self) -> SavedForm:
        from trainer.models.huggingface import SavedForm

        return SavedForm(self._folder)

    def _stage(self, version: int, tensors: Mapping[str, torch.Tensor]) -> Path:
        """The weights as a file that every worker can read, in memory where the machine has such a folder."""
        path = self.staging / f"{version}.safetensors"
        save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, path)
        return path

    async def _respond(self, request: Request) -> None:
        """All rows of a request, into the queue of what is done; an error goes there as well."""
        try:
            rows = await asyncio.gather(*(self._row(request, sample) for sample in range(request.samples)))
            self._done.put(to_responses(request.key, rows, self._sampling.end_tokens))
        except Exception as error:  # noqa: BLE001 - it is raised again by `step`, in the caller's thread
            self._done.put(error)

    async def _row(self, request: Request, sample: int) -> Row:
        most = self._sampling.max_tokens
        prompt, budget = request.prompt.tokens, min(most, request.budget or most)
        at = budget if request.interrupt_at is None else int(request.interrupt_at[sample])
        if self._sampling.interruption is None or at >= budget:
            return row([await self._complete(prompt, request, sample, 0, budget)])
        thinking = await self._complete(prompt, request, sample, 0, at)
        plan = budget_after_interruption(thinking.tokens, at, self._sampling)
        if plan is None:
            return row([thinking])
        phrase, rest = plan
        so_far = np.concatenate([prompt, thinking.tokens, phrase])
        answer = await self._complete(so_far, request, sample, 1, rest)
        return row([thinking, answer], phrase)

    async def _complete(
        self, prompt: NDArray[np.int64], request: Request, sample: int, part: int, budget: int
    ) -> Completion:
        if budget <= 0:
            return Completion(np.zeros(0, np.int64), np.zeros(0, np.float32), np.zeros(0, np.int32))
        made = await self._running.complete(prompt, sample_seed(request.seed, sample, part), budget)
        if not np.isfinite(made.logprobs).all():
            raise NotFinite(
                f"the policy at weight version {int(made.versions.max())} gives log-probabilities that are not finite"
            )
        return made


async def _start(options: VllmOptions, sampling: SamplingConfig) -> VllmAdapter:
    return VllmAdapter(options, sampling.temperature, sampling.end_tokens, sampling.logits_precision)


def _tensor(value: Any) -> torch.Tensor:
    tensor = value.detach() if isinstance(value, torch.Tensor) else torch.from_numpy(np.array(value))
    return tensor.cpu()


def tensor_names(folder: Path) -> frozenset[str]:
    """Weights and biases in a folder's safetensors files, read from their headers."""
    names: set[str] = set()
    for path in folder.glob("*.safetensors"):
        with safe_open(path, "pt") as file:
            names.update(file.keys())
    return frozenset(name for name in names if name.endswith((".weight", ".bias")))  # no buffers, which are computed
