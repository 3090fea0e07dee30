"""What a running service takes: points and evaluations a second, and how long an evaluation waits for its forecast.

    forecurve up --without-ray                      # in another terminal; it prints the address and the token
    FORECURVE_URL=... FORECURVE_TOKEN=... python benchmarks/load.py [--live 1 20 100] [--seconds S] [--every S] [--json]

Points: eight reporters, each with batches of 1,000 points one after another. Evaluations: fifty, each with batches of
one. Delay: so many live runs, each with an evaluation every ten seconds from its 20th on; of each evaluation the time
from the answer to its batch to the first forecast that has seen it. All runs are reported from this machine, whose
cores they share with the service, and are archived afterwards.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import common
import httpx
import numpy as np

UNIT, BUDGET = "GPU-hours", 400.0
FIRST = 20  # evaluations that a live run has when it is looked at

Row = dict[str, Any]


@dataclass
class Trainer:
    """A run that reports by itself, and what it has sent."""

    api: httpx.Client
    run_id: str
    token: str
    seq: int = 0
    answered: dict[int, float] = field(default_factory=dict)

    def send(self, evaluations: list[Row], points: list[Row]) -> None:
        self.seq += 1
        body = {"attempt": 1, "seq": self.seq, "evaluations": evaluations, "points": points}
        answer = self.api.post(f"/v1/runs/{self.run_id}/metrics", json=body, headers=_bearer(self.token))
        answer.raise_for_status()
        for evaluation in evaluations:
            self.answered[evaluation["step"]] = time.time()

    def end(self) -> None:
        outcome = {"attempt": 1, "outcome": "succeeded"}
        self.api.post(f"/v1/runs/{self.run_id}/outcome", json=outcome, headers=_bearer(self.token))


def main() -> None:
    """Run and print."""
    made = common.parser(__doc__)
    made.add_argument("--live", type=int, nargs="*", default=[1, 20, 100], help="runs that are live at once")
    made.add_argument("--seconds", type=float, default=60.0, help="of each part")
    made.add_argument("--every", type=float, default=10.0, help="seconds between two evaluations of a live run")
    asked = made.parse_args()
    headers = _bearer(os.environ["FORECURVE_TOKEN"])
    limits = httpx.Limits(max_connections=200, max_keepalive_connections=200)
    with httpx.Client(base_url=os.environ["FORECURVE_URL"], headers=headers, timeout=60, limits=limits) as api:
        found = {
            "points": throughput(api, 8, asked.seconds / 3, _thousand_points),
            "evaluations": throughput(api, 50, asked.seconds / 3, _one_evaluation),
            "delays": [delay(api, live, asked.seconds, asked.every) for live in asked.live],
        }
    if asked.json:
        common.answer(found)
        return
    print(f"points a second: {found['points']['a_second']:.0f}; evaluations: {found['evaluations']['a_second']:.0f}\n")
    columns = ("live runs", "evaluations", "delay: median", "90 %", "most", "not forecast")
    common.table(columns, ([row[name] for name in columns] for row in found["delays"]))


def throughput(
    api: httpx.Client, reporters: int, seconds: float, batch: Callable[[int], tuple[list[Row], list[Row]]]
) -> Row:
    """How much a second was taken of so many reporters, each as fast as it can."""
    trainers = [_start(api, number) for number in range(reporters)]
    until = time.monotonic() + seconds

    def report(trainer: Trainer) -> int:
        sent = 0
        while time.monotonic() < until:
            evaluations, points = batch(trainer.seq)
            trainer.send(evaluations, points)
            sent += len(evaluations) + len(points)
        return sent

    began = time.monotonic()
    with ThreadPoolExecutor(reporters) as pool:
        sent = sum(pool.map(report, trainers))
    took = time.monotonic() - began
    _put_away(trainers)
    return {"a_second": sent / took, "batches_a_second": sum(trainer.seq for trainer in trainers) / took}


def delay(api: httpx.Client, live: int, seconds: float, every: float) -> Row:
    """How long evaluations of so many live runs waited for the first forecast that has seen them."""
    trainers = [_start(api, number) for number in range(live)]
    for trainer in trainers:
        trainer.send([_evaluation(step) for step in range(1, FIRST)], [])
    until = time.monotonic() + seconds

    def report(trainer: Trainer) -> None:
        step = FIRST
        time.sleep(random.random() * every)  # they do not report all at once
        while time.monotonic() < until:
            trainer.send([_evaluation(step)], [])
            step += 1
            time.sleep(every)

    with ThreadPoolExecutor(live) as pool:
        list(pool.map(report, trainers))
    time.sleep(every)
    waited = [wait for trainer in trainers for wait in _waits(trainer)]
    _put_away(trainers)
    known = np.array([wait for wait in waited if wait is not None])
    shares = [f"{value:.1f} s" for value in np.quantile(known, (0.5, 0.9, 1.0))] if known.size else ["-"] * 3
    figures = dict(zip(("delay: median", "90 %", "most"), shares, strict=True))
    return {"live runs": live, "evaluations": len(waited), **figures, "not forecast": len(waited) - known.size}


def _waits(trainer: Trainer) -> Iterator[float | None]:
    """Of each evaluation from the FIRST on; None where no forecast has seen it."""
    made = trainer.api.get(f"/v1/runs/{trainer.run_id}/forecasts", params={"limit": 1000}).json()["items"]
    told = sorted((datetime.fromisoformat(each["created_at"]).timestamp(), each["at_step"]) for each in made)
    for step, answered in trainer.answered.items():
        if step >= FIRST:
            seen = next((time for time, at in told if at >= step), None)
            yield None if seen is None else max(seen - answered, 0.0)


def _start(api: httpx.Client, number: int) -> Trainer:
    body = {"executor": "external", "name": f"load {number}", "compute_unit": UNIT, "budget_compute": BUDGET}
    run = api.post("/v1/runs", json=body).raise_for_status().json()
    return Trainer(api, run["id"], run["ingest_token"])


def _put_away(trainers: list[Trainer]) -> None:
    for trainer in trainers:
        trainer.end()
    time.sleep(10)  # the reconciler ends them
    for trainer in trainers:
        trainer.api.post(f"/v1/runs/{trainer.run_id}:archive")


def _evaluation(step: int) -> Row:
    rate = 0.2 + 0.5 / (1 + (60 / step) ** 1.5)
    reward = float(np.random.default_rng(step).binomial(1024, rate)) / 1024
    return {"step": step, "compute": float(step), "reward": reward, "prompts": 256, "samples": 4}


def _one_evaluation(seq: int) -> tuple[list[Row], list[Row]]:
    return [_evaluation(seq + 1)], []


def _thousand_points(seq: int) -> tuple[list[Row], list[Row]]:
    steps = range(seq * 100, seq * 100 + 100)
    return [], [
        {"metric": f"m{m}", "step": step, "compute": float(step), "value": 0.5} for m in range(10) for step in steps
    ]


def _bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


if __name__ == "__main__":
    main()
