"""The order of a table of arms, as it stands in the URL: `sort=end` rises, `sort=-end` falls; else as planned."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from server.runs.schemas import RunView

from .arms import AnyRun, Arms
from .formats import knows_ceiling
from .ordering import heads, offered


def _change(arms: Arms, run: AnyRun) -> float | None:
    verdict = arms.verdicts[run.id]
    return verdict.difference.median if verdict and verdict.difference else None


COLUMNS: Mapping[str, Callable[[Arms, AnyRun], Any]] = {
    "name": lambda arms, run: arms.names[run.id].lower(),
    "state": lambda arms, run: run.status,
    "rate": lambda arms, run: run.last_reward,
    "ceiling": lambda arms, run: run.ceiling.median if run.ceiling and knows_ceiling(run) else None,
    "change": _change,
    "end": lambda arms, run: run.at_budget.median if run.at_budget else None,
    "spent": lambda arms, run: run.last_compute,
}
"""What a table can be sorted by; what has no value comes last, and a ceiling that is not identified is none."""

ORDERS = (
    ("name", "by name"),
    ("state", "by state"),
    ("-rate", "highest pass rate first"),
    ("-ceiling", "highest ceiling first"),
    ("-change", "largest gain first"),
    ("-end", "highest at the budget first"),
    ("-spent", "most compute first"),
)
"""What a narrow window, whose table has no heads, offers instead."""


@dataclass(frozen=True)
class Table:
    """The arms in their order, and where other orders are had.

    Attributes:
        rows: the runs, sorted.
        firsts: the first run of each arm: its row has the verdict's figures, those of the arm's other seeds its name.
        sort: as it stands in the URL; empty for the order in which they were planned.
        heads: of each column that can be sorted by, where a press leads and its `aria-sort`.
        kept: what else stands in the URL.
        orders: what a narrow window offers, with what it is called.
    """

    rows: Sequence[RunView]
    firsts: set[str]
    sort: str
    heads: Mapping[str, tuple[str, str]]
    kept: Sequence[tuple[str, str]]
    orders: Sequence[tuple[str, str]]


def table_of(
    arms: Arms, rows: Sequence[RunView], sort: str | None, path: str, kept: Sequence[tuple[str, str]] = ()
) -> Table:
    """The table of a page at `path` whose URL has `kept` beside the order; `rows` are in it."""
    return Table(
        rows=rows,
        firsts=arms.firsts(rows),
        sort=sort or "",
        heads=heads(COLUMNS, sort, lambda order: f"{path}?{urlencode([*kept, ('sort', order)])}#arms"),
        kept=kept,
        orders=offered(ORDERS, sort or ""),
    )


def ordered(arms: Arms, sort: str | None) -> Sequence[Any]:
    """The runs of `arms` in the order that the URL asks for."""
    wanted = sort or ""
    value = COLUMNS.get(wanted.lstrip("-"))
    if value is None:
        return arms.runs
    known = [(value(arms, run), run) for run in arms.runs]
    first = sorted((pair for pair in known if pair[0] is not None), key=lambda p: p[0], reverse=wanted.startswith("-"))
    return [run for _, run in first] + [run for found, run in known if found is None]
