"""The bound on staleness, under whatever order and delays workers have: the real controller over workers that a
random source drives."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from forecurve.recipes import SCALERL, Recipe, with_changes
from trainer.controller import Controller
from trainer.tasks import build_task
from trainer.types import (
    Cost,
    EvaluationResult,
    Group,
    LearnerState,
    Responses,
    StepResult,
    Wave,
    WaveResult,
    WeightVersion,
)
from trainer.workers import Ticket

FREE = Cost(0.0, 0.0)


class ErraticWorkers:
    """Finishes what was started in random order. A generator may hold any version it was offered that a wave allows,
    and may or may not take newer ones between two tokens."""

    def __init__(self, recipe: Recipe, seed: int, generators: int):
        self.generators, self.waves_in_flight = generators, 2 * generators
        self.steps_in_flight = 1 + seed % 2
        self._task, self._samples = build_task(recipe), recipe.batch.generations_per_prompt
        self._random = random.Random(seed)
        self._pending: list[tuple[Ticket, object]] = []
        self._version, self._held = 0, 0
        self.steps: list[list[Group]] = []
        self.started: list[tuple[int, tuple[int, ...]]] = []
        self.evaluated: list[int] = []

    def initial_weights(self) -> WeightVersion:
        return WeightVersion(0, None)

    def offer(self, weights: WeightVersion) -> None:
        self._version = weights.version

    def start_wave(self, wave: Wave) -> Ticket:
        assert self._version >= wave.minimum_version
        self.started.append((self._version, wave.ordinals))
        return self._start("wave", wave)

    def start_evaluation(self, weights: WeightVersion) -> Ticket:
        return self._start("evaluation", weights.version)

    def start_step(self, groups: Sequence[Group]) -> Ticket:
        assert sum(ticket.kind == "step" for ticket, _ in self._pending) < self.steps_in_flight
        return self._start("step", list(groups))

    def wait(self, timeout: float) -> list[tuple[Ticket, object]]:
        if not self._pending:
            raise AssertionError("nothing is under way: the controller is stuck")
        picked = self._pick()
        # the learner takes steps in order, whichever of them was picked
        same = [ticket is picked or ticket.kind == picked.kind == "step" for ticket, _ in self._pending]
        at = same.index(True)
        ticket, work = self._pending.pop(at)
        if ticket.kind == "wave":
            return [(ticket, WaveResult(tuple(self._group(o, work) for o in work.ordinals), FREE))]
        if ticket.kind == "evaluation":
            self.evaluated.append(work)
            return [(ticket, EvaluationResult(work, (1,), 2, {}, FREE))]
        self.steps.append(work)
        version = len(self.steps)
        return [(ticket, StepResult(version, {}, WeightVersion(version, None), True, False, FREE))]

    def _pick(self) -> Ticket:
        return self._random.choice(self._pending)[0]

    def arrays(self, weights: WeightVersion) -> dict:
        return {"x": np.full(1, weights.version, dtype=np.float32)}

    def learner_state(self) -> LearnerState:
        assert not any(ticket.kind == "step" for ticket, _ in self._pending), "a learner at rest"
        return LearnerState({"weight.x": np.zeros(1)}, {"version": len(self.steps)})

    def load_learner_state(self, state: LearnerState) -> None:
        raise NotImplementedError

    def close(self) -> None:
        self._pending.clear()

    def _start(self, kind, work) -> Ticket:
        ticket = Ticket(self._random.getrandbits(60), kind)
        self._pending.append((ticket, work))
        return ticket

    def _group(self, ordinal: int, wave: Wave) -> Group:
        shape = (self._samples, 5)
        # As old as the wave allows, or anything newer that exists; later tokens may be newer.
        versions = np.sort([[self._random.randint(wave.minimum_version, self._version) for _ in range(5)]] * shape[0])
        responses = Responses(
            ordinal,
            np.ones(shape, dtype=np.int64),
            np.zeros(shape, dtype=np.float32),
            versions.astype(np.int32),
            np.full(shape[0], 5),
            np.ones(shape[0], dtype=bool),
            np.ones(shape, dtype=bool),
            np.zeros(shape[0], dtype=bool),
        )
        rewards = np.array([1.0, 0.0] * (shape[0] // 2))
        return Group(ordinal, self._task.training_prompt(0), responses, rewards, rewards > 0.5)


class Silent:
    """Reports to nobody, and remembers."""

    stop_reason = None
    held_steps = frozenset()

    def __init__(self):
        self.logged, self.judged = [], []

    def log(self, metrics, step, compute):
        self.logged.append((step, dict(metrics)))

    def evaluation(self, result, compute):
        self.judged.append(result.step)

    def rollouts(self, lines, step, compute):
        pass

    def offsets(self):
        return {}

    def checkpoint(self, checkpoint, compute):
        pass

    def notice(self, text, step, compute):
        pass

    def message(self, text, step, compute):
        pass

    def finish(self, outcome, reason):
        pass


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    bound=st.integers(0, 6),
    queue=st.integers(1, 8),
    prompts=st.integers(1, 5),
    generators=st.integers(1, 4),
    checkpoint_every=st.sampled_from((4, 1000)),
)
def test_no_token_that_is_trained_on_is_older_than_the_bound_and_the_order_is_that_of_admission(
    tmp_path_factory, seed, bound, queue, prompts, generators, checkpoint_every
):
    recipe = with_changes(
        SCALERL,
        {
            "algorithm.max_staleness": bound,
            "algorithm.off_policy": "pipeline" if bound else "on-policy",
            "algorithm.queue_batches": queue,
            "batch.prompts_per_step": prompts,
            "batch.generations_per_prompt": 2,
            "evaluation.every_steps": 3,
            "checkpoint.every_steps": checkpoint_every,
            "budget.unit": "steps",
            "budget.compute": 12,
        },
    )
    workers, reporter = ErraticWorkers(recipe, seed, generators), Silent()
    directory: Path = tmp_path_factory.mktemp("run")
    outcome = Controller(recipe, workers, reporter, directory).run()
    assert (outcome.outcome, outcome.step) == ("succeeded", 12)
    for batch, groups in enumerate(workers.steps):
        assert batch - min(group.oldest_version for group in groups) <= bound
    trained = [group.ordinal for groups in workers.steps for group in groups]
    assert trained == list(range(12 * prompts))
    assert max(metrics.get("staleness/max", 0) for _, metrics in reporter.logged) <= bound
    for version, ordinals in workers.started:
        assert max(ordinals) // prompts <= version + queue  # a batch that waits at the learner is still in the queue
    assert reporter.judged == [0, 3, 6, 9, 12]  # told in order, whichever was done first


def short_run(**changes) -> Recipe:
    small = {"batch.prompts_per_step": 3, "batch.generations_per_prompt": 2, "budget.unit": "steps"}
    return with_changes(SCALERL, small | {"evaluation.every_steps": 4, "budget.compute": 8} | changes)


WORK = ("wave", "evaluation", "step")


class Patient(ErraticWorkers):
    """The learner is slowest, an evaluation slower than a wave; notes what was started, and how many steps at once."""

    def __init__(self, recipe: Recipe):
        super().__init__(recipe, seed=1, generators=1)
        self.recipe = recipe
        self.kinds: list[str] = []
        self.most_steps: dict[int, int] = {}

    def wait(self, timeout: float) -> list[tuple[Ticket, object]]:
        steps = sum(ticket.kind == "step" for ticket, _ in self._pending)
        if steps:
            done = len(self.steps)
            self.most_steps[done] = max(self.most_steps.get(done, 0), steps)
        return super().wait(timeout)

    def _pick(self) -> Ticket:
        return min((ticket for ticket, _ in self._pending), key=lambda ticket: WORK.index(ticket.kind))

    def _start(self, kind, work) -> Ticket:
        self.kinds.append(kind)
        return super()._start(kind, work)


def test_the_next_batch_waits_at_the_learner_but_not_past_a_checkpoint_or_the_last_step(tmp_path):
    workers = Patient(short_run(**{"checkpoint.every_steps": 3}))
    Controller(workers.recipe, workers, Silent(), tmp_path).run()
    # by steps done: the first one's length is not known yet; steps 3 and 6 end with a checkpoint, step 8 the run
    assert workers.most_steps == {0: 1, 1: 2, 2: 1, 3: 2, 4: 2, 5: 1, 6: 2, 7: 1}


def test_long_steps_are_not_sent_ahead(tmp_path, monkeypatch):
    monkeypatch.setattr("trainer.controller.LONG_STEP_S", 0.0)
    workers = Patient(short_run())
    Controller(workers.recipe, workers, Silent(), tmp_path).run()
    assert set(workers.most_steps.values()) == {1}


def test_generating_begins_before_the_first_evaluation(tmp_path):
    workers = Patient(short_run())
    Controller(workers.recipe, workers, Silent(), tmp_path).run()
    assert workers.kinds[:3] == ["wave", "wave", "evaluation"]
