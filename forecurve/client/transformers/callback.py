"""The hooks of transformers' Trainer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_utils import PREFIX_CHECKPOINT_DIR

from forecurve.client.once import Once
from forecurve.client.run import Run

from . import beginning, checkpoints, evaluations
from .evaluations import PassRate, Reward
from .ranks import as_first
from .spending import Count, Spending

_AT_EPOCHS_END = "epoch"


class ForecurveCallback(TrainerCallback):  # type: ignore[misc]  # transformers' annotations are partial
    """Reports a training by transformers' Trainer, or TRL's GRPOTrainer or RLOOTrainer, as a run of yours.

        GRPOTrainer(..., callbacks=[ForecurveCallback(budget=200)])

    Evaluations, all numbers that are logged (`train/...`, `eval/...`) and checkpoints are reported; a request to stop
    ends the training after its step, with an evaluation and a checkpoint where these are made by steps. Nothing is
    raised into training: what goes wrong is warned of once. Only process 0 reports; all of them need the callback, for
    they stop together.

    Args:
        name: of the run; the `run_name` of the trainer's arguments by default, else the name of its output folder.
        reward: which logged number is the pass rate, from 0 to 1: its key, or a function of what an evaluation logs, as
            `lambda logs: (logs["eval_reward"] + 1) / 2` for rewards of -1 and 1. A key without `eval_`, as `reward`, is
            the mean over batches of training, for trainings without held-out prompts.
        prompts, samples: of an evaluation; the rows of the evaluated set, and TRL's `num_generations_eval`, by default.
        unit: of compute; GPU-hours, CPU-hours, GPU-seconds, CPU-seconds or steps.
        compute: what was spent so far, in `unit`: a function of the TrainerState, or the key of a logged number. By
            default the steps, or the wall time of training times `devices`, without evaluations, counted on over
            restarts by what the checkpoint says.
        devices: that the training holds; its processes times the GPUs of each by default. Add those of a vLLM server.
        run: a run that is reported for and not finished; by default the one that `forecurve.init` began in this
            process, and if there is none, one is begun with the training and finished with it.
        init: further arguments of `forecurve.init`: task, project, budget, url, token, directory, mode ... By default
            `resume` is `"auto"` for a training that goes on from a checkpoint, and none for one that begins at step 0.

    Raises:
        ClientError: a value is none that could be sent; unit and devices among them.
        TypeError: neither this nor `forecurve.init` has an argument of that name.
    """

    def __init__(
        self,
        name: str | None = None,
        *,
        reward: Reward = "eval_reward",
        prompts: int | None = None,
        samples: int | None = None,
        unit: str = "GPU-hours",
        compute: Count | None = None,
        devices: float | None = None,
        run: Run | None = None,
        **init: Any,
    ):
        self._options = init | {"unit": unit} | ({"name": name} if name is not None else {})
        beginning.check(self._options)
        self._once = Once()
        self._spending = Spending(unit, compute, devices, once=self._once)
        self._pass_rate = PassRate(reward, self._once)
        self._prompts, self._samples = prompts, samples
        self._given = run
        self._run: Run | None = None
        self._own = False
        self._evaluated = self._saved = -1  # the steps of the last

    @property
    def run(self) -> Run | None:
        """The run that is reported for; None before training begins, and in processes other than the first."""
        return self._run

    # hooks

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            self._once.guard(lambda: self._begin(args, state))

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        self._report(lambda run: self._note_step(run, state))
        if as_first(bool(self._run and self._run.should_stop), args.world_size):
            control.should_training_stop = True
            control.should_evaluate |= args.eval_strategy == "steps"  # by epochs it follows by itself
            control.should_save |= args.save_strategy not in ("no", _AT_EPOCHS_END)
        return control

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Any = None, eval_dataloader: Any = None, **_: Any
    ) -> None:
        self._report(lambda run: self._note_logs(run, args, state, evaluations.by_set(logs or {}), eval_dataloader))

    def on_evaluate(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._spending.evaluate()

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._report(lambda run: self._note_checkpoint(run, args, state))

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self._report(lambda run: self._end(run, state))

    # inside

    def _report(self, work: Callable[[Run], None]) -> None:
        run = self._run
        if run is not None and not run.finished:
            self._once.guard(lambda: work(run))

    def _begin(self, args: Any, state: Any) -> None:
        interrupted = self._run if self._own and self._run and not self._run.finished else None
        given = self._given or beginning.begun_by_user()
        self._own = given is None
        self._run = given or beginning.begin(self._options, args, state, interrupted)
        self._evaluated = self._saved = -1
        self._spending.start(args, state)
        if args.eval_strategy == "no" and not self._pass_rate.of_training:
            way_out = "give the trainer held-out prompts and eval_strategy='steps', or the callback reward='reward'"
            self._once.say("no-evaluations", f"nothing is evaluated, so no forecast can be made; {way_out}")

    def _note_step(self, run: Run, state: Any) -> None:
        self._pass_rate.say_missing()
        self._spending.train(state)
        compute = self._spending.at(state)
        if compute is not None:
            run.heartbeat(step=state.global_step, compute=compute)

    def _note_logs(self, run: Run, args: Any, state: Any, logs: evaluations.Logs, dataloader: Any) -> None:
        judged = evaluations.is_evaluation(logs)
        if judged:
            self._spending.evaluate()
        else:
            self._spending.train(state)
        self._spending.read(logs)
        compute = self._spending.at(state)
        run.log(evaluations.metrics(logs), step=state.global_step, compute=compute)
        reward = self._pass_rate.of(logs)
        if reward is None or compute is None or state.global_step == self._evaluated:
            return
        self._evaluated = state.global_step
        prompts, samples = evaluations.size(args, dataloader) if judged else (None, None)
        run.log_evaluation(
            step=state.global_step,
            compute=compute,
            reward=reward,
            prompts=self._prompts or prompts,
            samples=self._samples or samples,
        )

    def _note_checkpoint(self, run: Run, args: Any, state: Any) -> None:
        self._spending.train(state)
        step, compute = state.global_step, self._spending.at(state)
        found = checkpoints.found(Path(args.output_dir) / f"{PREFIX_CHECKPOINT_DIR}-{step}")
        if found is None or compute is None or step == self._saved:
            return
        self._saved = step
        run.log_checkpoint(
            step=step, compute=compute, path=found.path, digest=found.digest, size_bytes=found.size_bytes
        )

    def _end(self, run: Run, state: Any) -> None:
        self._pass_rate.say_missing()
        if not self._own:
            return
        if run.should_stop:
            run.finish("stopped", run.stop_reason)
        elif state.global_step < state.max_steps:
            run.finish("stopped", f"training ended at step {state.global_step} of {state.max_steps}")
        else:
            run.finish()
