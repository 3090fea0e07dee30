"""Which of the logged numbers is the reward, and which is the compute."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches

from forecurve.curve_cells import CurveFileError, as_people_write, number_of

from .logs import CLOCKS, STEPS, Log, is_finite, is_number

_HELD_OUT = re.compile(r"(^|[-/_. ])(eval|evaluation|val|valid|validation|test|heldout|held[-_]out)([-/_. ]|$)")
_AT = r"(@|_at_)"  # as verl writes `mean@8` to MLflow, which takes no `@`
_IS_RATE = rf"(pass[-_]?rate|accuracy|acc|success([-_]rate)?|solve[-_]?rate|pass{_AT}\d+)"
_RATE = re.compile(rf"(^|[-/_. ]){_IS_RATE}([-/_. @]|$)")
_REWARD = re.compile(rf"(^|[-/_. ])(rewards?|score|mean{_AT}\d+)([-/_. @]|$)")
_TRAINING = re.compile(r"(^|[-/_. ])(train|training|actor|critic|rollout)([-/_. ]|$)")
# of verl's, `val-aux` is beside the point, and best and majority of several samples are no rates of one
_BESIDE = re.compile(
    rf"val-aux/|/(maj|best|worst){_AT}|(^|[-/_. ])(std|min|max|var|zero_std|len|length|token_accuracy|loss)([-/_. ]|$)"
)
_BOOKKEEPING = {*STEPS, *CLOCKS, "_runtime", "epoch", "id"}
_LISTED = 12  # metrics that a message names


def metric_counts(logs: Sequence[Log]) -> dict[str, int]:
    """How many numbers there are of every metric, first those that look like a reward on held-out prompts."""
    counts = Counter(name for log in logs for row in log.rows for name, cell in row.cells.items() if is_number(cell))
    axes = {log.axes[0] for log in logs if len(log.axes) == 1}
    names = [name for name in counts if name not in _BOOKKEEPING | axes]
    return {name: counts[name] for name in sorted(names, key=_unlikely)}


def _unlikely(name: str) -> tuple[int, str]:
    return (0 if _is_candidate(name) else 1 if _HELD_OUT.search(name.lower()) and "val-aux" not in name else 2, name)


def _is_candidate(name: str) -> bool:
    """Held out, and a rate or a reward; or a rate of which nothing says that it is of training."""
    plain = name.lower()
    if _BESIDE.search(plain) or _TRAINING.search(plain):
        return False
    rate = bool(_RATE.search(plain))
    return (rate or bool(_REWARD.search(plain))) if _HELD_OUT.search(plain) else rate


def reward_of(logs: Sequence[Log], asked: str | None) -> str:
    """The metric that is the reward: the one asked for, else the only one that looks like it.

    Raises:
        CurveFileError: there is no such metric, or none or several look like it; lists those that there are.
    """
    if asked is not None and any(asked in row.cells for log in logs for row in log.rows):
        return asked  # a cell of it that is no number is told with its line
    counts = metric_counts(logs)
    if not counts:
        _refuse_as_people_write(logs, lambda _: True)
        raise CurveFileError("file", _files(logs), "no numbers are logged in it", "name a log of a run")
    if asked is not None:
        raise CurveFileError("metric", repr(asked), "nothing is logged as that", _known(asked, counts))
    likely = likely_rewards(counts)
    if not likely:
        _refuse_as_people_write(logs, _is_candidate)
    found = _one_of_each(likely, logs)
    if len(found) != 1:
        fault = "none looks like a reward on held-out prompts" if not found else "several could be the reward"
        raise CurveFileError("metric", "none", f"{fault}, and one must be named", f"there are {_listed(counts)}")
    return found[0]


def likely_rewards(names: Iterable[str]) -> list[str]:
    """The names that look like a reward on held-out prompts; where none says that it is of such, those of rates."""
    likely = [name for name in names if _is_candidate(name)]
    return [name for name in likely if is_held_out(name)] or likely


def is_held_out(name: str) -> bool:
    """Whether a name says that it is of held-out prompts."""
    return bool(_HELD_OUT.search(name.lower()))


def _refuse_as_people_write(logs: Sequence[Log], may_be: Callable[[str], bool]) -> None:
    """Where no number is found, a comma before the decimals may be the reason: the first such is told with its line.

    Args:
        may_be: whether a name may be that of the number looked for.
    """
    for log in logs:
        for row in log.rows:
            for name, cell in row.cells.items():
                if may_be(name) and as_people_write(cell):
                    number_of(name, cell, row.where)


def _one_of_each(names: Sequence[str], logs: Sequence[Log]) -> list[str]:
    """Numbers that are the same at every report are one, the first: TRL logs the mean of its only reward function as
    `eval_reward` and by the function's name."""
    first: dict[str, str] = {}
    for name in names:
        first.setdefault(str([row.cells.get(name) for log in logs for row in log.rows]), name)
    return list(first.values())


def _known(asked: str, counts: dict[str, int]) -> str:
    close = get_close_matches(asked, counts, n=1)
    return f"did you mean {close[0]}? There are {_listed(counts)}" if close else f"there are {_listed(counts)}"


def _listed(counts: dict[str, int]) -> str:
    names = list(counts)
    more = f" and {len(names) - _LISTED:,} more (`--list` names all)" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _files(logs: Sequence[Log]) -> str:
    return ", ".join(dict.fromkeys(log.path.name for log in logs[:3]))


def axis_of(log: Log, metric: str) -> str | None:
    """What is the step of a log: of what may be it the first that stands at every report of the metric, else the one
    that stands at most of them; None where none stands at any."""
    cells = [row.cells for row in log.rows if metric in row.cells]
    times = {axis: sum(is_finite(one.get(axis)) for one in cells) for axis in log.axes if axis != metric}
    best = max(times, key=lambda axis: times[axis], default=None)
    return best if best is not None and times[best] else None
