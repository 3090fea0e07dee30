"""What a run's job printed: as it is now, or line by line as it comes."""

from __future__ import annotations

import json
import sys
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from forecurve.limits import OVER
from forecurve.signs import visible

from ..asking.patience import patiently, wait
from .output import since

if TYPE_CHECKING:
    from forecurve.client.api import Api

MOST = 5_000  # lines of one answer, which is all that are kept
_FRESH_S = 8.0
"""So long the worker is waited for: it reads a log from the cluster when somebody asks, not before."""
_LOOKS_S = 0.5
_LATE_S = 600.0
"""A log that was not read for longer, twice as long as one that nobody looks at, has no worker that reads it."""


def fresh_log(api: Api, run_id: str, attempt: int | None, tail: int) -> dict[str, Any]:
    """The last lines, as the cluster has them now; as they were last read where the worker does not answer in time."""
    found = api.logs(run_id, attempt=attempt, limit=tail)
    before, ends = found["read_at"], time.monotonic() + _FRESH_S
    while not found["whole"] and found["attempt"] and found["read_at"] == before and time.monotonic() < ends:
        wait(_LOOKS_S)
        found = api.logs(run_id, attempt=attempt, limit=tail)
    if not found["whole"] and found["attempt"] and found["read_at"] == before:
        print(f"forecurve: {_as_of(before)}", file=sys.stderr)
    return found


def _as_of(read_at: str | None) -> str:
    """The worker may have its reasons: a long log is read seldom, and a job that was just submitted has none."""
    if read_at is None:
        return "not read yet; if it stays so, `forecurve status` says whether there is a worker"
    late = (datetime.now(UTC) - datetime.fromisoformat(read_at)).total_seconds() > _LATE_S
    return f"as it was {since(read_at)}{'; `forecurve status` says whether there is a worker' if late else ''}"


def print_log(found: dict[str, Any]) -> None:
    for line in [*found["lines"], *filter(None, [found["unfinished"]])]:
        print(_shown(line))
    if not found["lines"] and not found["unfinished"]:
        print(_nothing(found), file=sys.stderr)


def follow_log(api: Api, run_id: str, *, attempt: int | None, tail: int, every_s: float, as_json: bool) -> None:
    """Print the last lines and then what comes, attempt after attempt, until the run is over."""
    page = patiently(lambda: api.logs(run_id, attempt=attempt, limit=tail), every_s)
    after = page["first"]
    while True:
        if page["first"] > after:
            print(f"forecurve: {page['first'] - after:,} lines came meanwhile that are not kept", file=sys.stderr)
        for number, line in enumerate(page["lines"], page["first"]):
            print(_as_json(page, number, line) if as_json else _shown(line), flush=True)
        current, after = page["attempt"], page["next"]
        if not page["lines"]:
            if page["whole"] and attempt is not None:
                return
            if attempt is None and (page["whole"] or not current) and page["attempts"] > current:
                current, after = current + 1, 0
                print(f"forecurve: attempt {current}", file=sys.stderr)
            elif page["whole"] and patiently(lambda: api.run(run_id), every_s)["status"] in OVER:
                return
            else:
                wait(every_s)
        page = patiently(lambda: api.logs(run_id, attempt=current or None, after=after, limit=MOST), every_s)  # noqa: B023


def _shown(line: str) -> str:
    return visible(line.expandtabs())


def _as_json(page: dict[str, Any], number: int, line: str) -> str:
    return json.dumps({"attempt": page["attempt"], "line": number, "text": line})


def _nothing(found: dict[str, Any]) -> str:
    if not found["attempt"]:
        return "Never launched." if found["whole"] else "Not launched yet."
    if found["whole"]:
        return f"Nothing is known of what attempt {found['attempt']} printed."
    return f"Nothing read yet of what attempt {found['attempt']} prints."
