"""The compute ledger: device-seconds by role, and the x-axis of every curve.

`compute` is the training compute on the way to the present weights: generation of the groups that were trained on,
and learning. Evaluation is measured and reported but is NOT on the x-axis: judging a policy more often does
not train it further. Neither is waste: groups that were generated and never trained on, and work that a resumed
attempt does again. A group's generation is charged when the group is trained on, so that the compute of a step does
not depend on how far the generator had run ahead.

CPU units count CPU time of the working threads. GPU units count what is reserved: wall time from step to step
times devices, less the time spent on evaluation; waiting is paid for. An evaluation is taken off when it has come back,
off the steps that end from then on: compute never falls, and not for the last evaluation either, whose time lies behind
the last step. `steps` counts optimiser steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from forecurve.limits import ComputeUnit
from forecurve.recipes import SECONDS_PER_UNIT
from trainer.types import Cost

Role = Literal["generator", "learner", "evaluation", "waste"]
ROLES: tuple[Role, ...] = ("generator", "learner", "evaluation", "waste")


def spent_in(metrics: Mapping[str, float]) -> float:
    """All device-seconds that `Ledger.metrics` tell of: used, wasted, idle."""
    return sum(metrics.get(f"ledger/{name}", 0.0) for name in (*ROLES, "idle"))


class Ledger:
    """Sums by role in device-seconds; `compute` in the recipe's unit.

    `role_devices` is how many devices each generator and each of the `learners` ranks holds (GPU units only).
    """

    def __init__(self, unit: ComputeUnit, role_devices: float = 1.0, devices: float = 1.0, learners: int = 1):
        self.unit = unit
        self._learners = learners
        self._role_devices = role_devices
        self._devices = devices
        self._seconds: dict[str, float] = dict.fromkeys(ROLES, 0.0)
        self._lost = 0.0  # by attempts that ended in the middle: waste, but none of the time reserved by this one
        self._reserved = 0.0
        self._not_off = 0.0  # of evaluation: what no step's reserved time could be lessened by yet
        self._steps = 0
        self.tokens = 0
        """Sampled on the way to the present weights, those of groups that were left out of their batch included."""

    @property
    def on_gpus(self) -> bool:
        """True when wall time of reserved devices counts."""
        return self.unit.startswith("GPU")

    @property
    def compute(self) -> float:
        """Training compute so far, in `unit`: the x-axis."""
        if self.unit == "steps":
            return float(self._steps)
        return self._training_seconds() / SECONDS_PER_UNIT[self.unit]

    def reached(self, generation: Cost, wall_seconds: float) -> float:
        """`compute` if a step of this generation ended now, `wall_seconds` after the one before."""
        if self.unit == "steps":
            return self.compute
        more = wall_seconds * self._devices if self.on_gpus else generation.cpu_seconds
        return self.compute + more / SECONDS_PER_UNIT[self.unit]

    def charge(self, role: Role, cost: Cost) -> None:
        """Work of one role."""
        devices = self._role_devices * (self._learners if role == "learner" else 1)
        seconds = cost.wall_seconds * devices if self.on_gpus else cost.cpu_seconds
        self._seconds[role] += seconds
        self._not_off += seconds if role == "evaluation" else 0.0

    def close_step(self, wall_seconds: float, tokens: int) -> None:
        """One optimiser step is done, `wall_seconds` after the one before; `tokens` were sampled for it."""
        self._steps += 1
        self.tokens += tokens
        reserved = wall_seconds * self._devices
        self._reserved += reserved
        self._not_off = max(0.0, self._not_off - reserved)

    def account_for(self, spent: float) -> None:
        """Device-seconds that were `spent` so far, all attempts together: what is not in here was lost with them."""
        self._lost += max(0.0, spent - spent_in(self.metrics()))

    def metrics(self) -> dict[str, float]:
        """Device-seconds by role, idle ones too where devices are reserved, and the x-axis."""
        values = {f"ledger/{role}": seconds for role, seconds in self._seconds.items()}
        values["ledger/waste"] += self._lost
        if self.on_gpus:
            values["ledger/idle"] = max(0.0, self._reserved + self._not_off - sum(self._seconds.values()))
        return values | {"ledger/compute": self.compute, "ledger/tokens": float(self.tokens)}

    def state(self) -> dict[str, float]:
        """For a checkpoint."""
        counted = {"steps": float(self._steps), "tokens": float(self.tokens)}
        return {**self._seconds, "lost": self._lost, "reserved": self._reserved, "not_off": self._not_off, **counted}

    def load_state(self, state: Mapping[str, float]) -> None:
        """From a checkpoint."""
        self._seconds = {role: state[role] for role in ROLES}
        self._lost, self._reserved, self._not_off = state["lost"], state["reserved"], state["not_off"]
        self._steps, self.tokens = int(state["steps"]), int(state["tokens"])

    def _training_seconds(self) -> float:
        if self.on_gpus:
            return self._reserved - (self._seconds["evaluation"] - self._not_off)
        return self._seconds["generator"] + self._seconds["learner"]
