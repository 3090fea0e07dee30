"""What the trainer logs, read as an evaluation: which number is the pass rate, over how many prompts and samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from forecurve.client.once import Once
from forecurve.client.values import as_number

Logs = Mapping[str, Any]
Reward = str | Callable[[Logs], float]

_EVALUATION, _TIMING, _TRAINING = "eval_", "_runtime", "loss"


def is_evaluation(logs: Logs) -> bool:
    """Whether the trainer tells of an evaluation, not of training."""
    return any(key.startswith(_EVALUATION) for key in logs)


def by_set(logs: Logs) -> Logs:
    """With several held-out sets, each number under the name of its own: transformers writes `eval_maths_loss`, but TRL
    `eval_reward` of whichever set is judged."""
    prefix = next((key.removesuffix(_TIMING) for key in logs if _is_timing(key)), None)
    if prefix is None or f"{prefix}_" == _EVALUATION:
        return logs
    return {_of_set(prefix, key): value for key, value in logs.items()}


def metrics(logs: Logs) -> dict[str, float]:
    """The numbers among it, as a run's metrics: `train/loss`, `eval/reward`."""
    numbers = ((_metric(key), as_number(value)) for key, value in logs.items())
    return {name: number for name, number in numbers if number is not None}


class PassRate:
    """Finds the pass rate.

    Args:
        reward: the key of a logged number, or a function of what an evaluation logs. A key that does not begin with
            `eval_` is a number of training, such as `reward`.
        once: where trouble is said.
    """

    def __init__(self, reward: Reward, once: Once):
        self._reward, self._once = reward, once
        self._found = False
        self._seen: dict[str, None] = {}
        self._fault = ""

    @property
    def of_training(self) -> bool:
        """No held-out prompts are asked: the batches of training tell."""
        return isinstance(self._reward, str) and not self._reward.startswith(_EVALUATION)

    def of(self, logs: Logs) -> float | None:
        """The pass rate that `logs` tell; None when they tell none."""
        if not self._is_asked(logs):
            return None
        try:
            value = logs[self._reward] if isinstance(self._reward, str) else self._reward(logs)
        except Exception as error:  # noqa: BLE001 - the user's function must not reach the training loop
            self._miss(logs, error)
            return None
        self._found = True
        number = as_number(value)
        if number is None:
            self._once.say("no-reward", f"an evaluation is left out: its pass rate is {value!r}, which is no number")
        return number

    def say_missing(self) -> None:
        """Warn when nothing of what was logged was the pass rate. To be called when all held-out sets were judged: one
        of several may well lack it."""
        if self._seen and not self._found:
            text = f"no evaluation is reported, so no forecast can be made: {self._fault}. What is logged is "
            way_out = "name the pass rate among it with ForecurveCallback(reward=...)"
            self._once.say("reward", f"{text}{', '.join(self._seen)}; {way_out}")

    def _is_asked(self, logs: Logs) -> bool:
        """What a user logs besides has no pass rate, and what transformers logs has its loss or its timing."""
        if self.of_training:
            return self._reward in logs or (_TRAINING in logs and not is_evaluation(logs))
        return self._reward in logs or any(map(_is_timing, logs))

    def _miss(self, logs: Logs, error: Exception) -> None:
        self._seen |= dict.fromkeys(logs)
        is_key = isinstance(self._reward, str)
        self._fault = (
            f"{self._reward!r} is not there" if is_key else f"reward= failed ({type(error).__name__}: {error})"
        )


def size(args: Any, dataloader: Any) -> tuple[int | None, int | None]:
    """Prompts and samples of an evaluation, where they are known: the rows that are judged, and TRL's generations for
    each; one where the trainer has no generations."""
    generations = getattr(args, "num_generations_eval", None) or getattr(args, "num_generations", None) or 1
    try:
        return len(dataloader.dataset), int(generations)
    except (TypeError, AttributeError):  # rows that are streamed, or no rows at all
        return None, int(generations)


def _is_timing(key: str) -> bool:
    return key.startswith(_EVALUATION) and key.endswith(_TIMING)


def _of_set(prefix: str, key: str) -> str:
    foreign = key.startswith(_EVALUATION) and not key.startswith(f"{prefix}_")
    return f"{prefix}_{key.removeprefix(_EVALUATION)}" if foreign else key


def _metric(key: str) -> str:
    return f"eval/{key.removeprefix(_EVALUATION)}" if key.startswith(_EVALUATION) else f"train/{key}"
