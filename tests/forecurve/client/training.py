"""A tiny training by transformers' real Trainer: one weight, whose evaluations pass more rows the longer it learns."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path
from typing import Any

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import EvalPrediction

from forecurve.client.transformers import ForecurveCallback

HELD_OUT = 8
"""Rows of the held-out set: with a weight of w, the first 8 w of them pass."""


class Weight(torch.nn.Module):
    """Learns 1 from 0."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))

    def forward(self, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"loss": (self.weight - labels).pow(2).mean(), "logits": self.weight.expand(len(x), 1) - x[:, None]}


class At(TrainerCallback):  # type: ignore[misc]
    """Does something after a step."""

    def __init__(self, step: int, what: Any):
        self.step, self.what = step, what

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.global_step == self.step:
            self.what()


def rows(count: int) -> list[dict[str, Any]]:
    return [{"x": torch.tensor(i / count), "labels": torch.tensor(1.0)} for i in range(count)]


def passed(prediction: EvalPrediction) -> dict[str, float]:
    return {"reward": float((prediction.predictions > 0).mean())}


def trainer(folder: Path, *callbacks: TrainerCallback, **settings: Any) -> Trainer:
    """Ten steps, evaluated and saved after every other."""
    every: dict[str, Any] = {"max_steps": 10, "logging_steps": 2, "eval_steps": 2, "save_steps": 2}
    how: dict[str, Any] = {"eval_strategy": "steps", "eval_on_start": True, "learning_rate": 0.1, "use_cpu": True}
    silent: dict[str, Any] = {"report_to": "none", "disable_tqdm": True, "per_device_train_batch_size": 2}
    held_out = settings.pop("eval_dataset", rows(HELD_OUT))
    return Trainer(
        model=Weight(),
        args=TrainingArguments(output_dir=str(folder), **every | how | silent | settings),
        train_dataset=rows(64),
        eval_dataset=held_out,
        compute_metrics=passed,
        callbacks=list(callbacks),
    )


def main(folder: str, checkpoint: str, dies_at: str) -> None:
    """A training as a job of its own, which may be killed on its way."""
    torch.set_num_threads(1)
    callback = ForecurveCallback("killed", unit="CPU-seconds", budget=1000.0, devices=2)

    def die() -> None:
        assert callback.run is not None
        callback.run.flush()  # what was logged in the second before would be lost
        os.kill(os.getpid(), signal.SIGKILL)

    trainer(Path(folder), callback, At(int(dies_at), die)).train(resume_from_checkpoint=checkpoint or None)


if __name__ == "__main__":
    main(*sys.argv[1:])
