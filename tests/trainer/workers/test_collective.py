"""Weights by broadcast: bytes that arrive as they were sent, and peers that stay away."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import count

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from trainer.errors import ConfigurationError, TrainerError
from trainer.workers import collective
from trainer.workers.collective import Channel, Place, fused, host, layout_of, parted, refuse, size_of

TYPES = st.sampled_from(["float32", "float16", "float64", "int64", "int8", "bool"])
ARRAYS = TYPES.flatmap(lambda kind: hnp.arrays(kind, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5)))


@given(st.dictionaries(st.text(max_size=8), ARRAYS, max_size=5), st.integers(0, 2**40))
def test_what_is_fused_comes_apart_bit_for_bit(weights, version):
    layout = layout_of(weights)
    flat = fused(version, weights, layout)
    came, tensors = parted(torch.from_numpy(flat), layout)
    assert (came, len(flat), list(tensors)) == (version, size_of(layout), list(weights))
    for name, value in weights.items():
        assert tensors[name].numpy().tobytes() == value.tobytes()
        assert (tuple(tensors[name].shape), str(tensors[name].numpy().dtype)) == (value.shape, str(value.dtype))


@pytest.fixture(scope="module")
def members():
    """Groups of a given size that have met, in threads of this process; the learner's channel is the first."""
    store, address = host("127.0.0.1")
    epochs = count(1)
    with ThreadPoolExecutor(4) as pool:

        def meet(size, timeout_s=20.0, present=None):
            epoch = next(epochs)
            places = [Place(address, epoch, rank, size) for rank in range(size if present is None else present)]
            return list(pool.map(lambda place: Channel(place, "cpu", timeout_s), places))

        meet.pool = pool
        yield meet
    del store


def test_every_member_gets_every_version_bit_for_bit_in_buckets_of_any_size(members, monkeypatch):
    monkeypatch.setattr(collective, "BUCKET_BYTES", 1000)
    learner, *generators = members(3)
    rng = np.random.default_rng(0)
    for version in (4, 5):
        weights = {
            "half": torch.from_numpy(rng.normal(size=(7, 33)).astype(np.float32)).to(torch.bfloat16),
            "full": rng.normal(size=(50, 11)).astype(np.float32),
        }
        coming = [members.pool.submit(channel.receive, version) for channel in generators]
        learner.send(version, weights)
        for arrived in coming:
            assert torch.equal(arrived.result()["half"], weights["half"])
            assert arrived.result()["full"].numpy().tobytes() == weights["full"].tobytes()
    for channel in (learner, *generators):
        channel.close()


def test_a_version_that_is_not_the_awaited_one_is_refused(members):
    learner, generator = members(2)
    coming = members.pool.submit(generator.receive, 8)
    learner.send(9, {"w": np.ones(3, np.float32)})
    with pytest.raises(TrainerError, match="receive version 8: version 9 came"):
        coming.result()


def test_a_peer_that_stays_away_is_a_timeout_with_a_name(members):
    with pytest.raises(TrainerError, match=r"group \d+: could not meet"):
        members(2, timeout_s=0.3, present=1)


def test_a_peer_that_hangs_holds_nobody_up_for_longer_than_the_timeout(members):
    learner, silent = members(2, timeout_s=0.3)
    with pytest.raises(TrainerError, match="could not send version 1"):
        learner.send(1, {"w": np.zeros(20_000_000, np.float32)})  # more than a socket takes in unread
    with pytest.raises(TrainerError, match="could not receive version 1"):
        silent.receive(1)


# What a recipe may ask for.


def test_a_broadcast_within_one_process_is_refused(recipe):
    wanted = recipe({"resources.weight_transfer": "collective"})
    refuse(wanted, ray=True)
    with pytest.raises(ConfigurationError, match="--no-ray"):
        refuse(wanted, ray=False)


def test_a_broadcast_between_gpus_needs_one_for_each_actor(recipe):
    changes = {"resources.weight_transfer": "collective", "resources.generators": 2, "budget.unit": "GPU-hours"}
    refuse(recipe(changes | {"resources.gpus": 3}), ray=True)
    with pytest.raises(ConfigurationError, match="reserve 3, or use store"):
        refuse(recipe(changes | {"resources.gpus": 1}), ray=True)
