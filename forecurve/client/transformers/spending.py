"""What a training has spent, in the unit of its run: time of its devices, steps, or what the user counts.

Time is that of training times devices, as in our own trainer: saving and waiting are paid for, evaluations are left
out, because judging a policy more often does not train it further. It counts on over restarts: it lies in the trainer's
state, which is written with each checkpoint, so that what was spent after the checkpoint and is done again counts once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from forecurve.client.errors import ClientError
from forecurve.client.once import Once
from forecurve.client.values import as_number
from forecurve.recipes import SECONDS_PER_UNIT

KEPT = "Forecurve"
"""The name in `TrainerState.stateful_callbacks`. It is not that of the callback: whatever lies under the name of one
makes transformers, asked to restore callbacks, put one of its own making in the place of the user's."""

Count = str | Callable[[Any], float]


class Spending:
    """Counts from `start` on.

    Args:
        unit: of the run's compute figures.
        count: a function of the TrainerState, or the name of a logged number; None: the steps, or the time of devices.
        devices: that the training holds; None: its processes, times the GPUs of each.
        once: where trouble is said.
        clock: seconds that never go back.

    Raises:
        ClientError: the unit is none, or `devices` no number of them.
    """

    def __init__(
        self,
        unit: str,
        count: Count | None,
        devices: float | None,
        *,
        once: Once,
        clock: Callable[[], float] = time.monotonic,
    ):
        if unit not in (*SECONDS_PER_UNIT, "steps"):
            raise ClientError(f"unit is {unit!r}; it is one of {', '.join((*SECONDS_PER_UNIT, 'steps'))}")
        if devices is not None and not (as_number(devices) or 0) > 0:
            raise ClientError(f"devices is {devices!r}; it must be the number of devices that the training holds")
        self._unit, self._count, self._given_devices = unit, count, devices
        self._once, self._clock = once, clock
        self._logged: float | None = None
        self._device_seconds = 0.0
        self._devices = 1.0
        self._mark = clock()

    def start(self, args: Any, state: Any) -> None:
        """Training begins, or goes on from the checkpoint that `state` is of."""
        self._devices = float(self._given_devices or args.world_size * max(1, args.n_gpu))
        self._device_seconds = _kept(state)
        self._logged = None if state.global_step else 0.0
        self._mark = self._clock()

    def train(self, state: Any) -> None:
        """The time since it was asked last went into training."""
        now = self._clock()
        self._device_seconds += (now - self._mark) * self._devices
        self._mark = now
        state.stateful_callbacks[KEPT] = {"args": {}, "attributes": {"device_seconds": self._device_seconds}}

    def evaluate(self) -> None:
        """The time since it was asked last went into an evaluation."""
        self._mark = self._clock()

    def read(self, logs: Mapping[str, Any]) -> None:
        """Take what the trainer logs, when the user named the number to go by."""
        if isinstance(self._count, str) and (number := as_number(logs.get(self._count))) is not None:
            self._logged = number

    def at(self, state: Any) -> float | None:
        """Compute so far in the run's unit; None, with a warning, where the user's way of counting gives none."""
        if self._count is None:
            is_steps = self._unit == "steps"
            return float(state.global_step) if is_steps else self._device_seconds / SECONDS_PER_UNIT[self._unit]
        return self._named(self._count) if isinstance(self._count, str) else self._computed(self._count, state)

    def _named(self, name: str) -> float | None:
        if self._logged is None:
            self._once.say(
                "compute", f"compute is {name!r}, which was not logged yet: what has no compute is in no curve"
            )
        return self._logged

    def _computed(self, count: Callable[[Any], float], state: Any) -> float | None:
        try:
            return float(count(state))
        except Exception as error:  # noqa: BLE001 - the user's function must not reach the training loop
            self._once.say(
                "compute", f"compute= failed ({type(error).__name__}: {error}): what has no compute is in no curve"
            )
            return None


def _kept(state: Any) -> float:
    kept = state.stateful_callbacks.get(KEPT, {})
    return as_number(kept.get("attributes", {}).get("device_seconds")) or 0.0
