"""What a comparison says: sentences, a table, never more digits than the interval supports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from forecurve.digits import decimals

from ..values import Estimate
from ..wording import apart_texts, beside_text, compute_text, names_text, share_text
from .comparison import ArmVerdict, Comparison, Multiplier
from .needs import MOST_SEEDS, Design
from .seeds import SeedSpread

DASH = "–"


def difference_text(estimate: Estimate) -> str:
    """`-0.05 (90 %: -0.07 to -0.03)`."""
    places = decimals(estimate.width)
    median, lower, upper = (_signed(value, places) for value in (estimate.median, estimate.lower, estimate.upper))
    return f"{median} (90 %: {lower} to {upper})"


def shift_text(median: float, lower: float, upper: float) -> str:
    """`-0.05`: the median of a difference alone, with the digits that its interval supports."""
    return _signed(median, decimals(upper - lower))


def _signed(value: float, places: int) -> str:
    rounded = round(value, places)
    return f"{rounded:+,.{places}f}" if rounded else f"{0:.{places}f}"


def ratio_text(estimate: Estimate) -> str:
    """`1.63 (90 %: 1.45 to 1.84)` where it is narrow, else two significant digits: `0.41 (90 %: 0.03 to 1.2)`."""
    lower, upper = _ratio(estimate.lower, estimate), _ratio(estimate.upper, estimate)
    return f"{_ratio(estimate.median, estimate)} (90 %: {lower} to {upper})"


def _ratio(value: float, estimate: Estimate) -> str:
    """One of its three numbers. Where 1 is outside no end of it is told as 1.

    >>> _ratio(1.04, Estimate(1.3, 1.04, 1.6)), _ratio(1.04, Estimate(1.04, 0.7, 1.6))
    ('1.04', '1')
    """
    if estimate.width < 0.5 and estimate.lower >= 0.1:
        return f"{value:.{decimals(estimate.width)}f}"
    apart = not estimate.lower <= 1 <= estimate.upper
    return compute_text(value, 3 if apart and compute_text(value) == "1" else 2)


def with_reason(
    arm: ArmVerdict, rope: float, unit: str, unknown: str | None, design: Design, control_seeds: int
) -> ArmVerdict:
    """The verdict with its sentence; `unknown` names the ceilings that are not identified."""
    if arm.verdict == "ceiling":
        reason = _ceiling(arm)
    elif arm.verdict == "efficiency":
        reason = _efficiency(arm)
    elif arm.verdict == "no difference shown":
        reason = _same(arm, rope)
    else:
        reason = _undecided(arm, design, control_seeds) if unknown is None else _unknown(arm, unit, unknown)
    return replace(arm, reason=reason + _left_out(arm.left_out) + _waiting(arm.waiting))


def _ceiling(arm: ArmVerdict) -> str:
    assert arm.difference is not None
    side = "higher" if arm.direction == "up" else "lower"
    return f"{arm.arm}: ceiling {side}, {difference_text(arm.difference)}{_and_speed(arm)}."


def _efficiency(arm: ArmVerdict) -> str:
    assert arm.difference is not None
    assert arm.multiplier is not None
    speed = f"{arm.direction}, {_times_as_fast(arm, arm.multiplier)}"
    return f"{arm.arm}: {speed}; ceiling not shown to differ, {difference_text(arm.difference)}."


def _same(arm: ArmVerdict, rope: float) -> str:
    assert arm.p_same is not None
    head = f"{arm.arm}: ceiling within {rope:g} of the control's ({share_text(arm.p_same)} sure)"
    return f"{head}{_and_speed(arm)}."


def _undecided(arm: ArmVerdict, design: Design, control_seeds: int) -> str:
    assert arm.difference is not None
    head = f"{arm.arm}: undecided, ceiling {difference_text(arm.difference)}{_and_speed(arm)}"
    tail = ", or longer runs: their own noise counts for more" if design.noise > design.spread.sd else ""
    if arm.seeds_needed is None:
        return f"{head}; more than {MOST_SEEDS} seeds would be needed to tell it from {design.rope:g}{tail}."
    of_it, of_control = _further(arm.seeds_needed, arm, control_seeds)
    if not of_it:
        said = f"{_more_seeds(of_control)} of the control"
    else:
        said = f"{_more_seeds(of_it)} of it" + (f" and {of_control} of the control" if of_control else "")
    return f"{head}; about {said} would decide{tail}."


def _further(seeds_needed: int, arm: ArmVerdict, control_seeds: int) -> tuple[int, int]:
    """How many more seeds of the arm and of the control that is; one of the two may have as many already."""
    return max(seeds_needed - arm.seeds, 0), max(seeds_needed - control_seeds, 0)


def _more_seeds(count: int) -> str:
    return "1 more seed" if count == 1 else f"{count} more seeds"


def _unknown(arm: ArmVerdict, unit: str, unknown: str) -> str:
    head = f"{arm.arm}: undecided, {unknown} not identified yet"
    further = None if arm.run_to is None else f"run to {apart_texts(arm.run_from, arm.run_to)[1]} {unit}"
    where = further or "no compute near would settle it"
    return f"{head}: {where}{_and_speed(arm)}."


def _and_speed(arm: ArmVerdict) -> str:
    return "" if arm.multiplier is None else f"; {_times_as_fast(arm, arm.multiplier)}"


def _times_as_fast(arm: ArmVerdict, multiplier: Multiplier) -> str:
    return f"{ratio_text(multiplier.ratio)} times as fast to {_level(arm, multiplier)}"


def _level(arm: ArmVerdict, multiplier: Multiplier) -> str:
    """The level with as many digits as the ceilings are told with."""
    assert arm.difference is not None
    return beside_text(multiplier.level, arm.difference)


def _left_out(left_out: Sequence[tuple[str, str]]) -> str:
    if not left_out:
        return ""
    named = ", ".join(f"{name} ({misfit})" for name, misfit in left_out)
    return f" Left out, no ceiling can be read: {named}."


def _waiting(waiting: Sequence[str]) -> str:
    return f" Not counted yet, far younger: {names_text(waiting)}." if waiting else ""


def unreadable(arm: str, left_out: Sequence[tuple[str, str]], control_out: Sequence[tuple[str, str]]) -> str:
    """Why an arm cannot be judged at all."""
    return f"{arm}: undecided.{_left_out(left_out)}{left_out_of_control(control_out)}"


def left_out_of_control(left_out: Sequence[tuple[str, str]]) -> str:
    """` Left out of the control, no ceiling can be read: control (collapse).`; empty where nothing was."""
    return _left_out(left_out).replace("Left out,", "Left out of the control,")


def with_note(arm: ArmVerdict, control_seeds: int, replicates: int, spread: SeedSpread) -> ArmVerdict:
    """The verdict with what is to be known of its seeds."""
    return replace(arm, seed_note=_seed_note(arm.seeds, control_seeds, replicates, spread))


def _seed_note(seeds: int, control_seeds: int, replicates: int, spread: SeedSpread) -> str | None:
    if 0 in (seeds, control_seeds) or min(seeds, control_seeds) > 1:
        return None
    who = "single seed" if seeds == 1 else "single seed of the control"
    return f"{who}, {spread_note(spread, replicates)}"


def spread_note(spread: SeedSpread, replicates: int) -> str:
    """How far seeds lie apart, and how that is known: `replicates` of this comparison and those of past sweeps."""
    if spread.known:
        return f"seed sd given as {spread.sd:.4g}"
    told = [f"{count} {whose}" for count, whose in ((replicates, "here"), (spread.past, "in past sweeps")) if count]
    if not told:
        return f"seed sd assumed to be about {spread.sd:.4g}"
    return f"seed sd about {spread.sd:.2g} by replicates ({' and '.join(told)})"


def control_advice(more: int, decided: int, undecided: int) -> str:
    """`2 more seeds of the control would decide 3 of 5 undecided arms.`"""
    arms = "the undecided arm" if undecided == 1 else f"{decided} of {undecided} undecided arms"
    return f"{_more_seeds(more)} of the control would decide {arms}, if the differences are what they seem."


def no_control(control: str, left_out: Sequence[tuple[str, str]]) -> str:
    """`Nothing can be compared with base: no ceiling can be read from base (collapse). Choose another control.`

    Args:
        left_out: the control's runs that have no ceiling, each with the reason.
    """
    runs = names_text([f"{name} ({misfit})" for name, misfit in left_out]) or "any of its runs"
    return f"Nothing can be compared with {control}: no ceiling can be read from {runs}. Choose another control."


def control_first(run_from: float, run_to: float | None, unit: str) -> str:
    """The control's ceiling is part of every comparison."""
    if run_to is None:
        return "The control's ceiling is not identified and no compute near would settle it: choose another control."
    where = f"{apart_texts(run_from, run_to)[1]} {unit}"
    return f"The control's ceiling is not identified yet and every arm waits for it: run it to {where}."


_ORDER = (
    "ceiling up",
    "ceiling down",
    "efficiency faster",
    "efficiency slower",
    "no difference shown",
    "undecided",
)
_NAMED = 4  # more undecided arms than this are counted, not listed


def sentence(comparison: Comparison) -> str:
    """Who did what, in groups; then what would decide the rest. Without a control's ceiling, what to do about that."""
    young = _waiting(comparison.control_waiting).replace("yet,", "yet of the control,")
    if not comparison.control_seeds:
        return f"{comparison.control_advice}{young}"
    groups: dict[str, list[ArmVerdict]] = {label: [] for label in _ORDER}
    for arm in comparison.arms:
        groups[arm.label].append(arm)
    said = "; ".join(_group(label, arms, comparison) for label, arms in groups.items() if arms)
    tail = f" {comparison.control_advice}" if comparison.control_advice else ""
    out = left_out_of_control(comparison.control_left_out)
    return f"Against {comparison.control}: {said}.{out}{young}{tail}"


def _group(label: str, arms: Sequence[ArmVerdict], comparison: Comparison) -> str:
    if label == "undecided" and len(arms) > _NAMED:
        return f"undecided: {len(arms)} arms"
    return f"{label}: {names_text([_short(arm, comparison) for arm in arms])}"


def _short(arm: ArmVerdict, comparison: Comparison) -> str:
    if arm.verdict == "ceiling" and arm.difference is not None:
        found = arm.difference
        return f"{arm.arm} ({shift_text(found.median, found.lower, found.upper)})"
    if arm.verdict == "efficiency" and arm.multiplier is not None:
        return f"{arm.arm} ({_ratio(arm.multiplier.ratio.median, arm.multiplier.ratio)}x)"
    if arm.verdict == "undecided":
        return f"{arm.arm} ({needs_text(arm, comparison)})"
    return arm.arm


def needs_text(arm: ArmVerdict, comparison: Comparison) -> str:
    """What would decide an arm of the comparison, in a few words; a dash when it is decided."""
    if arm.verdict != "undecided":
        return DASH
    if arm.difference is None:
        return "no ceiling to read" if arm.seeds == 0 else "nothing to compare it with"
    if arm.run_to is not None:
        return f"run to {apart_texts(arm.run_from, arm.run_to)[1]} {comparison.unit}"
    if arm.p_same is None:
        return "ceiling out of reach"
    if arm.seeds_needed is None:
        return f"over {MOST_SEEDS} seeds"
    of_it, of_control = _further(arm.seeds_needed, arm, comparison.control_seeds)
    if of_it == of_control:
        return f"{_more_seeds(of_it)} each"
    if not of_it:
        return f"{_more_seeds(of_control)} of the control"
    return _more_seeds(of_it) + (f", {of_control} of the control" if of_control else "")


def table(comparison: Comparison) -> list[dict[str, str]]:
    """One row an arm."""
    return [
        {
            "arm": arm.arm,
            "seeds": str(arm.seeds),
            "verdict": arm.label,
            "ceiling (90 %)": DASH if arm.difference is None else _plain(difference_text(arm.difference)),
            "sure": _sure(arm),
            "times as fast (90 %)": DASH if arm.multiplier is None else _plain(ratio_text(arm.multiplier.ratio)),
            "to": DASH if arm.multiplier is None else _level(arm, arm.multiplier),
            "would decide": needs_text(arm, comparison),
            "the paper's way": _paper(arm),
        }
        for arm in comparison.arms
    ]


def _plain(text: str) -> str:
    return text.replace("90 %: ", "")


def _sure(arm: ArmVerdict) -> str:
    """The probability that the verdict rests on."""
    if arm.verdict == "ceiling":
        return share_text(arm.certainty)
    if arm.verdict == "efficiency" and arm.multiplier is not None:
        return share_text(arm.multiplier.certainty)
    return DASH if arm.p_same is None or arm.verdict == "undecided" else share_text(arm.p_same)


def _paper(arm: ArmVerdict) -> str:
    if arm.paper is None:
        return DASH
    if arm.paper.common_A is None:
        return f"{arm.paper.verdict} (A {_finely(arm, arm.paper.A)})"
    return f"{arm.paper.verdict} (B {arm.paper.B:.2f} at A {_finely(arm, arm.paper.common_A)})"


def _finely(arm: ArmVerdict, ceiling: float) -> str:
    """A ceiling without an interval, with one digit more than ours has."""
    return f"{ceiling:.3f}" if arm.difference is None else beside_text(ceiling, arm.difference, finer=1)


def text(comparison: Comparison) -> str:
    """A small table of plain text."""
    seeds = "1 seed" if comparison.control_seeds == 1 else f"{comparison.control_seeds} seeds"
    level = f"{100 * comparison.level:g} %"  # as it was asked: 99.5 % is not 100
    head = f"Comparison with {comparison.control!r} ({seeds}), region ±{comparison.rope:g}, {level} sure"
    rows = comparison.table
    if not rows:
        return head
    names = list(rows[0])
    widths = {name: max(len(name), *(len(row[name]) for row in rows)) for name in names}
    lines = [
        "  ".join(row[name].ljust(widths[name]) for name in names).rstrip() for row in ({n: n for n in names}, *rows)
    ]
    return "\n".join([head, *lines])
