"""Which forecasts were made of past runs: what one that asks for the nearest to a share of the budget needs of each.

A forecast is never changed, and one more moves its run's row: by the version of the run all of them are kept in memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from sqlalchemy import select
from sqlalchemy.orm import Session

from server.metrics.curve import Point

from .models import Forecast
from .past_runs import RUNS_KEPT, PastRun, Version
from .remembered import Remembered


@dataclass(frozen=True, slots=True)
class Made:
    """A forecast of a past run: the compute it was made at, the pass rate there (None of old ones), whether past runs
    were its prior, and how many of those were seeds of its arm."""

    id: str
    at_compute: float
    last: float | None
    informed: bool
    seeds: int


KEPT: Remembered[Version, tuple[Made, ...]] = Remembered(RUNS_KEPT)


def forecasts_made(session: Session, past: Sequence[PastRun]) -> dict[str, tuple[Made, ...]]:
    """All forecasts of each run, by run, the newest first."""

    def read(versions: Sequence[Version]) -> dict[Version, tuple[Made, ...]]:
        made = _read(session, [version.run_id for version in versions])
        return {version: tuple(made[version.run_id]) for version in versions}

    kept = KEPT.of((one.version for one in past), read)
    return {version.run_id: made for version, made in kept.items()}


def nearest(made: Sequence[Made], run: PastRun, share: float, *, informed: bool, with_seeds: bool) -> Made | None:
    """The one that was made nearest to this share of the run's budget, of two as near the newer; `with_seeds`: those
    that knew seeds of its arm count too. What was said of a branch that was thrown away is not asked."""
    alike = (one for one in made if one.informed == informed and (with_seeds or one.seeds == 0))
    alike = (one for one in alike if is_of(run.points, one.at_compute, one.last))
    return min(alike, key=lambda one: abs(one.at_compute / run.budget - share), default=None)


def is_of(points: Sequence[Point], at_compute: float, last: float | None) -> bool:
    """Whether a forecast is of this curve: the last evaluation that it had seen is on it. A later attempt, which
    resumed from before, may have measured anew what it was made of."""
    first = bisect_left(points, at_compute, key=lambda point: point.compute)
    there = takewhile(lambda point: point.compute == at_compute, points[first:])  # later steps may have cost nothing
    return any(last is None or point.reward == last for point in there)


def _read(session: Session, run_ids: Sequence[str]) -> dict[str, list[Made]]:
    prior = Forecast.summary["prior"]
    name, seeds, last = prior["name"].as_string(), prior["seeds"].as_integer(), Forecast.summary["last"].as_float()
    rows = session.execute(
        select(Forecast.run_id, Forecast.id, Forecast.at_compute, last, name.is_not(None), seeds)
        .where(Forecast.run_id.in_(run_ids))
        .order_by(Forecast.id.desc())
    )
    made: dict[str, list[Made]] = defaultdict(list)
    for run_id, id_, at_compute, rate, informed, known in rows:
        made[run_id].append(Made(id_, at_compute, rate, informed, known or 0))
    return made
