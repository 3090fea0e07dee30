"""The controller: keeps generators and the learner fed, and is the only one who knows where the run stands.

      prompts by ordinal                         groups, in order of admission
            |                                              |
            v        admit <= (k+1)*P outstanding          v
       [ buffer.admit ]--wave-->[ generators ]--groups-->[ buffer.take ]--batch-->[ learner ]
            ^                        ^                                                |
            |                        | pulled between two decode steps                | version v+1
            +---- published version -+----------[ workers.offer ]<--------------------+
                                                                                      |
                                              evaluation of exactly that version  <---+---> checkpoint

    loop        consumes               produces            waits for             is unblocked by
    admission   published versions     waves               version >= b - k      the learner's next version
    generators  waves, newest weights  groups              a wave                admission
    learner     batches of P groups    weight versions     P groups in order     the generators
    evaluation  weights of one step    counts per prompt   a generator's gap     between two waves

One thread, one `wait`: everything that happens here happens when some work comes back. The same code drives workers
in this process (deterministic) and Ray actors (truly apart).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from forecurve.recipes import Recipe
from trainer import checkpoint as checkpoints
from trainer import state as run_state
from trainer.buffer import GroupBuffer
from trainer.checkpoint import Checkpoint
from trainer.errors import CheckpointError, NotFinite
from trainer.ledger import Ledger
from trainer.metrics import generation_cost, group_metrics, speed_metrics
from trainer.reporting import Reporter
from trainer.types import EvaluationResult, Group, StepResult, WaveResult, WeightVersion
from trainer.workers import Workers

MAX_NOT_FINITE = 5
"""Steps in a row whose loss or gradient is not finite, after which the run fails."""

WAIT_S = 0.5


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: `succeeded` (a limit of the recipe) or `stopped` (somebody asked), and at which step."""

    outcome: str
    reason: str
    step: int
    compute: float


class Controller:
    """One run, from its first evaluation to its last. `stop_reason` is asked between steps."""

    def __init__(
        self,
        recipe: Recipe,
        workers: Workers,
        reporter: Reporter,
        directory: Path,
        stop_reason: Callable[[], str | None] = lambda: None,
    ):
        self._recipe, self._workers, self._reporter = recipe, workers, reporter
        self._checkpoints = directory / "checkpoints"
        self._stop_reason = stop_reason
        per_step, knobs, resources = recipe.batch.prompts_per_step, recipe.algorithm, recipe.resources
        wave_size = -(-per_step // workers.generators)
        self._buffer = GroupBuffer(per_step, knobs.max_staleness, knobs.queue_batches, wave_size)
        actors = resources.generators + 1
        self._ledger = Ledger(recipe.budget.unit, resources.gpus / actors, resources.gpus)
        self._step = 0
        self._published = 0
        self._waves = 0
        self._learning: list[Group] | None = None  # the batch that the learner is at
        self._evaluating: dict[int, float] = {}  # step to the compute of its weights
        self._judged: dict[int, EvaluationResult] = {}  # came back before an earlier one did
        self._evaluated = -1  # newest step whose evaluation was started
        self._checkpointed = -1
        self._counters = {"skipped": 0, "empty": 0, "not_finite_in_a_row": 0}
        self._step_ended = self._learner_free_since = time.perf_counter()

    def resume(self, checkpoint: Checkpoint, lost_compute: float = 0.0, forked: bool = False) -> None:
        """Go on from a checkpoint; `lost_compute` (the run's unit) was spent after it and counts as waste.

        `forked`: the checkpoint is another run's, whose recipe may be another.

        Raises:
            CheckpointError: it belongs to another recipe or another model.
        """
        state = run_state.from_checkpoint(checkpoint, self._recipe, forked)
        self._workers.load_learner_state(state.learner)
        self._buffer.restore(state.step, state.groups)
        self._ledger.load_state(state.ledger)
        self._ledger.waste_seconds(self._ledger.in_seconds(lost_compute))
        self._counters = dict(state.counters)
        self._step = self._published = self._checkpointed = state.step

    def run(self) -> Outcome:
        """Train until the budget, the last step, or a request to stop.

        Raises:
            TrainerError: the run cannot go on; its text is the reason. Checkpoints stay as they are.
        """
        weights = self._workers.initial_weights()
        self._workers.offer(weights)
        self._evaluate_if(weights, self._step % self._recipe.evaluation.every_steps == 0)
        self._step_ended = self._learner_free_since = time.perf_counter()
        ended = self._end()
        while ended is None:
            self._start_work()
            stepped = self._collect()
            if stepped is not None:
                weights = stepped.weights
                ended = self._after_step(stepped)
        return self._wind_up(weights, ended)

    def _start_work(self) -> None:
        while self._waves < self._workers.waves_in_flight:
            wave = self._buffer.admit(self._published)
            if wave is None:
                break
            self._workers.start_wave(wave)
            self._waves += 1
        if self._learning is None and (batch := self._buffer.take()) is not None:
            self._waited_for_batch = time.perf_counter() - self._learner_free_since
            self._learning = batch
            self._workers.start_step(batch)

    def _collect(self) -> StepResult | None:
        """Take in what has come back; the step's result if one is among it."""
        stepped = None
        for _, result in self._workers.wait(WAIT_S):
            if isinstance(result, WaveResult):
                self._waves -= 1
                self._buffer.add(result.groups)
            elif isinstance(result, EvaluationResult):
                self._report_evaluation(result)
            else:
                stepped = result
        return stepped

    def _after_step(self, result: StepResult) -> tuple[str, str] | None:
        """Count, tell, publish; how the run ends, if it does here."""
        groups, self._learning = self._learning, None
        assert groups is not None
        assert result.version == self._step + 1, (result.version, self._step)
        self._step = self._published = result.version
        self._workers.offer(result.weights)
        self._learner_free_since = time.perf_counter()
        self._count(result)
        self._report_step(result, groups)
        self._evaluate_if(result.weights, self._step % self._recipe.evaluation.every_steps == 0)
        if self._step % self._recipe.checkpoint.every_steps == 0:
            self._checkpoint()
        return self._end()

    def _count(self, result: StepResult) -> None:
        self._counters["skipped"] += result.not_finite
        self._counters["empty"] += not result.applied and not result.not_finite
        self._counters["not_finite_in_a_row"] = self._counters["not_finite_in_a_row"] + 1 if result.not_finite else 0
        if self._counters["not_finite_in_a_row"] >= MAX_NOT_FINITE:
            raise NotFinite(
                f"loss or gradient was not finite in {MAX_NOT_FINITE} steps in a row, the last being step "
                f"{self._step}; the weights are those before them. Lower the learning rate or resume from a checkpoint"
            )

    def _report_step(self, result: StepResult, groups: Sequence[Group]) -> None:
        now = time.perf_counter()
        step_seconds, self._step_ended = now - self._step_ended, now
        generation = generation_cost(groups)
        self._ledger.charge("generator", generation)
        self._ledger.charge("learner", result.cost)
        self._ledger.close_step(step_seconds)
        metrics = group_metrics(groups, batch=result.version - 1) | dict(result.metrics)
        metrics |= speed_metrics(groups, generation, result.cost, step_seconds)
        metrics["time/wait_for_batch"] = self._waited_for_batch
        metrics["train/skipped_steps"] = float(self._counters["skipped"])
        metrics["train/empty_steps"] = float(self._counters["empty"])
        metrics["generation/waiting_groups"] = float(len(self._buffer.complete))
        metrics |= self._ledger.metrics()
        self._reporter.log(metrics, self._step, self._ledger.compute)
        self._reporter.message(f"reward {metrics['train/reward']:.3f}", self._step, self._ledger.compute)

    def _evaluate_if(self, weights: WeightVersion, due: bool) -> None:
        if due and self._evaluated < weights.version:
            self._evaluated = weights.version
            self._evaluating[weights.version] = self._ledger.compute
            self._workers.start_evaluation(weights)

    def _report_evaluation(self, result: EvaluationResult) -> None:
        """Tell of evaluations by rising step, whichever generator was the faster."""
        self._ledger.charge("evaluation", result.cost)
        self._judged[result.step] = result
        while self._evaluating and (step := min(self._evaluating)) in self._judged:
            self._reporter.evaluation(self._judged.pop(step), self._evaluating.pop(step))

    def _checkpoint(self) -> None:
        """Write where the run stands. A disk that refuses costs this checkpoint, not the run."""
        if self._checkpointed == self._step:
            return
        state = run_state.RunState(
            step=self._step,
            recipe=self._recipe,
            learner=self._workers.learner_state(),
            groups=self._buffer.complete,
            ledger=self._ledger.state(),
            counters=dict(self._counters),
        )
        files, keep = run_state.to_files(state), self._recipe.checkpoint.keep_last
        try:
            written = checkpoints.write(self._checkpoints, self._step, files, keep)
        except CheckpointError as error:
            self._reporter.message(str(error), self._step, self._ledger.compute)
            return
        self._checkpointed = self._step
        self._reporter.checkpoint(written, self._ledger.compute)

    def _end(self) -> tuple[str, str] | None:
        """Outcome and reason if the run ends at this step boundary."""
        reason = self._stop_reason() or self._reporter.stop_reason
        if reason:
            return "stopped", reason
        budget = self._recipe.budget
        if self._ledger.compute >= budget.compute:
            return "succeeded", f"budget of {budget.compute:g} {budget.unit} reached"
        if self._step >= budget.max_steps:
            return "succeeded", f"last step {budget.max_steps} reached"
        return None

    def _wind_up(self, weights: WeightVersion, ended: tuple[str, str]) -> Outcome:
        """Judge the last weights, write them down, and take in what is still being judged."""
        self._evaluate_if(weights, due=True)
        self._checkpoint()
        while self._evaluating or self._waves:
            self._collect()
        self._ledger.charge("waste", generation_cost(self._buffer.complete))
        self._reporter.log(self._ledger.metrics(), self._step, self._ledger.compute)
        return Outcome(*ended, step=self._step, compute=self._ledger.compute)
