"""One rank of a sharded learner, for test_learner_ranks.py: `python rank_process.py JOB RANK` writes OUT.RANK.

The job is trained straight through; then a second learner goes on from the state before the last batch, and last its
weights on rank 1 turn to NaN. Then a mixture of experts is trained, its layers checkpointed and its head tied, with
rows end to end as on a GPU.
"""

from __future__ import annotations

import pickle
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from transformers import Qwen3MoeConfig

from forecurve.recipes import Recipe
from tests.trainer.models.packing import pack_anywhere
from trainer.base_weights.weights import load_into
from trainer.learner import Learner, join, leave
from trainer.models import build_model
from trainer.models.base import Policy
from trainer.models.huggingface import from_config
from trainer.types import Group


@dataclass(frozen=True)
class Job:
    """What every rank is told."""

    recipe: Recipe
    base: Any
    batches: list[list[Group]]
    experts: Recipe
    ranks: int
    meeting: str
    out: str


def run(job: Job, rank: int) -> dict[str, Any]:
    ranks = join(job.meeting, rank, job.ranks)

    def learner() -> Learner:
        return Learner(job.recipe, load_into(build_model(job.recipe), job.base), ranks=ranks)

    straight, results, before = learner(), [], None
    for i, batch in enumerate(job.batches):
        if i == len(job.batches) - 1:
            before = shared(straight.state())
        results.append(straight.step(batch))
    resumed = learner()
    resumed.load_state(before)
    again = resumed.step(job.batches[-1])
    if rank == 1:
        resumed.policy.head_weight.detach().to_local().fill_(float("nan"))
    broken = resumed.step(job.batches[0])
    held = sum(p.to_local().numel() for p in straight.policy.parameters())
    with pytest.MonkeyPatch.context() as patched:
        pack_anywhere(patched)
        experts = Learner(job.experts, experts_policy(), ranks=ranks)
        of_experts = [experts.step(batch) for batch in job.batches]
    found = {"results": results, "again": again, "broken": broken, "state": straight.state(), "held": held}
    found["experts"] = of_experts
    leave()
    return found


def experts_policy() -> Policy:
    """A tiny mixture of experts, the same in every process."""
    sizes = {"vocab_size": 24, "hidden_size": 32, "num_hidden_layers": 2, "head_dim": 8, "intermediate_size": 48}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "tie_word_embeddings": True}
    experts = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
    torch.manual_seed(0)
    return from_config(Qwen3MoeConfig(**sizes, **heads, **experts))


def shared(state: Any) -> Any:
    """Rank 0's state on every rank, as a controller hands it out."""
    box = [state]
    dist.broadcast_object_list(box, src=0)
    return box[0]


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.modules["rank_process"] = sys.modules["__main__"]
    job = pickle.loads(Path(sys.argv[1]).read_bytes())
    found = run(job, int(sys.argv[2]))
    Path(f"{job.out}.{sys.argv[2]}").write_bytes(pickle.dumps(found))
