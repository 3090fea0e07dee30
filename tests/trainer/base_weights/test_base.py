"""The base model that ships: its digest, its skill, and room for RL."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch

from forecurve.recipes import with_changes
from trainer.base_weights import warm_start
from trainer.base_weights.weights import SHIPPED, base_weights, cache_key, load_into, shipped_weights
from trainer.errors import ConfigurationError
from trainer.generation.generator import Generator
from trainer.models import TinyConfig, TinyDecoder, build_model
from trainer.tasks import TorusTask, build_task


@pytest.mark.parametrize(
    ("layout", "skill", "budget"), [("open", 1.0, 24), ("walls", 0.98, 24), ("two-robots", 0.95, 28)]
)
def test_a_shipped_base_can_follow_nearly_every_move_but_mostly_does_not_answer(recipe, layout, skill, budget):
    walks = recipe({"task.layout": layout, "generation.max_tokens": budget})
    task, weights = build_task(walks), base_weights(walks, cache=Path("not needed"))
    policy = load_into(build_model(walks), weights)
    assert warm_start.skill(policy, task) >= skill
    evaluated = with_changes(walks, {"evaluation.prompts": 128, "evaluation.samples": 4})
    counts = Generator(evaluated, task, lambda: policy).evaluate(0, weights).counts
    assert 0.05 < sum(counts) / (4 * len(counts)) < 0.35


def test_an_untrained_model_has_no_skill():
    assert warm_start.skill(TinyDecoder(TinyConfig()), TorusTask(), walks=8) < 0.2


def test_a_base_whose_bytes_are_not_those_of_its_digest_is_refused(tmp_path):
    shipped = SHIPPED["open"]
    for file in (shipped, shipped.with_suffix(".sha256")):
        shutil.copy(file, tmp_path)
    copy = tmp_path / shipped.name
    assert shipped_weights(copy).keys() == shipped_weights().keys()
    body = bytearray(copy.read_bytes())
    body[-1] ^= 1
    copy.write_bytes(body)
    with pytest.raises(ConfigurationError, match="make it again: make warm-start"):
        shipped_weights(copy)


def test_every_size_and_every_kind_of_warm_start_has_its_own_name_in_the_cache(monkeypatch):
    tasks = [TorusTask(echo_start=echo, layout=layout) for echo in (True, False) for layout in SHIPPED]
    names = {cache_key(TinyConfig(width=w), task) for w in (32, 64) for task in tasks}
    monkeypatch.setattr(warm_start, "STEPS", 7)
    names.add(cache_key(TinyConfig(), TorusTask()))
    assert len(names) == 13


@pytest.mark.slow
def test_a_base_made_on_demand_does_not_depend_on_the_threads_of_its_process_and_leaves_them(monkeypatch):
    monkeypatch.setattr(warm_start, "STEPS", 6)
    monkeypatch.setattr(warm_start, "SEEDS", (1,))
    made = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        model = warm_start.skilled_base(TinyConfig(width=128), TorusTask())
        assert torch.get_num_threads() == threads
        made.append(torch.cat([weight.detach().flatten() for weight in model.parameters()]))
    assert torch.equal(*made)


def test_demonstrations_avoid_the_held_out_prompts_and_come_in_the_stated_shares():
    import numpy as np

    task = TorusTask()
    prompts, responses = warm_start.demonstrations(task, np.random.default_rng(0), 2000)
    held_out = {prompt.tokens.tobytes() for prompt in task.held_out_prompts(2000)}
    assert not held_out & {row.numpy().tobytes() for row in prompts}
    lengths = (responses != warm_start.IGNORED).sum(1)
    ended = (responses == task.end_tokens[0]).any(1)
    assert abs(float((~ended).float().mean()) - warm_start.SHARES["rambling"]) < 0.03
    assert abs(float((lengths[ended] == 6).sum()) / 2000 - warm_start.SHARES["direct"]) < 0.03
    assert (lengths[~ended] == warm_start.RESPONSE_TOKENS).all()


def test_the_warm_start_command_writes_a_file_that_loads(tmp_path):
    file = tmp_path / "base.safetensors"
    assert warm_start.main(["--out", str(file), "--steps", "2", "--width", "32", "--layers", "1"]) == 0
    from safetensors.numpy import load_file

    load_into(TinyDecoder(TinyConfig(width=32, layers=1)), load_file(file))
