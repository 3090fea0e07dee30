"""The controller: keeps generators and the learner fed, and is the only one who knows where the run stands.

      prompts by ordinal                         groups, in order of admission
            |                                              |
            v        admit within the bound (see buffer)   v
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
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from forecurve.recipes import Recipe
from trainer.curriculum.buffer import Batch, GroupBuffer
from trainer.curriculum.fruitless import Fruitless
from trainer.curriculum.prompts import PromptOrder, PromptsExhausted
from trainer.errors import CheckpointError, ConfigurationError
from trainer.judging import Evaluations
from trainer.measuring.ledger import Ledger
from trainer.measuring.metrics import generation_cost
from trainer.measuring.telemetry import Telemetry
from trainer.records import checkpoint as checkpoints
from trainer.records import state as run_state
from trainer.records.checkpoint import Checkpoint
from trainer.records.inputs import refuse_changed
from trainer.records.reporting import Reporter
from trainer.records.rollouts import rollout_lines
from trainer.types import EvaluationResult, GeneratorLost, Group, Notice, StepResult, WaveResult, WeightVersion
from trainer.workers import Workers

WAIT_S = 0.5

LONG_STEP_S = 5.0
"""Steps that take so long are not sent ahead of one another: handing over a batch takes some 0.03 s."""

Ending = tuple[str, str]
"""An outcome and its reason."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended: `succeeded` (a limit of the recipe) or `stopped` (somebody asked), and at which step."""

    outcome: str
    reason: str
    step: int
    compute: float


class Controller:
    """One run, from its first evaluation to its last.

    Args:
        recipe: what to train.
        workers: where generating and learning happen.
        reporter: whom to tell.
        directory: of the run; checkpoints go below it.
        stop_reason: asked between steps.
        order: which prompt comes at which place; None for an endless task.
        text: readable text of response tokens, for samples of rollouts.
        inputs: what the run reads, by `inputs.digests`.
    """

    def __init__(
        self,
        recipe: Recipe,
        workers: Workers,
        reporter: Reporter,
        directory: Path,
        stop_reason: Callable[[], str | None] = lambda: None,
        order: PromptOrder | None = None,
        text: Callable[[Group], list[str]] | None = None,
        inputs: Mapping[str, str] | None = None,
    ):
        self._recipe, self._workers, self._reporter = recipe, workers, reporter
        self._checkpoints = directory / "checkpoints"
        self._stop_reason = stop_reason
        self._order = order or PromptOrder(None, recipe.seed)
        self._text = text
        self._inputs = inputs or {}
        self._to_tell: list[str] = []  # before the run may write
        self._buffer = _buffer(recipe, workers.generators, self._order)
        self._ledger = _ledger(recipe)
        self._telemetry = Telemetry(self._ledger, recipe.algorithm.zero_variance_filter)
        self._step = 0
        self._published = 0
        self._waves = 0
        self._at_learner: deque[Batch] = deque()  # the one that it is at, and perhaps the next
        self._evaluations = Evaluations(recipe.evaluation.every_steps, workers, reporter, self._ledger)
        self._fruitless = Fruitless(recipe)
        self._checkpointed = -1

    def resume(self, checkpoint: Checkpoint) -> None:
        """Go on from a checkpoint.

        Raises:
            CheckpointError: it belongs to another recipe or another model.
            ConfigurationError: the files of prompts, or the weights that the run began with, have changed.
        """
        state = run_state.from_checkpoint(checkpoint, self._recipe)
        if not self._order.continues(state.order):
            raise ConfigurationError(
                f"{checkpoint.path} was made with other training prompts or difficulties: the files of task.train have "
                "changed since; bring them back, or go on from it with --fork, which starts the order of prompts anew"
            )
        refuse_changed(checkpoint.path, state.inputs, self._inputs)
        self._load(state)
        self._order.load_state(state.order)
        self._buffer.restore(state.buffer)
        self._fruitless.load_state(state.counters)
        self._evaluations.resume(state)
        self._telemetry.verifier.update(state.verifier)
        self._checkpointed = state.step

    def fork(self, checkpoint: Checkpoint) -> None:
        """Begin with the policy, the prompts' history and the compute of another run's checkpoint.

        Its unfinished batches are left behind: their prompts come first, sampled anew. With other prompts, or another
        mixture of them, the history is left behind too and their order starts anew. Another seed begins a new epoch.

        Raises:
            CheckpointError: the checkpoint is of another model.
            ConfigurationError: nothing of the budget is left behind the checkpoint.
        """
        state = run_state.from_checkpoint(checkpoint, self._recipe, fork=True)
        self._load(state)
        self._check_goes_on()
        same_prompts = self._order.fits(state.order)
        buffer = run_state.without_groups(state, from_the_first=not same_prompts)
        if same_prompts:
            self._order.fork(state.order, buffer.next_ordinal)
        else:
            self._to_tell.append("the training prompts or their mixture are not the parent's; their order starts anew")
        self._buffer.restore(buffer)
        self._evaluations.fork(state.step)

    def _check_goes_on(self) -> None:
        """Whoever forks a run that is at its end means to train it further, and forgot the budget."""
        budget, spent = self._recipe.budget, self._ledger.compute
        if spent >= budget.compute:
            raise ConfigurationError(
                f"budget.compute is {budget.compute:g} {budget.unit}, and {spent:g} were spent up to step "
                f"{self._step}, where the fork begins; raise it with --set budget.compute=..., or begin at an earlier "
                "checkpoint"
            )
        if self._step >= budget.max_steps:
            raise ConfigurationError(
                f"budget.max_steps is {budget.max_steps}, and the checkpoint is of step {self._step} already; raise it "
                "with --set budget.max_steps=..., or begin at an earlier checkpoint"
            )

    def account_for(self, spent: float) -> None:
        """See `Ledger.account_for`; before the run, and after `resume` or `fork`."""
        self._ledger.account_for(spent)

    def _load(self, state: run_state.RunState) -> None:
        self._workers.load_learner_state(state.learner)
        self._ledger.load_state(state.ledger)
        self._step = self._published = state.step

    def run(self) -> Outcome:
        """Train until the budget, the last step, a request to stop, or until there is nothing left to train on.

        Raises:
            TrainerError: the run cannot go on; its text is the reason. Checkpoints stay as they are.
        """
        for text in self._to_tell:
            self._notice(text)
        weights = self._workers.initial_weights()
        self._workers.offer(weights)
        self._telemetry.begin()
        ended = self._end()
        if ended is None:
            ended = self._start_work()  # before what is judged first, so that the learner has something to do then
        self._evaluations.begin(weights)
        while ended is None:
            stepped = self._collect()
            if stepped is not None:
                weights = stepped.weights
                self._after_step(stepped)
            if stepped is not None or not self._at_learner:
                ended = self._end(between_steps=stepped is None)
            if ended is None:
                ended = self._start_work()
        while self._at_learner:
            if (stepped := self._collect()) is not None:
                weights = stepped.weights
                self._after_step(stepped)
        return self._wind_up(weights, ended)

    def _start_work(self) -> Ending | None:
        """Start what may start; how the run ends where no more prompts come and no whole batch is left to learn from.

        Whether they come is asked anew each time, as a run that resumes asks: a batch that waited may show that its
        prompts are not solved so often after all.
        """
        exhausted = self._start_waves()
        while (batch := self._next_batch(exhausted)) is not None:
            self._telemetry.batch_taken()
            self._observe(batch)
            self._at_learner.append(batch)
            self._workers.start_step(batch.groups)
            exhausted = self._start_waves()  # now, and not when something has come back: the batch has left its place
        return ("succeeded", exhausted) if exhausted and not self._waves and not self._at_learner else None

    def _start_waves(self) -> str | None:
        """Start the waves that may start; why none will any more, where the prompts have run out."""
        while self._waves < self._workers.waves_in_flight:
            try:
                wave = self._buffer.admit(self._published)
            except PromptsExhausted as end:
                return str(end)
            if wave is None:
                break
            self._workers.start_wave(wave)
            self._waves += 1
        return None

    def _next_batch(self, exhausted: str | None) -> Batch | None:
        """What the learner may have now."""
        if self._at_learner and not self._may_send_ahead():
            return None
        return self._buffer.take(last=exhausted is not None and not self._waves)

    def _may_send_ahead(self) -> bool:
        """Whether the next batch may go to the learner while that is at one, so that it never waits for us.

        Not past a checkpoint, which wants a learner at rest, nor past the last step as far as that can be told. Where
        steps are long nothing is to be gained, and a request to stop would come through a step late.
        """
        under_way, budget = self._step + 1, self._recipe.budget
        if len(self._at_learner) >= self._workers.steps_in_flight or self._telemetry.step_seconds >= LONG_STEP_S:
            return False
        rests = under_way >= budget.max_steps or under_way % self._recipe.checkpoint.every_steps == 0
        return not rests and self._ledger.compute + 2 * self._telemetry.step_compute <= budget.compute

    def _observe(self, batch: Batch) -> None:
        for group in batch.all:
            self._order.observe(group.prompt.index, int(group.passed.sum()), len(group.passed))

    def _collect(self) -> StepResult | None:
        """Take in what has come back; the step's result if one is among it."""
        stepped = None
        for _, result in self._workers.wait(WAIT_S):
            if isinstance(result, WaveResult):
                self._waves -= 1
                self._buffer.add(result.groups)
                self._telemetry.wave(result)
                self._fruitless.count_groups(result.groups)
            elif isinstance(result, EvaluationResult):
                self._telemetry.evaluation(result)
                self._evaluations.report(result)
            elif isinstance(result, GeneratorLost):
                self._telemetry.lost(result)
                self._notice(result.reason)
            elif isinstance(result, Notice):
                self._notice(result.reason)
            else:
                stepped = result
        return stepped

    def _after_step(self, result: StepResult) -> None:
        """Count, tell, publish."""
        batch = self._at_learner.popleft()
        assert result.version == self._step + 1, (result.version, self._step)
        self._step = self._published = result.version
        self._workers.offer(result.weights)
        self._fruitless.count_step(result)
        self._report_step(result, batch)
        self._evaluations.judge_on_cadence(result.weights)
        if self._step % self._recipe.checkpoint.every_steps == 0:
            self._checkpoint()

    def _report_step(self, result: StepResult, batch: Batch) -> None:
        metrics = self._telemetry.step(result, batch)
        metrics |= self._fruitless.metrics()
        metrics["generation/waiting_groups"] = float(len(self._buffer.complete))
        metrics |= self._order.metrics()
        self._reporter.log(metrics, self._step, self._ledger.compute)
        self._reporter.message(f"reward {metrics['train/reward']:.3f}", self._step, self._ledger.compute)
        every = self._recipe.log_rollouts_every
        if every and self._step % every == 0 and self._text:
            self._reporter.rollouts(rollout_lines(batch, self._text), self._step, self._ledger.compute)

    def _notice(self, text: str) -> None:
        self._reporter.notice(text, self._step, self._ledger.compute)

    def _checkpoint(self) -> CheckpointError | None:
        """Write where the run stands. A disk that refuses costs this checkpoint, not the run; what it said."""
        if self._checkpointed == self._step:
            return None
        began, policy = time.perf_counter(), self._recipe.checkpoint
        files = run_state.to_files(self._state())
        try:
            written = checkpoints.write(
                self._checkpoints, self._step, files, policy.keep_last, policy.keep_every, self._reporter.held_steps
            )
        except CheckpointError as error:
            self._notice(str(error))
            return error
        self._checkpointed = self._step
        self._telemetry.checkpointed(time.perf_counter() - began)
        self._reporter.checkpoint(written, self._ledger.compute)
        return None

    def _state(self) -> run_state.RunState:
        return run_state.RunState(
            step=self._step,
            recipe=self._recipe,
            learner=self._workers.learner_state(),
            buffer=self._buffer.state(),
            order=self._order.state(),
            inputs=self._inputs,
            ledger=self._ledger.state(),
            counters=self._fruitless.state() | self._evaluations.counters(),
            verifier=dict(self._telemetry.verifier),
            evaluations=self._evaluations.state(self._step),
            offsets=self._reporter.offsets(),
        )

    def _end(self, between_steps: bool = False) -> Ending | None:
        """How the run ends, if it ends here. Between steps it can be long before `refill` has found a batch."""
        budget, dropped = self._recipe.budget, self._buffer.dropped
        if self._ledger.compute >= budget.compute:
            return "succeeded", f"budget of {budget.compute:g} {budget.unit} reached"
        if between_steps and dropped and self._telemetry.reached(dropped) >= budget.compute:
            return "succeeded", (
                f"budget of {budget.compute:g} {budget.unit} reached on the way to a batch: its last "
                f"{len(dropped)} prompts had no variance"
            )
        if self._step >= budget.max_steps:
            return "succeeded", f"{budget.max_steps} steps reached"
        if fruitless := self._fruitless.verdict():
            return "succeeded", fruitless
        reason = self._stop_reason() or self._reporter.stop_reason
        return ("stopped", reason) if reason else None

    def _wind_up(self, weights: WeightVersion, ended: Ending) -> Outcome:
        """Judge the last weights, write them down, and take in what is still being judged. A run that could not keep
        its last weights has failed, whatever it has measured."""
        self._evaluations.judge(weights)
        refused = self._checkpoint()
        while self._evaluations.under_way or self._waves:
            self._collect()
        self._ledger.charge("waste", generation_cost([*self._buffer.complete, *self._buffer.dropped]))
        self._reporter.log(self._ledger.metrics(), self._step, self._ledger.compute)
        if refused:
            raise CheckpointError(f"{refused}; the last weights are not kept: free the disk and start again") from None
        return Outcome(*ended, step=self._step, compute=self._ledger.compute)


def _buffer(recipe: Recipe, generators: int, order: PromptOrder) -> GroupBuffer:
    knobs, per_step = recipe.algorithm, recipe.batch.prompts_per_step
    return GroupBuffer(
        per_step,
        knobs.max_staleness,
        knobs.queue_batches,
        wave_size=-(-per_step // generators),
        scheme=knobs.off_policy,
        refill=knobs.zero_variance_filter == "refill",
        prompt_of=order.next,
    )


def _ledger(recipe: Recipe) -> Ledger:
    resources = recipe.resources
    share = resources.gpus / (resources.generators + resources.learners)
    return Ledger(recipe.budget.unit, share, resources.gpus, resources.learners)
