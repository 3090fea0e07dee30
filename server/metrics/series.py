"""A metric of a run as a curve over compute: what training logged beside the evaluations, at most so many points of it.

A metric may be logged at every step, and without its compute. Then neighbours are averaged, and the compute of a step
is read between the evaluations of the same run, whose compute is known.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from sqlalchemy import exists, select, text
from sqlalchemy.orm import Session

from forecurve.limits import MAX_STEP
from forecurve.spent import spent_at
from server.checkpoints.models import Checkpoint
from server.runs.models import Run

from .curve import INHERITED, Point, validation_curves
from .models import Evaluation

_ANY_ATTEMPT = 2**31 - 1


@dataclass
class Series:
    """One metric of one run, by rising step; `reward` of a point is the metric's own value, or the mean of neighbours.

    Attributes:
        logged: finite values that stand, each step once, by the newest attempt.
        lost: how many of them are left out because nobody says how much compute they took.
        least, greatest: of the others.
    """

    points: list[Point] = field(default_factory=list)
    logged: int = 0
    lost: int = 0
    least: float = np.inf
    greatest: float = -np.inf

    @property
    def is_thinned(self) -> bool:
        """Whether points are means."""
        return self.logged - self.lost > len(self.points)

    def after(self, beginning: Series) -> Series:
        """This series behind what it goes on from."""
        return Series(
            points=[replace(point, attempt=INHERITED) for point in beginning.points] + self.points,
            logged=beginning.logged + self.logged,
            lost=beginning.lost + self.lost,
            least=min(beginning.least, self.least),
            greatest=max(beginning.greatest, self.greatest),
        )


class _Part(NamedTuple):
    """What a run has up to a checkpoint, by what was known then; all of it without limits."""

    run_id: str
    attempt: int = _ANY_ATTEMPT
    step: int = MAX_STEP


def series_of(session: Session, run_ids: Iterable[str], metric: str, most: int) -> dict[str, Series]:
    """The series of one metric of many runs, each in `most` points at most; an empty one where there is none.

    That of a fork whose curve begins with its parent's begins with its parent's too, with as many points more.
    """
    wanted = [_Part(run_id) for run_id in dict.fromkeys(run_ids)]
    parents = _parents(session, [part.run_id for part in wanted])
    chains = {part.run_id: _chain(part, parents) for part in wanted}
    found = _read(session, {part for chain in chains.values() for part in chain}, metric, most)
    whole: dict[str, Series] = {}
    for run_id, chain in chains.items():
        whole[run_id] = found[chain[0]]
        for part in chain[1:]:
            whole[run_id] = found[part].after(whole[run_id])
    return whole


def _parents(session: Session, run_ids: Sequence[str]) -> dict[str, _Part]:
    """Of each run that goes on with its parent's curve, and of those that these go on from, where it began."""
    found: dict[str, _Part] = {}
    asked = list(run_ids)
    while asked:
        goes_on = exists().where(Evaluation.run_id == Run.id, Evaluation.attempt == INHERITED)
        begun = select(Run.id, Checkpoint.run_id, Checkpoint.attempt, Checkpoint.step).where(Run.id.in_(asked), goes_on)
        rows = session.execute(begun.join(Checkpoint, Checkpoint.id == Run.parent_checkpoint_id)).all()
        new = {fork: _Part(of, attempt, step) for fork, of, attempt, step in rows if fork not in found}
        found |= new
        asked = [part.run_id for part in new.values()]
    return found


def _chain(part: _Part, parents: dict[str, _Part]) -> list[_Part]:
    """The parts of a curve, the oldest first."""
    chain = [part]
    while (parent := parents.get(chain[0].run_id)) is not None:
        chain.insert(0, parent)
    return chain


def _read(session: Session, parts: Iterable[_Part], metric: str, most: int) -> dict[_Part, Series]:
    asked = list(parts)
    runs, attempts, steps = (list(column) for column in zip(*asked, strict=True)) if asked else ([], [], [])
    limits = {"runs": runs, "attempts": attempts, "steps": steps, "metric": metric, "most": most}
    rows: dict[int, list[Any]] = defaultdict(list)
    for row in session.execute(_POINTS, limits):
        rows[row.place].append(row)
    unknown = {asked[place].run_id for place, mine in rows.items() if any(row.compute is None for row in mine)}
    evaluated = validation_curves(session, unknown)
    return {part: _series(rows[at], evaluated.get(part.run_id, ())) for at, part in enumerate(asked)}


def _series(rows: Sequence[Any], evaluated: Sequence[Point]) -> Series:
    steps, spent = [point.step for point in evaluated], [point.compute for point in evaluated]
    series = Series(logged=sum(row.logged for row in rows))
    for row in rows:
        compute = row.compute
        if compute is None and row.middle is not None:
            compute = spent_at(row.middle, steps, spent)
        if compute is None:
            series.lost += row.logged
            continue
        value = min(max(row.value, row.least), row.greatest)  # a mean is rounded, and may lie beyond what it is of
        series.points.append(
            Point(row.step, row.attempt, compute, value, prompts=None, samples=None, variance=None, time=row.time)
        )
        series.least, series.greatest = min(series.least, row.least), max(series.greatest, row.greatest)
    return series


_POINTS = text("""
    -- An attempt counts up to where a later one began, by this metric or by its evaluations. Values beyond 1e150 are
    -- clipped, for avg() squares what it is given and fails beyond the largest number. What nobody says the compute of
    -- has no bucket: it is told apart before neighbours are averaged.
    WITH asked AS (
      SELECT place - 1 AS place, run_id, attempt, step
      FROM unnest(CAST(:runs AS text[]), CAST(:attempts AS int[]), CAST(:steps AS bigint[]))
        WITH ORDINALITY AS given (run_id, attempt, step, place)
    ), begun AS (
      SELECT asked.place, made.attempt, min(first.step) AS step, min(first.compute) AS compute
      FROM asked
      CROSS JOIN LATERAL generate_series(0, least(asked.attempt, greatest(
        -1,
        (SELECT max(attempt) FROM metric_points AS point WHERE point.run_id = asked.run_id AND metric = :metric),
        (SELECT max(attempt) FROM evaluations WHERE evaluations.run_id = asked.run_id)
      ))) AS made (attempt)
      CROSS JOIN LATERAL (
        (SELECT step, compute FROM metric_points AS point
         WHERE point.run_id = asked.run_id AND metric = :metric AND point.attempt = made.attempt
         ORDER BY step LIMIT 1)
        UNION ALL
        (SELECT step, compute FROM evaluations
         WHERE evaluations.run_id = asked.run_id AND made.attempt > 0 AND evaluations.attempt = made.attempt
         ORDER BY step LIMIT 1)
      ) AS first
      GROUP BY asked.place, made.attempt
    ), until AS (
      SELECT place, attempt, min(step) OVER later AS step, min(compute) OVER later AS compute FROM begun
      WINDOW later AS (PARTITION BY place ORDER BY attempt ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)
    ), evaluated AS (
      SELECT DISTINCT ON (asked.place) asked.place, evaluations.step
      FROM asked JOIN evaluations ON evaluations.run_id = asked.run_id
      ORDER BY asked.place, evaluations.attempt DESC, evaluations.step DESC
    ), standing AS (
      SELECT asked.place, point.attempt, point.step, point.compute, point.value, point.time,
             point.compute IS NULL AND point.step > coalesce(evaluated.step, -1) AS lost
      FROM asked
      JOIN metric_points AS point ON point.run_id = asked.run_id AND point.metric = :metric
        AND point.attempt <= asked.attempt AND point.step <= asked.step
      JOIN until ON until.place = asked.place AND until.attempt = point.attempt
      LEFT JOIN evaluated ON evaluated.place = asked.place
      WHERE coalesce(point.step < until.step, true) AND coalesce(point.compute < until.compute, true)
        AND point.value NOT IN ('NaN', 'Infinity', '-Infinity')
    ), kept AS (
      SELECT *, ntile(:most) OVER (PARTITION BY place ORDER BY step) AS bucket FROM standing WHERE NOT lost
    )
    SELECT place, round(avg(step))::bigint AS step, max(attempt) AS attempt, avg(step)::float AS middle,
           CASE WHEN count(compute) = count(*) THEN avg(compute) END AS compute,
           avg(least(greatest(value, -1e150), 1e150)) AS value, min(value) AS least, max(value) AS greatest,
           max(time) AS time, count(*) AS logged
    FROM kept GROUP BY place, bucket
    UNION ALL
    SELECT place, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, count(*) FROM standing WHERE lost GROUP BY place
    ORDER BY place, step
""")
