"""Tables for people, JSON for scripts, numbers with no more digits than they deserve."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from forecurve.digits import decimals, short_exponent
from forecurve.signs import visible

DASH = "–"
PLAIN_FROM, PLAIN_TO = 1000, 1_000_000  # between them no exponent: it would be longer, and harder to compare


def print_json(body: Any) -> None:
    """The answer as JSON on stdout; NaN is never printed."""
    print(json.dumps(body, indent=2, allow_nan=False, default=str))


def print_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    *,
    title: str | None = None,
    right: Iterable[str] = (),
    spare: Sequence[str] = (),
) -> None:
    """A table on stdout: whole lines in a file, and on a terminal as its width allows (`table_layout`).

    What is left out there for want of room, of the columns that may be (`spare`), is said on stderr.
    """
    from rich.console import Console
    from rich.text import Text

    from .table_layout import lay_out

    console = Console(highlight=False)
    cells = [[line_of(cell) for cell in row] for row in rows]
    width = console.width if sys.stdout.isatty() else None
    laid = lay_out(columns, cells, width=width, right=list(right), spare=spare)
    if title:
        print(visible(title))
    for at, line in enumerate(laid.lines):
        console.print(Text(line, style="bold" if at < laid.header else ""), soft_wrap=True)
    if laid.left_out:
        wider = "a wider terminal has them, and --json"
        print(f"Not shown for want of room: {', '.join(reversed(laid.left_out))}; {wider}.", file=sys.stderr)


def line_of(text: Any) -> str:
    """On one line, and without signs that a terminal obeys: a reason may be a traceback."""
    return visible(" ".join(str(text).splitlines()))


def newest(items: Iterable[Any], limit: int) -> dict[str, Any]:
    """The first `limit` of `items`, of which one more was asked for, and whether there are more."""
    found = list(items)
    return {"items": found[:limit], "more": len(found) > limit}


def print_newest(
    found: Mapping[str, Any],
    columns: Sequence[str],
    row: Callable[[Any], Sequence[Any]],
    *,
    right: Iterable[str] = (),
    spare: Sequence[str] = (),
) -> None:
    """A list as a table, and a word on stderr where it does not end there."""
    print_table(columns, [row(item) for item in found["items"]], right=right, spare=spare)
    if found["more"]:
        count = len(found["items"])
        print(f"The newest {count}; there are more: --limit {10 * count} shows them.", file=sys.stderr)


def number(value: Any, digits: int = 2) -> str:
    """A figure, or a dash when there is none."""
    return DASH if value is None else f"{value:.{digits}f}"


def compute(value: Any, unit: str | None = None) -> str:
    """Compute with three significant digits and its unit: `0.412`, `12.5 GPU-hours`, `2,010`, `3.2e+25`."""
    if value is None:
        return DASH
    rounded = float(f"{value:.3g}")
    text = f"{rounded:,.0f}" if PLAIN_FROM <= abs(rounded) < PLAIN_TO else short_exponent(f"{rounded:.3g}")
    return text + (f" {unit}" if unit else "")


def size(octets: int) -> str:
    """`427 kB`, `1.2 GB`: the unit in which it reads best."""
    amount, units = float(octets), ["B", "kB", "MB", "GB", "TB"]
    while amount >= 1000 and len(units) > 1:
        amount, units = amount / 1000, units[1:]
    return f"{amount:.3g} {units[0]}"


def interval(estimate: Mapping[str, Any] | None) -> str:
    """`0.78 (0.76 to 0.81)`: median and 90 % interval, with the digits that it supports."""
    if not estimate or estimate.get("median") is None:
        return DASH
    places = decimals(estimate["upper"] - estimate["lower"])
    return f"{estimate['median']:z,.{places}f} ({estimate['lower']:z,.{places}f} to {estimate['upper']:z,.{places}f})"


def changes(values: Mapping[str, Any] | None) -> str:
    """`loss=dapo`: what an arm changes."""
    return ", ".join(f"{path}={json.dumps(value)}" for path, value in (values or {}).items()) or DASH


def since(text: str | None) -> str:
    """`3 min ago` from an RFC 3339 time."""
    if not text:
        return DASH
    seconds = (datetime.now(UTC) - datetime.fromisoformat(text)).total_seconds()
    return f"{duration(seconds)} ago"


def left(text: str) -> str:
    """`8 min left` until an RFC 3339 time, `any moment` when that is over."""
    seconds = (datetime.fromisoformat(text) - datetime.now(UTC)).total_seconds()
    return "any moment" if seconds < 1 else f"{duration(seconds)} left"


def elapsed(begun: str | None, ended: str | None) -> str:
    """How long it took from one RFC 3339 time to another, or has by now."""
    if not begun:
        return DASH
    until = datetime.fromisoformat(ended) if ended else datetime.now(UTC)
    return duration((until - datetime.fromisoformat(begun)).total_seconds())


def moment(text: str | None) -> str:
    """`2026-01-31 14:03:22` from an RFC 3339 time, by the clock of who looks."""
    return f"{datetime.fromisoformat(text).astimezone():%Y-%m-%d %H:%M:%S}" if text else DASH


def duration(seconds: float) -> str:
    """`42 s`, `3 min`, `5 h`, `2 d`: the unit in which it reads best."""
    for limit, size, unit in ((120, 1, "s"), (7200, 60, "min"), (172_800, 3600, "h")):
        if seconds < limit:
            return f"{max(seconds, 0) / size:.0f} {unit}"
    return f"{seconds / 86_400:.0f} d"
