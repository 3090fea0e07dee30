"""What is told that is no alert: advice, and that a run or a sweep is over; put into words when it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.orm import Session

from forecurve.science.wording import compute_text
from server.alerts.models import ADVICE, RUN_OVER, SWEEP_OVER, Delivery
from server.forecasts.models import Recommendation
from server.runs.models import Run
from server.runs.schemas import RunView
from server.runs.views import run_view
from server.sweeps.models import Sweep
from server.sweeps.service import sweep_outline, sweep_summaries

from .forms import Told
from .messages import interval, run_in_short

_ENDED = {"succeeded": "has succeeded", "stopped": "was stopped", "failed": "failed"}


@dataclass(frozen=True)
class News:
    """In words; as a webhook's type and data; and what the event of its delivery's end is about."""

    told: Told
    type: str
    data: dict[str, Any]
    about: dict[str, Any]

    def webhook_body(self, now: datetime) -> dict[str, Any]:
        """As that of an alert."""
        data = {**self.data, "text": self.told.text, "url": self.told.link[1]}
        return {"type": self.type, "timestamp": now.isoformat(), "data": data}


def news_of(session: Session, delivery: Delivery, now: datetime, *, public_url: str) -> News:
    """What the delivery tells, by what is known now."""
    base = public_url.rstrip("/")
    if delivery.event == ADVICE:
        return _advice(session, session.get_one(Recommendation, delivery.recommendation_id), base)
    if delivery.event == RUN_OVER:
        return _end_of_run(session, session.get_one(Run, delivery.run_id), base)
    return _end_of_sweep(session, session.get_one(Sweep, delivery.sweep_id), base, now)


def _advice(session: Session, advice: Recommendation, base: str) -> News:
    run = session.get_one(Run, advice.run_id)
    view = run_view(session, run)
    told = Told(
        title=f"Advice: {advice.action} {run.name}",
        text=advice.reason,
        link=("Open the run", f"{base}/runs/{run.id}"),
        about=advice.id,
        thread=run.id,
        figures=_figures(view),
    )
    said = {name: getattr(advice, name) for name in ("id", "action", "reason", "status", "numbers")}
    data = {"recommendation": said, "run": run_in_short(run), **_numbers(view)}
    return News(told, f"advice.{advice.action}", data, _about(run))


def _end_of_run(session: Session, run: Run, base: str) -> News:
    view = run_view(session, run)
    told = Told(
        title=f"{run.name} {_ENDED[run.status]}",
        text="\n".join(part for part in (view.sentence, run.reason if run.status == "failed" else None) if part),
        link=("Open the run", f"{base}/runs/{run.id}"),
        about=run.id,
        thread=run.id,
        figures=_figures(view),
    )
    return News(told, RUN_OVER, {"run": run_in_short(run), **_numbers(view)}, _about(run))


def _end_of_sweep(session: Session, sweep: Sweep, base: str, now: datetime) -> News:
    outline = sweep_outline(session, sweep, now)
    (summary,) = sweep_summaries(session, [sweep])
    told = Told(
        title=f"Sweep {sweep.name} is over",
        text=outline.sentence,
        link=("Open the sweep", f"{base}/sweeps/{sweep.id}"),
        about=sweep.id,
        thread=sweep.id,
        figures=[("Runs", ", ".join(f"{count} {status}" for status, count in summary.statuses.items()))],
    )
    said = {"id": sweep.id, "name": sweep.name, "statuses": summary.statuses}
    return News(told, SWEEP_OVER, {"sweep": said}, {"sweep_id": sweep.id})


def _figures(view: RunView) -> Sequence[tuple[str, str]]:
    figures = [("Run", view.name)]
    if view.arm:
        figures.append(("Arm", view.arm))
    if view.last_reward is not None:
        figures.append(("Pass rate", f"{view.last_reward:.2f}"))
    if view.ceiling is not None and view.ceiling_known:
        figures.append(("Ceiling", interval(view.ceiling.model_dump())))
    if view.ending is not None:
        figures.append(("Expected to end at", interval(view.ending.model_dump())))
    if view.last_compute is not None:
        figures.append(("Spent", f"{compute_text(view.last_compute)} {view.compute_unit}"))
    return figures


def _numbers(view: RunView) -> dict[str, Any]:
    of = {"ceiling": view.ceiling, "ending": view.ending}
    return {"pass_rate": view.last_reward, **{name: one and one.model_dump() for name, one in of.items()}}


def _about(run: Run) -> dict[str, Any]:
    return {"run_id": run.id, "sweep_id": run.sweep_id}
