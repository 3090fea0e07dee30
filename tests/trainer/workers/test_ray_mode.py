"""Runs under a real local Ray: actors in processes of their own that overlap, and what happens when one dies."""

from __future__ import annotations

import os
import signal
import threading
import time
from itertools import pairwise

import psutil
import pytest
import ray

from trainer.errors import StopAsked, WorkerLost
from trainer.launch import Launch, train
from trainer.records import checkpoint as checkpoints
from trainer.records.directory import DirectoryReporter
from trainer.types import Wave
from trainer.workers import Ticket, place
from trainer.workers.fleet import Fleet, Work
from trainer.workers.place import placed
from trainer.workers.ray_actors import RayWorkers
from trainer.workers.stalls import StallWatch

from ..test_runs import FakeRun, lines

pytestmark = [pytest.mark.ray, pytest.mark.usefixtures("own_ray")]


@pytest.mark.slow
def test_a_run_in_ray_actors_trains_within_the_bound_in_processes_of_their_own(recipe, tmp_path, monkeypatch):
    pids = []
    started = RayWorkers._wait_until_started

    def remember(self):
        pids.extend(started(self))
        return pids

    monkeypatch.setattr(RayWorkers, "_wait_until_started", remember)
    changes = {"budget.compute": 8, "algorithm.max_staleness": 2, "resources.generators": 2}
    changes |= {"algorithm.zero_variance_filter": "off"}  # every step trains on something
    outcome = train(recipe(changes), Launch(tmp_path, progress=False))
    assert outcome.step == 8
    assert len({os.getpid(), *pids}) == 4  # two generators, a learner, and us
    metrics = [line for line in lines(tmp_path, "metrics.jsonl") if "train/reward" in line["metrics"]]
    assert [line["step"] for line in metrics] == list(range(1, 9))
    assert max(line["metrics"].get("staleness/max", 0) for line in metrics) <= 2
    # Work of different processes: together the roles were busy with one step while others went on.
    assert metrics[-1]["metrics"]["ledger/generator"] > 0
    assert metrics[-1]["metrics"]["ledger/learner"] > 0
    assert metrics[-1]["metrics"]["policy/logprob_diff_mean"] < 0.5
    judged = lines(tmp_path, "evaluations.jsonl")
    assert [line["step"] for line in judged] == [0, 2, 4, 6, 8]
    assert all(a["compute"] <= b["compute"] for a, b in pairwise(judged))
    assert checkpoints.newest_valid(tmp_path / "checkpoints").step == 8
    # Without Ray it starts from the same base, so the evaluation of step 0 is the same to the last prompt.
    train(recipe({"budget.compute": 1}), Launch(tmp_path / "here", ray=False, progress=False))
    assert judged[0]["counts"] == lines(tmp_path / "here", "evaluations.jsonl")[0]["counts"]


def _remembering_generators(monkeypatch):
    """Process ids of a run's generators as they are started; and a hook before every optimiser step."""
    hooks = {"pids": [], "before_step": lambda workers: None}
    started, stepped = RayWorkers._wait_until_started, RayWorkers.start_step

    def remember(self):
        found = started(self)
        hooks["pids"] = found
        return found

    def step(self, groups):
        hooks["before_step"](self)
        return stepped(self, groups)

    monkeypatch.setattr(RayWorkers, "_wait_until_started", remember)
    monkeypatch.setattr(RayWorkers, "start_step", step)
    return hooks


def test_a_generator_that_is_killed_and_one_that_stands_still_are_replaced_and_nothing_is_lost(
    recipe, tmp_path, monkeypatch
):
    """In one run, in the middle of their work: the second is the one that took the place of the first."""
    hooks, steps, killed, stopped, told = _remembering_generators(monkeypatch), [], [], [], []

    def harm(workers):
        steps.append(None)
        (generator,) = workers._fleet.actors
        if len(steps) == 3:
            killed.append(generator)
            os.kill(hooks["pids"][0], signal.SIGKILL)
        elif killed and generator is not killed[0] and not stopped:
            stopped.append(psutil.Process(ray.get(generator.ready.remote())))
            stopped[0].suspend()

    hooks["before_step"] = harm
    monkeypatch.setattr(DirectoryReporter, "notice", lambda self, text, step, compute: told.append(text))
    changes = {"budget.compute": 10, "resources.stall_seconds": 6}
    outcome = train(recipe(changes), Launch(tmp_path, progress=False))
    assert (outcome.outcome, outcome.step) == ("succeeded", 10)
    trained = [line for line in lines(tmp_path, "metrics.jsonl") if "train/reward" in line["metrics"]]
    assert [line["step"] for line in trained] == list(range(1, 11))
    assert max(line["metrics"].get("staleness/max", 0) for line in trained) <= 8
    assert trained[-1]["metrics"]["generation/lost_generators"] == 2
    wasted = [line["metrics"]["ledger/waste"] for line in trained]
    assert max(after - before for before, after in pairwise(wasted)) > 5  # all but a look of the silence, told at once
    assert [line["step"] for line in lines(tmp_path, "evaluations.jsonl")] == [0, 2, 4, 6, 8, 10]
    for fate in ("died", "stalled"):
        assert any(f"generator 0 {fate} and was replaced" in text for text in told), fate
    _, alive = psutil.wait_procs(stopped, timeout=60)  # Ray asks it to end, and kills it when it does not answer
    assert not alive


@pytest.mark.slow  # 12 s; what silence is, is in test_stalls.py, what a stalled one leaves in test_fleet.py
def test_a_generator_that_answers_but_turns_in_circles_is_replaced_too():
    @ray.remote(num_cpus=1, concurrency_groups={"mail": 1})
    class Generator:
        def __init__(self, number):
            self.number = number

        def ready(self):
            return self.number

        @ray.method(concurrency_group="mail")
        def signs(self):
            return 0

        def generate(self, wave, evaluations):
            while not self.number:  # the first one
                pass
            return f"by {self.number}"

    made = []

    def make(index):
        made.append(Generator.remote(len(made)))
        return made[-1]

    fleet = Fleet(make, 1, StallWatch(1.0))
    ray.get(made[0].ready.remote())
    fleet.start(Work(Ticket(0, "wave"), Wave(((0, 0),), 0)))
    news, results = [], []
    while not results:
        news += fleet.check()
        done, _ = ray.wait(fleet.references, timeout=0.05)
        results += [found for reference in done if (found := fleet.finished(reference, ray.get)) is not None]
    assert results == [(Ticket(0, "wave"), "by 1")]
    assert len(news) == 1
    ray.kill(made[1])


@pytest.mark.slow
def test_a_learner_that_no_longer_answers_ends_the_attempt_by_name(recipe, tmp_path, monkeypatch):
    hooks, steps = _remembering_generators(monkeypatch), []

    def stop_the_learner(workers):
        steps.append(None)
        if len(steps) == 2:
            os.kill(hooks["pids"][-1], signal.SIGSTOP)

    hooks["before_step"] = stop_the_learner
    with pytest.raises(WorkerLost, match=r"the learner \(rank 0 of 1\) has not answered for 5 s"):
        train(recipe({"budget.compute": 6, "resources.stall_seconds": 5}), Launch(tmp_path, progress=False))


@pytest.mark.slow  # 20 s; what a dead rank ends is in test_faults.py, the exact resume in tests/trainer/records
def test_a_learner_that_dies_ends_the_attempt_by_name_and_the_next_one_goes_on(recipe, tmp_path, monkeypatch):
    hooks, steps = _remembering_generators(monkeypatch), []

    def kill_the_learner(workers):
        steps.append(None)
        if len(steps) == 5:
            os.kill(hooks["pids"][-1], signal.SIGKILL)

    hooks["before_step"] = kill_the_learner
    with pytest.raises(WorkerLost, match="the learner died during a step"):
        train(recipe({"budget.compute": 6}), Launch(tmp_path, progress=False))
    assert lines(tmp_path, "outcome.json")[0]["outcome"] == "lost"
    assert train(recipe({"budget.compute": 6}), Launch(tmp_path, resume=True, attempt=2, progress=False)).step == 6
    trained = [line for line in lines(tmp_path, "metrics.jsonl") if "train/reward" in line["metrics"]]
    assert [(line["step"], line["attempt"]) for line in trained] == [(1, 1), (2, 1), (3, 1), (4, 2), (5, 2), (6, 2)]


@pytest.mark.slow  # 35 s; the same without Ray is in test_learner_ranks.py
def test_two_ranks_of_a_learner_train_as_one_does(recipe, tmp_path):
    changes = {"budget.compute": 3, "algorithm.max_staleness": 0, "algorithm.off_policy": "on-policy"}
    rewards = {}
    for learners in (1, 2):
        directory = tmp_path / str(learners)
        train(recipe(changes | {"resources.learners": learners}), Launch(directory, progress=False))
        metrics = [line["metrics"] for line in lines(directory, "metrics.jsonl") if "train/reward" in line["metrics"]]
        rewards[learners] = [line["train/reward"] for line in metrics]
        assert checkpoints.newest_valid(directory / "checkpoints").step == 3
    assert rewards[1] == rewards[2]


def test_a_run_that_finds_no_room_holds_none_and_begins_when_there_is(recipe, monkeypatch):
    """Two runs of two actors each on two CPUs: had each taken one, both would have waited for ever."""
    monkeypatch.setattr(place, "_PATIENCE_S", 0.0)
    monkeypatch.setattr(place, "_LOOK_S", 0.1)
    whole, half = recipe({"resources.cpus": 2}), recipe({"resources.cpus": 1})
    told, began = [], threading.Event()

    def second():
        with placed(whole, tell=told.append):
            began.set()

    _until(lambda: ray.available_resources().get("CPU") == 2.0)  # what the test before had is given back by now
    waiting = threading.Thread(target=second)
    with placed(half):
        waiting.start()
        _until(lambda: told)
        _until(lambda: ray.available_resources().get("CPU") == 1.0)  # what waits holds nothing
        with placed(half):
            assert not began.is_set()
        asked = iter([None, "a person asked"])
        with pytest.raises(StopAsked, match="a person asked"), placed(whole, stop_reason=lambda: next(asked)):
            pass
    waiting.join(30)
    assert began.is_set()
    need = "the run needs 2 x 1 CPU at once, and its one machine has 2 CPUs"
    assert told == [f"waits for room on the cluster: {need}", "found room on the cluster"]
    _until(lambda: ray.available_resources().get("CPU") == 2.0)


def test_a_run_that_is_stopped_while_it_waits_for_room_has_not_begun(recipe, tmp_path):
    run = FakeRun(None, stop_at=0)
    with placed(recipe({"resources.cpus": 1})):
        outcome = train(recipe({"resources.cpus": 2}), Launch(tmp_path, progress=False), run)
    assert (outcome.outcome, outcome.step) == ("stopped", 0)
    assert run.of("finish") == [("stopped", "a person asked (before it began)")]
    assert train(recipe({"budget.compute": 1}), Launch(tmp_path, ray=False, progress=False)).step == 1


def _until(holds):
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)
