"""Rows for the pages' tests: runs whose evaluations follow a known sigmoid, and forecasts that say so.

The forecasts are written, not fitted: what a page shows must not depend on how the science room fits.
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from statistics import NormalDist
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from forecurve.recipes import SCALERL, Recipe, with_changes
from server.alerts.models import Alert, Channel, Delivery
from server.checkpoints.models import Checkpoint
from server.events.service import record
from server.forecasts.models import Forecast, Recommendation
from server.metrics.models import Evaluation
from server.recipes.service import store_all
from server.runs.models import Attempt, Run
from server.sweeps.models import Sweep, SweepComparison
from tests.server.forecasts.seeds import ends_like

UNIT = "CPU-seconds"
BUDGET = 60.0
PROMPTS, SAMPLES = 256, 4


@dataclass(frozen=True)
class Truth:
    """A sigmoid compute-performance curve; compute in UNIT."""

    A: float = 0.78
    B: float = 1.3
    C_mid: float = 9.0
    R0: float = 0.2

    def __call__(self, compute: float) -> float:
        return self.R0 if compute <= 0 else self.R0 + (self.A - self.R0) / (1 + (self.C_mid / compute) ** self.B)


def add_sweep(session: Session, name: str = "loo-scalerl", *, now: datetime) -> Sweep:
    design = {"kind": "leave_one_out", "seeds": [0]}
    sweep = Sweep(
        name=name, base_recipe_id=_stored(session, SCALERL), design=design, plan_hash="0" * 64, created_at=now
    )
    session.add(sweep)
    session.flush()
    return sweep


def add_run(
    session: Session,
    *,
    now: datetime,
    name: str = "control",
    sweep: Sweep | None = None,
    changes: dict[str, Any] | None = None,
    status: str = "running",
    budget: float | None = BUDGET,
) -> Run:
    changes = changes or {}
    over = status in ("stopped", "succeeded", "failed")
    run = Run(
        name=name,
        sweep_id=sweep.id if sweep else None,
        recipe_id=_stored(session, with_changes(SCALERL, changes)),
        arm=name if sweep else None,
        changes=changes,
        is_control=not changes,
        seed=0,
        executor="ray",
        compute_unit=UNIT,
        budget_compute=budget,
        status=status,
        attempt=0 if status == "queued" else 1,
        created_at=now,
        started_at=None if status == "queued" else now,
        finished_at=now if over else None,
        updated_at=now,
    )
    session.add(run)
    session.flush()
    if status != "queued":
        attempt = Attempt(run_id=run.id, number=1, external_ref=f"{run.id}-a1", observed=status, started_at=now)
        attempt.last_heartbeat_at = now
        session.add(attempt)
        record(
            session,
            "run.status",
            actor="reconciler",
            run_id=run.id,
            sweep_id=run.sweep_id,
            from_state="queued",
            to_state="launching",
        )
        record(
            session,
            "run.status",
            actor="trainer",
            run_id=run.id,
            sweep_id=run.sweep_id,
            from_state="launching",
            to_state="running",
        )
    return run


def add_evaluations(
    session: Session,
    run: Run,
    truth: Truth,
    *,
    until: float,
    now: datetime,
    every: float = 2.0,
    seed: int = 0,
    fall_at: float | None = None,
    after: float | None = None,
) -> None:
    """Evaluations at compute 0, every, 2 every, ... `until`, or those beyond `after`; from `fall_at` on the pass rate
    halves again and again."""
    noise = random.Random(seed)
    count = int(until / every)
    first = 0 if after is None else int(after / every) + 1
    for index in range(first, count + 1):
        compute = index * every
        rate = truth(compute)
        if fall_at is not None and compute > fall_at:
            rate *= 0.5 ** ((compute - fall_at) / (4 * every))
        variance = rate * (1 - rate) / (PROMPTS * SAMPLES)
        reward = min(1.0, max(0.0, noise.gauss(rate, math.sqrt(variance))))
        time = now + timedelta(seconds=compute)
        session.add(
            Evaluation(
                run_id=run.id,
                attempt=1,
                step=index * 10,
                compute=compute,
                reward=reward,
                prompts=PROMPTS,
                samples=SAMPLES,
                variance=variance,
                time=time,
            )
        )
        run.last_step, run.last_compute, run.last_reward = index * 10, compute, reward
    run.updated_at = now + timedelta(seconds=until)
    session.flush()


def add_forecast(
    session: Session,
    run: Run,
    truth: Truth,
    *,
    at: float,
    now: datetime,
    action: str = "continue",
    misfit: str | None = None,
    past_runs: int = 0,
) -> Forecast:
    """What a fit of the evaluations up to `at` would say: the truth, less sure the earlier and the further out.

    A `misfit` withholds it. From `past_runs` the interval of the end is scaled by a factor of 1.5.
    """
    doubt = 0.012 + 0.06 / (1 + at / 6)
    grid = [1.0 * (BUDGET * 1.4 / 1.0) ** (k / 79) for k in range(80)]
    median = [truth(c) for c in grid]
    half = [doubt * (0.4 + max(0.0, math.log(c / at))) for c in grid]

    def shifted(times: float) -> list[float]:
        return [min(1.0, max(0.0, m + times * h)) for m, h in zip(median, half, strict=True)]

    band = {
        "compute": grid,
        "median": median,
        "lower50": shifted(-0.5),
        "upper50": shifted(0.5),
        "lower90": shifted(-1.2),
        "upper90": shifted(1.2),
    }
    end = truth(BUDGET)
    reason = f"{BUDGET - at:.0f} more {UNIT} would buy about {end - truth(at):+.2f}."
    summary = {
        "A": _estimate(truth.A, 1.5 * doubt),
        "B": _estimate(truth.B, 4 * doubt),
        "C_mid": _estimate(truth.C_mid, 25 * doubt),
        "R0": _estimate(truth.R0, 0.008),
        "identified": {"A": max(0.1, 1 - 8 * doubt), "B": 0.9, "C_mid": 0.95},
        "ceiling_known": 1 - 8 * doubt >= 0.75,
        "ceiling_quantiles": _quantiles(truth.A, 1.5 * doubt),
        "headroom": _estimate(truth.A - truth(at), min(1.5 * doubt, truth.A - truth(at))),
        "prior": None,
        "misfit": misfit,
        "at_budget": None
        if misfit
        else {
            "compute": BUDGET,
            "curve": _estimate(end, 1.1 * doubt),
            "evaluation": _estimate(end, 1.1 * doubt + 0.015),
            "ending": _estimate(end, doubt),
            "calibrated": _estimate(end, doubt * (1.5 if past_runs else 1.0)),
            "conformal": {
                "calibration": f"conformal ({past_runs} past runs)" if past_runs else "posterior",
                "shift": 0.0,
                "factor": 1.5 if past_runs else 1.0,
                "runs": past_runs,
            },
        },
        "milestones": [] if misfit else [_milestone(truth, at, step) for step in (1, 2)],
        "advice": {"action": action, "reason": reason},
        "ends_ahead": ends_like(band),
    }
    low, high = truth.A - 1.5 * doubt, truth.A + 1.5 * doubt
    share = (truth(at) - truth.R0) / (truth.A - truth.R0)
    sentence = f"Ceiling {truth.A:.2f} (90 %: {low:.2f} to {high:.2f}), {share:.0%} of the way there; {reason}"
    if misfit:
        sentence = f"A {misfit}: no ceiling can be read from this curve. The forecast is withheld."
    forecast = Forecast(
        run_id=run.id,
        created_at=now + timedelta(seconds=at),
        at_compute=at,
        at_step=int(at * 5),
        points=int(at / 2) + 1,
        unit=UNIT,
        summary=summary,
        band=band,
        state={},
        sentence=sentence,
        seconds=0.02,
    )
    session.add(forecast)
    session.flush()
    run.forecast_id = forecast.id
    record(session, "forecast", actor="refit", run_id=run.id, sweep_id=run.sweep_id, forecast=forecast.id)
    return forecast


def _milestone(truth: Truth, at: float, step: int) -> dict[str, float | None]:
    """Of a level so many hundredths above the curve; the second one may never be reached."""
    target = math.floor(100 * truth(at) + step) / 100
    odds = max((target - truth.R0) / max(truth.A - target, 1e-9), 1e-9)
    when = truth.C_mid * odds ** (1 / truth.B)
    surely = step == 1
    return {
        "target": target,
        "median": when,
        "lower": 0.9 * when,
        "upper": 1.2 * when if surely else None,
        "p_never": 0.0 if surely else 0.1,
        "p_by_budget": 0.97 if surely else 0.6,
    }


def add_comparison(session: Session, sweep: Sweep, arm: str, *, now: datetime, **verdict_of_it: Any) -> SweepComparison:
    """What the worker would write of one arm whose ceiling is lower than the control's, unless it is said otherwise."""
    verdict = {
        "arm": arm,
        "seeds": 1,
        "left_out": [],
        "verdict": "ceiling",
        "direction": "down",
        "difference": _estimate(-0.16, 0.04),
        "simultaneous": [-0.21, -0.11],
        "certainty": 0.97,
        "p_same": 0.001,
        "multiplier": {"level": 0.49, "median": 0.92, "lower": 0.8, "upper": 1.05, "certainty": 0.4},
        "seeds_needed": None,
        "run_to": None,
        "would_decide": None,
        "seed_note": "single seed, seed sd assumed to be about 0.0125",
        "reason": f"{arm}: ceiling lower, -0.16 (90 %: -0.20 to -0.12).",
    } | verdict_of_it
    result = {
        "control": "control",
        "control_seeds": 1,
        "control_left_out": [],
        "arms": [verdict],
        "rope": 0.02,
        "level": 0.95,
        "unit": UNIT,
        "seed_spread": {"sd": 0.0125, "dof": 6.0, "past": 0},
        "replicates": 0,
        "seed_note": "seed sd assumed to be about 0.0125",
        "control_advice": None,
        "ranking": {
            "horizon": BUDGET,
            "arms": [_rank("control", 0.73, 0.984), _rank(arm, 0.57, 0.016)],
            "sentence": f"Best at {BUDGET:.0f} {UNIT}: control (98 % sure). Dominated: {arm}.",
        },
        "sentence": f"Against control: ceiling down: {arm} (-0.16).",
    }
    row = SweepComparison(sweep_id=sweep.id, compared_at=now, seconds=0.2, result=result)
    session.add(row)
    session.flush()
    return row


def add_allocation(
    session: Session,
    sweep: Sweep,
    *,
    now: datetime,
    budget: float = 120.0,
    goes: Mapping[str, float],
    dropped: Sequence[str] = (),
    **said: Any,
) -> SweepComparison:
    """What the worker would write of runs that share compute: those in `goes`, by their names, train on to there, the
    first of them is the likeliest best, and the others are held. Runs without an evaluation are not compared."""
    sweep.policy, sweep.budget_compute = "allocate", budget
    runs = session.scalars(select(Run).where(Run.sweep_id == sweep.id).order_by(Run.id)).all()
    compared = sorted((run for run in runs if run.last_compute), key=lambda run: [*goes, run.name].index(run.name))
    for run in compared:
        run.allocated, run.goes_to = True, goes.get(run.name)
        run.status, run.desired_state = ("running", "run") if run.name in goes else ("paused", "pause")
    found = {
        "horizon": BUDGET,
        "choice": compared[0].id if compared else None,
        "settled": False,
        "expected_regret": 0.004,
        "over": None,
        "runs": [
            {
                "run_id": run.id,
                "end": _estimate(0.73 - 0.05 * place, 0.03),
                "p_best": 0.9 / 3**place,
                "dominated": run.name in dropped,
                "reason": "it may pass the others" if run.name in goes else None,
            }
            for place, run in enumerate(compared)
        ],
        "sentence": f"{compared[0].name} ends highest at {BUDGET:.0f} {UNIT} with 90 %." if compared else "None yet.",
        "planned_at": now.isoformat(),
    } | said
    row = session.get(SweepComparison, sweep.id) or SweepComparison(sweep_id=sweep.id, compared_at=now, seconds=0.2)
    row.allocation = found
    session.add(row)
    session.flush()
    return row


def _rank(arm: str, end: float, p_best: float) -> dict[str, Any]:
    within = p_best + 0.01
    return {
        "arm": arm,
        "runs": 1,
        "end": _estimate(end, 0.02),
        "p_best": p_best,
        "fallen": 0,
        "p_within_delta": within,
        "dominated": within < 0.05,
    }


def add_recommendation(session: Session, run: Run, forecast: Forecast) -> Recommendation:
    said = forecast.summary["advice"]
    numbers = {"gain_at_budget": 0.031, "compute_left": 19.0, "ceiling": forecast.summary["A"]}
    advice = Recommendation(
        run_id=run.id, forecast_id=forecast.id, action=said["action"], reason=said["reason"], numbers=numbers
    )
    session.add(advice)
    session.flush()
    return advice


def add_alert(session: Session, run: Run, *, since: float, at: float, now: datetime, delivered: bool = True) -> Alert:
    now_at = f"{run.last_reward:.2f} at {at:.0f} {UNIT}"
    text = f"{now_at}, where 0.66 (90 %: 0.63 to 0.70) was forecast; below it since {since:.0f} {UNIT}."
    alert = Alert(
        run_id=run.id,
        kind="below_forecast",
        level="ALERT",
        title=f"{run.name} fell below its forecast",
        text=text,
        since_compute=since,
        at_compute=at,
        evidence={},
        opened_at=now,
    )
    session.add(alert)
    session.flush()
    if delivered:
        channel = Channel(
            name="#rl-alerts", kind="slack", url="https://hooks.example.com/services/x", secret="whsec_eA=="
        )
        session.add(channel)
        session.flush()
        session.add(
            Delivery(
                alert_id=alert.id,
                channel_id=channel.id,
                level="ALERT",
                status="delivered",
                tries=1,
                response_status=200,
            )
        )
    record(session, "alert", actor="refit", run_id=run.id, sweep_id=run.sweep_id, alert=alert.id)
    session.flush()
    return alert


def add_checkpoint(session: Session, run: Run, *, step: int, compute: float, now: datetime) -> None:
    session.add(
        Checkpoint(
            run_id=run.id,
            attempt=1,
            step=step,
            compute=compute,
            path=f"runs/{run.id}/step-{step}",
            digest=f"{step:064x}",
            size_bytes=427_113,
            created_at=now,
        )
    )


def _stored(session: Session, recipe: Recipe) -> str:
    """The id of the recipe's row: content is stored once."""
    return store_all(session, [recipe])[recipe.digest, recipe.name]


def _quantiles(median: float, half: float) -> dict[str, list[float]]:
    """Of a normal posterior with this median and half a 90 % interval."""
    shares = [0.005, 0.025, *(at / 100 for at in range(5, 100, 5)), 0.975, 0.995]
    normal = NormalDist(median, half / 1.645)
    return {"probabilities": shares, "values": [normal.inv_cdf(share) for share in shares]}


def _estimate(median: float, half: float) -> dict[str, float]:
    return {"median": median, "lower": median - half, "upper": median + half}
