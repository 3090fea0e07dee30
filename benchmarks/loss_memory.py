"""Peak memory of the learner's loss at a large vocabulary: log-probs in chunks against naive float32 logits.

Both take hidden states [tokens, width] and a head [vocabulary, width] and give the log-prob and entropy of each token
and the gradients of both inputs. Each runs in a process of its own; the peak is that process's largest resident
memory less what it held before the loss. Asked: at most a third of the naive one.

    python benchmarks/loss_memory.py [--tokens 8192] [--vocabulary 150000] [--width 256] [--json]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from typing import Any

from common import answer, note, parser, table

ASKED_SHARE = 1 / 3
GIB = 2**30


def main() -> int:
    made = parser(__doc__)
    made.add_argument("--tokens", type=int, default=8192)
    made.add_argument("--vocabulary", type=int, default=150_000)
    made.add_argument("--width", type=int, default=256)
    made.add_argument("--child", choices=["naive", "chunked"], help=argparse.SUPPRESS)
    options = made.parse_args()
    if options.child:
        print(json.dumps(measured(options.child, options.tokens, options.vocabulary, options.width)))
        return 0
    found = {kind: in_a_process(kind, options) for kind in ("naive", "chunked")}
    share = found["chunked"]["peak_gib"] / found["naive"]["peak_gib"]
    difference = abs(found["chunked"]["checksum"] - found["naive"]["checksum"])
    sizes = {"tokens": options.tokens, "vocabulary": options.vocabulary, "width": options.width}
    if options.json:
        answer(sizes | found | {"share": share, "asked": ASKED_SHARE, "checksum_difference": difference})
    else:
        print(f"{options.tokens} tokens, vocabulary {options.vocabulary}, width {options.width}, float32")
        table(["", "peak GiB", "seconds"], [[k, v["peak_gib"], v["seconds"]] for k, v in found.items()])
        print(
            f"share of the naive peak: {share:.3f} (asked: at most {ASKED_SHARE:.3f}); sums differ by {difference:.2g}"
        )
    return 0 if share <= ASKED_SHARE else 1


def in_a_process(kind: str, options: argparse.Namespace) -> dict[str, float]:
    """Run one of the two alone."""
    note(f"{kind} ...")
    sizes = [f"--{name}={getattr(options, name)}" for name in ("tokens", "vocabulary", "width")]
    command = [sys.executable, __file__, "--child", kind, *sizes]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the {kind} loss did not finish (exit code {done.returncode}): {done.stderr[-500:]}")
    body: dict[str, float] = json.loads(done.stdout)
    return body


def measured(kind: str, tokens: int, vocabulary: int, width: int) -> dict[str, float]:
    """Forward and backward once: peak over what was held before, seconds, and a sum that both must share."""
    import torch

    hidden, weight, targets = inputs(tokens, vocabulary, width)
    loss_of = naive if kind == "naive" else chunked
    small = inputs(16, 32, width)
    loss_of(*small)[0].sum().backward()  # the libraries' own workspace is not the loss's
    with Peak() as peak:
        start = time.perf_counter()
        logprobs, entropy = loss_of(hidden, weight, targets)
        (logprobs.sum() / tokens).backward()
        seconds = time.perf_counter() - start
    with torch.no_grad():
        checksum = logprobs.mean() + entropy.mean() + hidden.grad.square().sum() + weight.grad.square().sum()
    return {"peak_gib": peak.bytes / GIB, "seconds": seconds, "checksum": float(checksum)}


def inputs(tokens: int, vocabulary: int, width: int) -> Any:
    """Hidden states and a head of ordinary size, the same in every process."""
    import torch

    generator = torch.Generator().manual_seed(0)
    hidden = torch.randn(tokens, width, generator=generator).requires_grad_()
    weight = (torch.randn(vocabulary, width, generator=generator) / width**0.5).requires_grad_()
    return hidden, weight, torch.randint(vocabulary, (tokens,), generator=generator)


def naive(hidden: Any, weight: Any, targets: Any) -> Any:
    """All logits in float32, softmax over them, entropy from it: what a plain trainer does."""
    import torch
    from torch.nn import functional as F

    distribution = F.linear(hidden, weight).log_softmax(-1)
    with torch.no_grad():
        entropy = -(distribution.exp() * distribution).sum(-1)
    return distribution.gather(-1, targets[:, None])[:, 0], entropy


def chunked(hidden: Any, weight: Any, targets: Any) -> Any:
    """The learner's own."""
    from trainer.algorithm.logprobs import token_logprobs

    return token_logprobs(hidden, weight, targets)


class Peak:
    """The largest resident memory within a block, less that at its start; sampled a hundred times a second."""

    bytes = 0

    def __enter__(self) -> Peak:
        self._start, self._over = resident(), threading.Event()
        self._watch = threading.Thread(target=self._sample, daemon=True)
        self._watch.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._watch.join()

    def _sample(self) -> None:
        while not self._over.is_set():
            self.bytes = max(self.bytes, resident() - self._start)
            self._over.wait(0.01)


def resident() -> int:
    """Bytes of memory that this process holds."""
    import psutil

    return int(psutil.Process().memory_info().rss)


if __name__ == "__main__":
    sys.exit(main())
