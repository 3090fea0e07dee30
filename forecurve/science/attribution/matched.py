"""Efficiency as one number: how many times less compute an arm needs for a level that it and the control both reach."""

from __future__ import annotations

from collections.abc import Sequence

from .runs import Run

# Three quarters of the way up. Near the ceiling the compute to a level says more of the ceiling than of the speed: with
# R = R0 + (A - R0) / (1 + (C_mid / C)^B), d ln C / dA = -1 / (B (A - L)), so that a
# seed's 0.0125 in A moves ln C by 0.16 at 90 % of the rise (B 1.9, rise 0.4) and by 0.07 at 75 %. Lower still the
# exponent would no longer be seen: at half the rise two arms that differ in B alone need the same compute.
SHARE = 0.75
_LEAST_RISE = 0.1  # of the lower ceiling's rise: a level nearer to a start is met by the start's own noise


def own_level(runs: Sequence[Run]) -> float | None:
    """The level at which an arm's seeds are compared with one another."""
    return matched_level(runs, runs)


def common_ceiling(runs: Sequence[Run]) -> float:
    """The mean of the runs' ceilings, by their medians."""
    return sum(run.middle[2] for run in runs) / len(runs)


def matched_level(control: Sequence[Run], arm: Sequence[Run]) -> float | None:
    """A level that every run of both has reached: SHARE of the lower ceiling's rise above the common start, or the
    lowest level reached by now where that is less. None when a run starts above it or hardly below."""
    starts, reached, tops = zip(*(run.middle for run in (*control, *arm)), strict=True)
    start = sum(starts) / len(starts)
    rise = min(tops) - start
    level = min(start + SHARE * rise, *reached)
    return level if rise > 0 and level > max(starts) + _LEAST_RISE * rise else None
