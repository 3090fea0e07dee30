"""`/metrics`: how the service itself does, in the text format of Prometheus. The metrics of runs are another thing.

What lies in the database is counted when it is asked for; what a process answered is counted as it answers.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime, timedelta

from fastapi import APIRouter, Response
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import InstrumentedAttribute, Session
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from server.alerts.models import TEST, Alert, Delivery
from server.dependencies import DbSession, Now, Reader
from server.events.models import OutboxMessage
from server.forecasts.models import Recommendation
from server.runs.models import Run
from server.runs.service import count_runs
from server.runs.states import Status

PATH = "/metrics"
API = "/v1"
_METHODS = frozenset({"GET", "HEAD", "POST", "PATCH", "PUT", "DELETE", "OPTIONS"})
PROCESS = CollectorRegistry()
"""Of this process."""
ProcessCollector(registry=PROCESS)
PlatformCollector(registry=PROCESS)
_SECONDS = Histogram(
    "forecurve_http_request_seconds",
    "From a request to the first byte of its answer.",
    ["method", "route", "status"],
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
    registry=PROCESS,
)
router = APIRouter(include_in_schema=False)


@router.get(PATH)
def read_metrics(session: DbSession, _: Reader, now: Now) -> Response:
    return Response(stored(session, now) + generate_latest(PROCESS), media_type=CONTENT_TYPE_LATEST)


def stored(session: Session, now: datetime) -> bytes:
    """What the database knows: what there is by its state, and what waits, since when."""
    registry = CollectorRegistry()
    runs = dict.fromkeys(map(str, Status), 0) | count_runs(session)
    _by(registry, "runs", "Runs that are not archived.", "status", runs)
    alerts = {"WARN": 0, "ALERT": 0} | _counts(session, Alert.level, Alert.resolved_at.is_(None))
    _by(registry, "open_alerts", "Alerts that are not resolved.", "level", alerts)
    advice = dict.fromkeys(("stop", "continue", "scale", "undecided"), 0)
    advice |= _counts(session, Recommendation.action, Recommendation.status == "open")
    _by(registry, "open_recommendations", "Recommendations that wait for an answer.", "action", advice)
    _waiting(
        registry, session, now, "tasks", "Tasks that are due and not yet given to the broker", OutboxMessage.not_before,
        OutboxMessage.published_at.is_(None), OutboxMessage.not_before <= now,
    )  # fmt: skip
    _waiting(
        registry, session, now, "refits", "Runs with evaluations that no forecast has seen yet", Run.dirty_since,
        Run.dirty_at.is_not(None),
    )  # fmt: skip
    _waiting(
        registry, session, now, "deliveries", "Deliveries of alerts and news that are not over", Delivery.created_at,
        Delivery.status == "pending",
    )  # fmt: skip
    says = "Alerts and news that no channel took, within a day: they were given up."
    Gauge("forecurve_given_up_deliveries", says, registry=registry).set(_given_up(session, now))
    return generate_latest(registry)


def _given_up(session: Session, now: datetime) -> int:
    lately = Delivery.given_up_at > now - timedelta(days=1), Delivery.event != TEST
    return session.scalar(select(func.count()).where(*lately)) or 0


def _counts(session: Session, by: InstrumentedAttribute[str], *those: ColumnElement[bool]) -> dict[str, int]:
    return dict(session.execute(select(by, func.count()).where(*those).group_by(by)).all())


def _by(registry: CollectorRegistry, name: str, says: str, label: str, counts: Mapping[str, int]) -> None:
    """Each value of the label is there, at 0 too: a rule that asks for one is not to find nothing."""
    gauge = Gauge(f"forecurve_{name}", says, [label], registry=registry)
    for value, count in counts.items():
        gauge.labels(value).set(count)


def _waiting(
    registry: CollectorRegistry,
    session: Session,
    now: datetime,
    name: str,
    says: str,
    since: InstrumentedAttribute[datetime] | InstrumentedAttribute[datetime | None],
    *those: ColumnElement[bool],
) -> None:
    """How many there are, and how long the one that has waited longest has."""
    asked = select(func.count(since), func.min(since)).where(since.is_not(None), *those)
    count, oldest = session.execute(asked).one()
    Gauge(f"forecurve_waiting_{name}", f"{says}.", registry=registry).set(count)
    longest = Gauge(
        f"forecurve_waiting_{name}_oldest_seconds", f"{says}: how long the oldest has waited.", registry=registry
    )
    longest.set(max(0.0, (now - oldest).total_seconds()) if oldest is not None else 0.0)


def _route(scope: Scope) -> str:
    """The pattern that the path matched, whole: a room's own leaves out under which prefix it is mounted."""
    pattern = getattr(scope.get("route"), "path", None)
    if pattern is None:
        return "none"
    mounted = scope["path"].startswith(f"{API}/") and not pattern.startswith(API)
    return f"{API}{pattern}" if mounted else str(pattern)


class Timed:
    """ASGI middleware that times each answer, by the route's pattern and not by its path: ids would be without end."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()

        async def send_timed(message: Message) -> None:
            if message["type"] == "http.response.start":
                method = scope["method"] if scope["method"] in _METHODS else "other"  # anybody may send any word
                seconds = _SECONDS.labels(method, _route(scope), str(message["status"]))
                seconds.observe(time.perf_counter() - began)
            await send(message)

        await self.app(scope, receive, send_timed)
