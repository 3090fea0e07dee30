"""What a comparison says agrees with itself: counts, digits, seeds that there are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from forecurve.science import Curve, Fit, compare, fit

from ..sweeps import noisy_run
from ..synthetic import noisy_curve

SEEDS = (-0.008, 0.001, 0.007)  # what three seeds do to a ceiling


def _arm(A: float, first: int, seeds: int = 3) -> list[Fit]:
    return [fit(noisy_run(first + at, A + effect)) for at, effect in enumerate(SEEDS[:seeds])]


def test_advice_to_the_control_counts_every_undecided_arm() -> None:
    """One is said to be decided by it, of the two that the sentence calls undecided."""
    young = fit(noisy_run(50, last=2400, points=8))
    found = compare({"base": _arm(0.61, 0, 1), "up": _arm(0.65, 60), "young": young}, "base")
    assert found.verdicts == {"up": "undecided", "young": "undecided"}
    assert found.control_advice is not None
    assert " of the control would decide 1 of 2 undecided arms" in found.control_advice


def test_a_control_without_a_run_to_use_has_no_single_seed() -> None:
    runs = [noisy_run(seed, last=16_000, points=41) for seed in (0, 1)]
    fell = [Curve(run.compute, np.where(run.compute > 9000, 0.3, run.reward), unit=run.unit) for run in runs]
    (verdict,) = compare({"base": fell, "arm": _arm(0.61, 0, 2)}, "base").arms
    assert (verdict.seeds, verdict.difference, verdict.seed_note) == (2, None, None)


@pytest.mark.parametrize("width", [1.0, 100.0])
def test_a_ceiling_that_moved_is_told_with_digits_enough(width: float) -> None:
    arms = {"base": [noisy_run(at) for at in range(3)], "up": [noisy_run(9 + at, 0.616) for at in range(3)]}
    scaled = {
        name: [Curve(run.compute, width * run.reward, bounds=(0, width)) for run in runs] for name, runs in arms.items()
    }
    found = compare(scaled, "base", rope=0.0005 * width, seed_sd=0.0003 * width)
    assert found.verdicts == {"up": "ceiling up"}
    difference = found.arms[0].difference
    assert difference is not None
    shown = float(found.sentence.partition("(")[2].partition(")")[0])
    assert shown == pytest.approx(difference.median, abs=0.0006 * width)


def test_the_level_is_shown_as_it_was_asked() -> None:
    found = compare({"base": _arm(0.61, 0, 1), "up": _arm(0.65, 60, 1)}, "base", level=0.995)
    assert ", 99.5 % sure\n" in repr(found)
    assert ", 95 % sure\n" in repr(replace(found, level=0.95))


def test_the_compute_to_run_to_is_told_as_further_than_the_run_is() -> None:
    near = noisy_curve(1, last=4500, points=45).part(slice(0, 22))
    found = compare({"base": [noisy_curve(0, last=16_000, points=40)], "near": [near]}, "base")
    (arm,) = found.arms
    assert arm.run_to is not None
    assert 2100 < arm.run_to < 2200  # both are 2,100 or 2,200 in two digits
    for said in (arm.reason, found.sentence, found.table[0]["would decide"]):
        assert "run to 2,170 GPU-hours" in said
    waiting = compare({"near": [near], "base": [noisy_curve(0, last=16_000, points=40)]}, "near")
    assert waiting.control_advice is not None
    assert waiting.control_advice.endswith(": run it to 2,170 GPU-hours.")


def test_a_small_difference_in_speed_is_not_told_as_none() -> None:
    arms = {"base": [noisy_curve(at, sd=0.001) for at in range(2)]}
    arms |= {"fast": [noisy_curve(9 + at, C_mid=2420.0, sd=0.001) for at in range(2)]}
    found = compare(arms, "base", seed_sd=0.0005, seed_sd_log_compute=0.002)
    assert found.verdicts == {"fast": "efficiency faster"}
    assert found.arms[0].multiplier is not None
    ratio = found.arms[0].multiplier.ratio
    assert 1.005 < ratio.lower < ratio.median < 1.05
    assert f"fast ({ratio.median:.3f}x)" in found.sentence
    assert (
        f"faster, {ratio.median:.3f} (90 %: {ratio.lower:.3f} to {ratio.upper:.3f}) times as fast"
        in found.arms[0].reason
    )


@pytest.mark.parametrize(
    ("low", "high", "reason", "short"),
    [
        (2, 2, "about 3 more seeds of it and 3 of the control would decide", "3 more seeds each"),
        (1, 2, "about 2 more seeds of it and 3 of the control would decide", "2 more seeds, 3 of the control"),
        (1, 3, "about 2 more seeds of the control would decide", "2 more seeds of the control"),
    ],
)
def test_of_the_seeds_that_would_decide_those_are_told_that_are_not_there(
    low: int, high: int, reason: str, short: str
) -> None:
    found = compare({"base": _arm(0.61, 0, low), "up": _arm(0.65, 60, high)}, "base")
    assert reason in found.arms[0].reason
    assert found.table[0]["would decide"] == short
    assert f"({short})" in found.sentence


def test_an_arm_with_fewer_seeds_than_its_control_is_told_how_many_more_it_needs() -> None:
    found = compare({"base": _arm(0.65, 60, 3), "down": _arm(0.61, 0, 1)}, "base")
    assert "; about 2 more seeds of it would decide." in found.arms[0].reason
    assert found.table[0]["would decide"] == "2 more seeds"
