"""A run's place on the cluster is taken whole or not at all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecurve.recipes import Recipe
from trainer.errors import ConfigurationError, WorkerLost
from trainer.workers.place import TOO_SMALL_S, Wait, fits, share_of


class Telling:
    """A wait whose clock stands until it is set, and what was told."""

    def __init__(self, share, actors):
        self.now, self.told = 0.0, []
        self.wait = Wait(share, actors, self.told.append, lambda: self.now)

    def look_at(self, now, *sizes):
        self.now = now
        self.wait.look(sizes)


def test_every_actor_reserves_an_equal_share(recipe):
    wanted = recipe({"resources.cpus": 3, "resources.gpus": 80, "resources.generators": 64, "resources.learners": 16})
    assert share_of(wanted) == {"CPU": 0.0375, "GPU": 1}
    assert share_of(recipe({"resources.gpus": 1})) == {"CPU": 0.5, "GPU": 0.5}


@given(st.integers(1, 64), st.integers(1, 64), st.integers(1, 64))
def test_a_machine_of_just_what_a_run_asks_for_has_room_for_it(cpus, generators, learners):
    wanted = Recipe(resources={"cpus": cpus, "generators": generators, "learners": learners})
    share = share_of(wanted)
    assert fits({"CPU": share["CPU"]}, generators + learners, [{"CPU": cpus}])
    assert share["CPU"] * (generators + learners) == pytest.approx(cpus, abs=1e-4 * (generators + learners))


def test_what_a_run_waits_for_is_told_once_and_again_when_it_changes():
    telling = Telling({"CPU": 1, "GPU": 2}, 3)
    for now in (1, 2, 4, 5, 90):
        telling.look_at(now, {"CPU": 8, "GPU": 4}, {"CPU": 8, "GPU": 2, "memory": 1e9})
    need = "the run needs 3 x 1 CPU and 2 GPUs at once, and its 2 machines have 16 CPUs and 6 GPUs"
    assert telling.told == [f"waits for room on the cluster: {need}"]
    telling.look_at(91, {"CPU": 8, "GPU": 4})
    smaller = "the run needs 3 x 1 CPU and 2 GPUs at once, and its one machine has 8 CPUs and 4 GPUs"
    telling.wait.over()
    way_out = "ask for less (resources.cpus, resources.gpus), or add machines"
    assert telling.told[1:] == [f"the cluster is too small: {smaller}; {way_out}", "found room on the cluster"]


def test_a_cluster_that_stays_too_small_ends_the_attempt_by_name_and_one_that_is_full_does_not():
    telling = Telling({"CPU": 2}, 2)
    telling.look_at(1e6, {"CPU": 4})
    for now in (1e6 + 1, 1e6 + TOO_SMALL_S):
        telling.look_at(now, {"CPU": 3}, {"CPU": 1})
    with pytest.raises(WorkerLost, match=r"too small: the run needs 2 x 2 CPUs .* ask for less"):
        telling.look_at(1e6 + TOO_SMALL_S + 1, {"CPU": 3}, {"CPU": 1})


def test_what_cannot_grow_is_refused_at_once():
    wait = Wait({"GPU": 1}, 2, print)
    wait.refuse([{"CPU": 2, "GPU": 2}])
    with pytest.raises(ConfigurationError, match="the run needs 2 x 1 GPU at once, and its one machine has 0 GPUs"):
        wait.refuse([{"CPU": 2}])


@given(st.lists(st.integers(0, 12), max_size=6), st.integers(1, 4), st.integers(1, 8))
def test_what_fits_can_be_laid_out(sizes, each, actors):
    """Against the definition: take the shares one by one from whichever machine still has one."""
    left, laid = list(sizes), 0
    while any(size >= each for size in left):
        left[next(at for at, size in enumerate(left) if size >= each)] -= each
        laid += 1
    assert fits({"CPU": each}, actors, [{"CPU": size} for size in sizes]) == (laid >= actors)
