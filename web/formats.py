"""How numbers, times and differences are written: never more digits than the interval supports, units always."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from forecurve import digits
from forecurve.recipes import leaf_paths
from forecurve.science import Estimate
from forecurve.science.attribution.wording import difference_text, ratio_text
from forecurve.science.values import SDS_TO_A_SIDE
from forecurve.science.wording import names_text
from server.sweeps.schemas import MoreSeeds

_PERCENT = re.compile(r"(?<=\d) %")  # a number and its sign stay on one line
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d) UTC")
_TICKED = re.compile(r"`([^`]+)`")
_EXPONENT = re.compile(r"(?:\.0+|(\.\d*[1-9])0*)?e([+-])0*(\d+)$")
_MISFITS = {
    "pinned": "every evaluation is at one end of the range",
    "constant": "every evaluation is the same",
    "collapse": "it lost much of what it had gained, all at once",
    "decline": "it falls, where a sigmoid only rises",
    "two-phase": "it grows in two phases",
    "break": "it jumps or bends at one point, as after a change of the recipe",
    "shape": "it is smooth, but bends otherwise than a sigmoid, so that its end is less sure than its ceiling sounds",
}
_WITHHELD = {
    "pinned": "all at one end",
    "constant": "all the same",
    "collapse": "collapsed",
    "decline": "falls",
    "two-phase": "two phases",
    "break": "jumps or bends",
}
_POLICIES = {"advise": "advises only", "auto": "stops runs by itself", "allocate": "shares its compute"}
_STEPS = ((60, 1, "s"), (3600, 60, "min"), (86_400, 3600, "h"), (math.inf, 86_400, "d"))
_BYTES = ("B", "kB", "MB", "GB", "TB")
_FIELDS = Counter(path.rsplit(".", 1)[-1] for path in leaf_paths())
_SHARED = {last for last, count in _FIELDS.items() if count > 1}  # in more than one part of a recipe
NONE = "–"


def decimals(estimate: Any) -> int:
    """Decimal places that a 90 % interval supports; two where an end is missing."""
    lower, upper = _get(estimate, "lower"), _get(estimate, "upper")
    return 2 if lower is None or upper is None else digits.decimals(upper - lower)


def rate(value: float | None, estimate: Any = None) -> str:
    """A pass rate, with the decimals of its interval."""
    if value is None:
        return NONE
    return f"{value:,.{decimals(estimate) if estimate else 3}f}"


def evaluated(value: float | None, error: float | None) -> str:
    """A pass rate that was measured, with the digits that its standard error supports; three where that is unknown."""
    if value is None:
        return NONE
    return f"{value:.{_evaluated_digits(error)}f}" if error else rate(value)


def standard_error(error: float) -> str:
    """`± 0.015`: one digit more than what it belongs to, or most of them would read the same."""
    return f"± {error:.{_evaluated_digits(error) + 1}f}"


def _evaluated_digits(error: float) -> int:
    return digits.decimals(2 * SDS_TO_A_SIDE * error)


def median(estimate: Any) -> str:
    return NONE if estimate is None else rate(_get(estimate, "median"), estimate)


def interval(estimate: Any) -> str:
    """`0.77 to 0.80`, or a dash when there is none."""
    if estimate is None:
        return NONE
    return _between(estimate, lambda end: rate(end, estimate))


def headroom(run: Any) -> Any:
    """How far the ceiling lies above the curve now, with its interval; None where the ceiling is not known."""
    return run.headroom if knows_ceiling(run) else None


def gain(value: float, estimate: Any) -> str:
    """A difference with its sign and the decimals of its interval: `+0.05`; nothing is `0.00`."""
    places = decimals(estimate)
    rounded = round(value, places) + 0.0
    return f"{rounded:+,.{places}f}" if rounded else f"{0:.{places}f}"


def interval3(estimate: Any) -> str:
    """An interval of something that is no pass rate, three significant digits: `1.31 to 1.94`."""
    return NONE if estimate is None else _between(estimate, estimated)


def _between(estimate: Any, written: Callable[[float], str]) -> str:
    lower, upper = _get(estimate, "lower"), _get(estimate, "upper")
    if lower is not None and upper is not None:
        return f"{written(lower)} to {written(upper)}"
    if lower is not None:
        return f"from {written(lower)}"
    return f"up to {written(upper)}" if upper is not None else "no bound"


def significant(value: float | None, digits: int = 3) -> str:
    """A number with `digits` significant ones, thousands apart, no exponent for everyday sizes: `12,300`, `1.2e-7`."""
    if value is None:
        return NONE
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    magnitude = math.floor(math.log10(abs(value)))
    if magnitude < -4 or magnitude > 8:
        return _short(f"{value:.{digits - 1}e}")
    return f"{value:,.{max(0, digits - 1 - magnitude)}f}"


def _short(written: str) -> str:
    """An exponent as scripts write it, so that charts and tables say the same: `3e-7` for `3.00e-07`."""
    return _EXPONENT.sub(r"\1e\2\3", written)


def amount(value: float | None) -> str:
    """An amount of compute, to three digits or as many as it has: `40` steps, `0.003`, and `40.1` of measured ones."""
    if value is None:
        return NONE
    if float(value).is_integer() and abs(value) < 1e9:
        return f"{value:,.0f}"
    return min(digits.as_given(value), significant(value), key=len)


def compute(value: float | None, unit: str = "") -> str:
    """An amount of compute with its unit."""
    return NONE if value is None else f"{amount(value)} {unit}".strip()


def given(value: float, unit: str = "") -> str:
    """What a person gave, a budget say, with all its digits and its unit."""
    return f"{digits.as_given(value)} {unit}".strip()


def seeds(asked: MoreSeeds) -> str:
    """`2 of no-cispo and 1 of the control`: the seeds that a request for more would queue."""
    named = names_text([f"{asked.seeds} of {arm}" for arm in asked.arms or ["every arm"]])
    return f"{named} and {asked.control_seeds} of the control" if asked.control_seeds else named


def estimated(value: float, unit: str = "") -> str:
    """An amount that nobody counted: what stands before three significant digits is nought, `30,900,000 steps`."""
    return f"{significant(float(f'{value:.3g}'))} {unit}".strip()


def when(value: float | None) -> str:
    """The compute at which something is reached; None is never."""
    return "never" if value is None else estimated(value)


def column(values: Sequence[float]) -> list[str]:
    """Round numbers that stand below one another, all with the decimals of the finest: `0.88`, `0.90`."""
    places = max((len(f"{value:.6f}".rstrip("0").partition(".")[2]) for value in values), default=0)
    return [f"{value:,.{places}f}" for value in values]


def change(estimate: Any) -> str:
    """A difference with its sign: `-0.05 (-0.07 to -0.03)`."""
    return _unlabelled(difference_text(_estimate(estimate)))


def times(estimate: Any) -> str:
    """A multiplier: `1.63x (1.45 to 1.84)`."""
    return _unlabelled(ratio_text(_estimate(estimate))).replace(" (", "x (", 1)


def _estimate(view: Any) -> Estimate:
    return Estimate(view.median, view.lower, view.upper)


def _unlabelled(text: str) -> str:
    """Without the level, which the column's head names."""
    return text.replace("90 %: ", "")


def ago(then: datetime | None, now: datetime) -> str:
    """`40 s ago`, `3 min ago`, `in 3 d`; `now` within a second, and up to a minute ahead: clocks differ.

    What is past counts in full units, what is to come in the nearest: a month that begins now is not 29 d.
    """
    if then is None:
        return NONE
    seconds = (now - then).total_seconds()
    if -60 < seconds < 1:
        return "now"
    return f"in {_lasting(-seconds, round)}" if seconds < 0 else f"{_lasting(seconds, math.floor)} ago"


def left(then: datetime, now: datetime) -> str:
    """How long it is until then, as far as can be told: `90 min left`, and `any moment` when that is over."""
    seconds = (then - now).total_seconds()
    return "any moment" if seconds < 1 else f"{_lasting(seconds, round, coarse=2)} left"


def _lasting(seconds: float, whole: Callable[[float], int], coarse: int = 1) -> str:
    """In the first unit in which it is less than `coarse` of the next."""
    size, name = next((size, name) for below, size, name in _STEPS if size * whole(seconds / size) < coarse * below)
    return f"{whole(seconds / size)} {name}"


def utc(moment: datetime | None) -> str:
    return NONE if moment is None else moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def iso(moment: datetime | None) -> str:
    return "" if moment is None else moment.astimezone(UTC).isoformat()


def size(count: int) -> str:
    """Bytes, in the largest decimal unit that leaves at least one."""
    value = float(count)
    for unit in _BYTES:
        if value < 1000 or unit == _BYTES[-1]:
            return f"{significant(value)} {unit}" if unit != "B" else f"{count} B"
        value /= 1000
    raise AssertionError("unreachable: the last unit has no end")


def setting(value: Any) -> str:
    """A recipe's value as a person would type it."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e9:
        return str(int(value))
    return _short(json.dumps(value)) if isinstance(value, float) else json.dumps(value)


def difference(changes: Mapping[str, Any], most: int | None = None) -> str:
    """`algorithm.loss = dapo, batch.prompts_per_step = 8`; empty for the control. At most so many: a recipe of your own
    may differ in thirty fields, which the page of its run lists."""
    return _told([(path, setting(value)) for path, value in changes.items()], most)


def short_difference(changes: Mapping[str, Any], most: int | None = None) -> str:
    """The same for tables: each path by its last part alone, where that says by itself which field it is."""
    return _told([(_short_path(path), setting(value)) for path, value in changes.items()], most)


def _told(settings: Sequence[tuple[str, str]], most: int | None) -> str:
    first = ", ".join(f"{name} = {value}" for name, value in settings[:most])
    return first if most is None or len(settings) <= most else f"{first} and {len(settings) - most} more"


def _short_path(path: str) -> str:
    """`prompts_per_step`, but `budget.unit`: one word alone may be anything's, and `every_steps` is the name of two."""
    last = path.rsplit(".", 1)[-1]
    return last if "_" in last and last not in _SHARED else path


def number(value: Any) -> str:
    """A figure of unknown kind: intervals as intervals, numbers with three significant digits, counts in full, the
    rest as JSON."""
    if isinstance(value, Mapping) and {"median", "lower", "upper"} <= value.keys():
        return f"{significant(value['median'])} ({interval3(value)})"
    if isinstance(value, float) or (_is_count(value) and abs(value) >= 1e9):
        return significant(value)
    if _is_count(value):
        return f"{value:,}"
    return NONE if value is None else setting(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def words(name: str) -> str:
    """A field's name as words: `below_forecast` is `below forecast`."""
    return name.replace("_", " ").replace(".", " ")


def policy(name: str) -> str:
    """What a sweep does by itself."""
    return _POLICIES[name]


def rests_on(calibration: str) -> str:
    """What the interval of a forecast rests on: `conformal (12 past runs)` is `calibrated on 12 past runs`."""
    how, _, past = calibration.partition(" (")
    by = {"adjusted": "adjusted by", "conformal": "calibrated on"}.get(how)
    return f"{by} {past.rstrip(')')}" if by else "the fit itself" if how == "posterior" else calibration


def spent_range(above: float, upto: float | None) -> str:
    """A range of the share of what a run spent: `18 to 38 %`, `up to 18 %`, `from 75 %`."""
    if upto is None:
        return f"from {100 * above:.0f} %"
    return f"{100 * above:.0f} to {100 * upto:.0f} %" if above else f"up to {100 * upto:.0f} %"


def misfit(name: str) -> str:
    """Why one sigmoid is the wrong curve, by the science's name for it."""
    return _MISFITS.get(name, words(name))


def why_withheld(name: str) -> str:
    """The same in a word or two, for a table."""
    return _WITHHELD.get(name, "not one sigmoid")


def knows_ceiling(run: Any) -> bool:
    """Whether a run's forecast tells its ceiling, on a curve that is one sigmoid."""
    return run.ceiling is not None and not run.withheld and run.ceiling_known


def ticks(text: str) -> Markup:
    """Text of ours in which `backticks` set off names and commands, and times stand in UTC, as HTML; everything in it
    is escaped first."""
    html = _TICKED.sub(r"<code>\1</code>", _PERCENT.sub("\u00a0%", str(escape(text))))
    return Markup(_MOMENT.sub(_time, html))


def _time(said: re.Match[str]) -> str:
    """A time within a text, which a browser writes in the reader's own zone."""
    exact = f'datetime="{said[1]}T{said[2]}:00Z" title="{said[0]}"'
    return f'<time class="nowrap" {exact} data-style="minute">{said[0]}</time>'


def _get(estimate: Any, name: str) -> float | None:
    """An end of an interval; None where it is infinite."""
    value = estimate[name] if isinstance(estimate, Mapping) else getattr(estimate, name)
    return None if value is None else float(value)
