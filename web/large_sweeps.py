"""What the page of a sweep shows of thousands of runs: curves that can be told apart, and the table part by part.

Which, stands in the URL: `show` has the runs that are drawn, `text` what the table is narrowed to, `cursor` how many
rows came before; `drawn`, where an open page asks again, the runs of its chart. Of a sweep that is shown whole, `show`
is the chart's own affair, which hides runs by it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.datastructures import URL

from server.filters import MOST_RUNS
from server.sweeps.drawn import WHOLE, drawn_of
from server.sweeps.outline import RunOutline
from server.sweeps.service import SweepOutline

_DIGITS = 9
"""Of how many rows came before; more of them are nobody's."""


@dataclass(frozen=True)
class Drawing:
    """The curves of a sweep that are drawn.

    Attributes:
        curves: where the chart reads them.
        runs: which they are; None for all.
        said: the same in words, where the service chose them.
        asked: `show` of the URL, where it names runs of a large sweep.
        others: how many runs are drawn together, as a field.
    """

    curves: str
    runs: Sequence[RunOutline] | None = None
    said: str = ""
    asked: str = ""
    others: int = 0

    def with_run(self, run_id: str) -> str:
        """`show` of these and one more."""
        return ",".join([*self._ids, run_id])

    def again(self, url: URL) -> str:
        """Where a page with this chart asks for what is new: another arm may be the best by then."""
        same = url.include_query_params(drawn=",".join(self._ids)) if self.runs else url
        return f"{same.path}?{same.query}" if same.query else same.path

    @property
    def _ids(self) -> list[str]:
        return [run.id for run in self.runs or ()]


@dataclass(frozen=True)
class Part:
    """Rows of a table that are on one page: those from `first` on (1 is the first) of `count`.

    Attributes:
        text: what all of them have in their name or arm.
        whole: whether the sweep is so small that nothing of this need be said.
        first_page, previous_page, next_page: where they are; None where there is none.
    """

    runs: Sequence[RunOutline]
    first: int
    count: int
    text: str
    whole: bool
    first_page: str | None
    previous_page: str | None
    next_page: str | None


def drawing_of(found: SweepOutline, show: str | None, drawn: str | None = None) -> Drawing:
    """All curves of a sweep; of a large one those that `show` names, the last ones if they are too many, else those
    that a page which asks again has `drawn` already, else the few that stand for it."""
    curves = f"/v1/sweeps/{found.sweep.id}/curves?frozen=false"
    if len(found.runs) <= WHOLE:
        return Drawing(curves)
    known = {run.id: run for run in found.runs}
    asked, before = ([id_ for id_ in _ids(named) if id_ in known][-MOST_RUNS:] for named in (show, drawn))
    chosen = drawn_of(found.runs)
    ids = asked or before or chosen.ids
    named = f"{curves}&{urlencode([('run_id', id_) for id_ in ids])}"
    said = "" if asked else chosen.said
    return Drawing(named, [known[id_] for id_ in ids], said, ",".join(asked), len(found.runs) - len(ids))


def _ids(named: str | None) -> list[str]:
    return list(dict.fromkeys((named or "").split(",")))


def part_of(
    runs: Sequence[RunOutline], text: str | None, cursor: str | None, path: str, kept: Sequence[tuple[str, str]]
) -> Part:
    """A page of the table whose rows are `runs`, narrowed to those with `text`; `kept` stands in the URL beside."""
    wanted = (text or "").strip()
    rows = [run for run in runs if _has(run, wanted.lower())] if wanted else runs
    before = int(cursor) if cursor and cursor.isdecimal() and len(cursor) <= _DIGITS else 0
    before = before if before < len(rows) else 0

    def at(place: int) -> str:
        return f"{path}?{urlencode([*kept, *([('cursor', str(place))] if place else [])])}#arms"

    return Part(
        runs=rows[before : before + WHOLE],
        first=before + 1,
        count=len(rows),
        text=wanted,
        whole=len(runs) <= WHOLE,
        first_page=at(0) if before else None,
        previous_page=at(max(0, before - WHOLE)) if before > WHOLE else None,
        next_page=at(before + WHOLE) if before + WHOLE < len(rows) else None,
    )


def _has(run: RunOutline, wanted: str) -> bool:
    return wanted in run.name.lower() or wanted in (run.arm or "").lower() or wanted == run.id
