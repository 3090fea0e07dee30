"""Which number is the curve where no tag says it: the only one that looks like a pass rate on held-out prompts."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from forecurve.importers.choosing import is_held_out, likely_rewards
from server.metrics.models import MetricPoint
from server.metrics.service import metric_names
from server.runs.models import Run

_REPORTS = 2
"""Steps at which it must have been logged: who logs numbers one by one has then logged all of a step."""
_ALIKE = 3
"""Steps at which several must have been the same, and not all one value, to be one: two may well begin at 0."""
_LOOKED_AT = 100
_MOST = 20
_NAMED = 6


def only_likely(session: Session, run: Run, compute: str | None) -> str | None:
    """The name of that number, which is not that of the compute; None where none or several may be it. TRL logs the
    mean of its only reward function as `eval_reward` and by the function's name: those are one."""
    names = [name for name in metric_names(session, run.id) if name != compute]
    likely = [name for name in likely_rewards(names) if is_held_out(name)]
    if not 0 < len(likely) <= _MOST:
        return None
    first, *others = (_begins(session, run, name) for name in likely)
    enough = len(first) >= (_ALIKE if others else _REPORTS)
    told = not others or len({value for *_, value in first}) > 1
    return likely[0] if enough and told and all(other == first for other in others) else None


def _begins(session: Session, run: Run, name: str) -> list[tuple[int, int, float]]:
    point = MetricPoint
    mine = select(point.attempt, point.step, point.value).where(point.run_id == run.id, point.metric == name)
    rows = session.execute(mine.order_by(point.attempt, point.step).limit(_LOOKED_AT))
    return [(attempt, step, value) for attempt, step, value in rows]


def undecided(names: Sequence[str]) -> str:
    """Why no number is taken, and which there are."""
    if not names:
        return "nothing is logged yet"
    likely = [name for name in likely_rewards(names) if is_held_out(name)]
    if len(likely) == 1:
        return f"{likely[0]} is taken as its pass rate when it is logged again"
    none = "no number looks like a pass rate on held-out prompts"
    fault = "several numbers could be its pass rate" if likely else none
    shown = likely or list(names)
    more = f" and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
    return f"{fault}, and tag `forecurve.metric` names none; there are {', '.join(shown[:_NAMED])}{more}"
