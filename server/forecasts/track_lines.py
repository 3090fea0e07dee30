"""A track record in figures: a line for each range of what the runs had spent, and a sentence about a quarter of it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from forecurve.science.backtesting.track_record import Line, Scored, TrackRecord
from forecurve.science.values import SDS_TO_A_SIDE

from .schemas import ScoredView, TrackLine, TrackRecordView
from .track_record import Told

_QUARTER = 1
_MADE_AT = ("at about a tenth of", "at about a quarter of", "at about a half of", "near the end of")


def track_view(told: Told, limit: int) -> TrackRecordView:
    """The record as the API and the pages give it; of its forecasts the newest `limit`."""
    record = told.record
    newest = record.scored[::-1][:limit]
    return TrackRecordView(
        sentence=track_sentence(record),
        table=track_lines(record, told.last),
        scored=len(record.scored),
        waiting=record.waiting,
        forecasts=[
            ScoredView.of(one, told.names[one.forecast.run], told.last[one.forecast.id or ""]) for one in newest
        ],
    )


def track_lines(record: TrackRecord, last: Mapping[str, float]) -> list[TrackLine]:
    """The record's table, with what its coverage leaves open and the error of the last values in place of forecasts."""
    return [_line(line, group, last) for line, group in zip(record.table, record.ranges.values(), strict=True)]


def track_sentence(record: TrackRecord) -> str:
    """How good the forecasts were at about a quarter of what their runs spent, or at the range next to it."""
    if not record.scored:
        return "No forecast can be scored yet."
    lines = dict(zip(record.ranges, record.table, strict=True))
    at = min(lines, key=lambda one: abs(one - _QUARTER))
    return _said(_MADE_AT[at], lines[at].forecasts, _held(record.ranges[at]), lines[at].median)


def share_interval(share: float, count: int) -> tuple[float, float]:
    """What so few cases leave open of a share: Wilson's interval, 90 %.

    >>> [round(end, 2) for end in share_interval(1.0, 8)]
    [0.75, 1.0]
    """
    spread = SDS_TO_A_SIDE**2 / count
    half = SDS_TO_A_SIDE * math.sqrt(share * (1 - share) / count + spread / (4 * count))
    middle, width = (share + spread / 2) / (1 + spread), half / (1 + spread)
    return max(0.0, min(share, middle - width)), min(1.0, max(share, middle + width))  # its ends 0 and 1, rounded


def _line(line: Line, group: Sequence[Scored], last: Mapping[str, float]) -> TrackLine:
    lower, upper = share_interval(line.coverage, line.runs)
    figures = line.to_dict() | {"coverage_lower": lower, "coverage_upper": upper}
    return TrackLine(**figures, held=_held(group), last_value=_last_value(group, last))


def _held(group: Sequence[Scored]) -> int:
    return sum(one.covered for one in group)


def _last_value(group: Sequence[Scored], last: Mapping[str, float]) -> float:
    """The mean error of the last values, each run counting as much as any other, as in the table itself."""
    counts = Counter(one.forecast.run for one in group)
    wrong = (abs(last[one.forecast.id or ""] - one.actual) / counts[one.forecast.run] for one in group)
    return sum(wrong) / len(counts)


def _said(made_at: str, count: int, held: int, median: float) -> str:
    if count == 1:
        hit = "held what came" if held else "did not hold what came"
        return (
            f"One forecast was made {made_at} what its run spent: the 90 % interval {hit}, it missed by {median:.3f}."
        )
    made = f"Of {count} forecasts made {made_at} what their runs spent"
    return f"{made} the 90 % interval held {held}; they missed by {median:.3f} at the median."
