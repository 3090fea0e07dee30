"""Follows the demo's runs through the public API: the events since a cursor, and the runs they touch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from forecurve.client.api import Api
from forecurve.limits import OVER


@dataclass
class RunProgress:
    """One run as last seen."""

    view: dict[str, Any]
    evaluations: int = 0
    forecasts: int = 0
    alerts: int = 0
    _news: bool = True

    @property
    def id(self) -> str:
        return str(self.view["id"])

    @property
    def label(self) -> str:
        return str(self.view.get("arm") or self.view["name"])

    @property
    def status(self) -> str:
        return str(self.view["status"])

    @property
    def is_over(self) -> bool:
        return self.status in OVER

    def see(self, view: dict[str, Any]) -> None:
        self.view, self._news = view, True

    def take_news(self) -> bool:
        """True once after every change."""
        news, self._news = self._news, False
        return news


@dataclass
class Seen:
    """What one look found: state changes, forecasts, alerts."""

    states: list[tuple[RunProgress, str, str]] = field(default_factory=list)  # run, from, to
    forecasts: list[RunProgress] = field(default_factory=list)
    frozen: list[RunProgress] = field(default_factory=list)
    alerts: list[dict[str, Any]] = field(default_factory=list)


class Tracker:
    """Knows the runs by id; `look` reads what happened since the last look."""

    def __init__(self, api: Api, runs: list[dict[str, Any]], cursor: int):
        self._api = api
        self.runs = {run["id"]: RunProgress(run) for run in runs}
        self._cursor = cursor
        self._alerts: set[str] = set()

    @property
    def all_over(self) -> bool:
        return all(run.is_over for run in self.runs.values())

    def look(self) -> Seen:
        """Read the events since the last look, and the runs they touch."""
        seen, touched = Seen(), set()
        while True:
            page = self._api.events(self._cursor)
            for event in page["items"]:
                if event.get("run_id") in self.runs:
                    touched.add(event["run_id"])
                    self._note(self.runs[event["run_id"]], event, seen)
            self._cursor = page["cursor"]
            if not page["items"]:
                break
        for run_id in touched:
            self.runs[run_id].see(self._api.run(run_id))
        return seen

    def alerts_of(self, run_id: str) -> list[dict[str, Any]]:
        """Every alert of a run."""
        return list(self._api.alerts(run_id=run_id))

    def _note(self, run: RunProgress, event: dict[str, Any], seen: Seen) -> None:
        kind = event["kind"]
        if kind == "evaluation":
            run.evaluations += int(event["evidence"].get("evaluations", 1))  # one event a batch
        elif kind == "run.status":
            seen.states.append((run, str(event.get("from_state")), str(event.get("to_state"))))
        elif kind == "forecast":
            run.forecasts += 1
            seen.forecasts.append(run)
        elif kind == "forecast.frozen":
            seen.frozen.append(run)
        elif kind == "alert":
            run.alerts += event.get("from_state") is None  # else it is one that was raised
            seen.alerts += [alert for alert in self._api.alerts(run_id=run.id) if self._is_new(alert)]

    def _is_new(self, alert: dict[str, Any]) -> bool:
        key = f"{alert['id']} {alert['level']}"
        if key in self._alerts:
            return False
        self._alerts.add(key)
        return True
