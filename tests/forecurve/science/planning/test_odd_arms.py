"""Arms that no sigmoid describes: read from their own forecasts, and of no say in those of others."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve import Curve, fit, plan
from forecurve.science import predict_ending

from .arms import FAST, FITS, arm_of, by_name, never_moved


def test_a_run_that_fell_is_given_nothing() -> None:
    healthy = arm_of("healthy", 3, 8000, 40, A=0.6, B=1.9, C_mid=2500.0)
    reward = healthy.reward.copy()
    reward[25:] -= np.linspace(0.02, 0.25, len(reward) - 25)
    fallen = Curve(healthy.compute, reward, unit="GPU-hours", name="fallen", prompts=1000, samples=16)
    found = plan([healthy, fallen], 20_000.0, horizon=16_000.0)
    outlook = by_name(found, "fallen")
    assert plan([fallen], 8000.0).not_run_on == "it fell"
    assert outlook.misfit == "decline"
    assert outlook.end.lower < reward[-3:].mean() < outlook.end.median
    assert outlook.dominated
    assert all(row.arm != "fallen" for row in found.allocation)


def test_a_run_without_a_curve_yet_may_still_begin() -> None:
    compute = np.linspace(400, 4000, 10)
    pinned = Curve(compute, np.zeros(10), unit="GPU-hours", name="pinned", prompts=1000, samples=16)
    found = plan([FITS[0], FITS[1], pinned], 36_000.0, horizon=16_000.0)
    outlook = by_name(found, "pinned")
    assert outlook.misfit == "pinned"
    assert outlook.end.median < 0.01 < outlook.end.upper
    assert outlook.p_best > 0


@pytest.mark.parametrize("seed", range(4))
def test_a_look_is_never_worth_more_than_what_choosing_now_may_lose(seed: int) -> None:
    arms = [arm_of(f"a{k}", 10 * seed + k, 6000.0, 15, **(FAST | {"A": 0.56 + 0.01 * k})) for k in range(4)]
    found = plan([*arms, never_moved(seed)], 40_000.0, horizon=16_000.0)
    looks = [row for row in found.allocation if row.kind == "look"]
    assert sum(row.value for row in looks if row.arm == "still") <= found.expected_regret
    assert not {row.arm for row in looks} & set(found.dominated)


def test_the_longer_a_run_has_not_moved_the_less_is_expected_of_it() -> None:
    ends = [plan([never_moved(0)], 10_000.0, horizon=horizon).arms[0].end for horizon in (6_600.0, 60_000.0)]
    assert ends[0].median < 0.001
    assert ends[1].median > 0.03
    assert ends[0].upper < ends[1].upper
    assert "its curve is no sigmoid (pinned)" in plan([never_moved(0)], 10_000.0).sentence


def test_where_a_run_fell_to_is_read_from_what_came_since() -> None:
    rising = arm_of("fell", 1, 8000.0, 60, **FAST)
    reward = np.where(rising.compute > 4000.0, 0.05, rising.reward)
    fell = Curve(rising.compute, reward, unit="GPU-hours", name="fell", prompts=1000, samples=16)
    end = plan([fell], 10_000.0).arms[0].end
    assert end.lower < 0.05 < end.median < 0.1
    assert end.to_dict() == pytest.approx(predict_ending(fit(fell), 18_000.0).to_dict(), abs=5e-3)


def test_a_run_that_goes_down_for_long_is_expected_where_its_last_evaluations_are() -> None:
    compute = np.linspace(20, 400, 20)
    reward = 0.9 - 0.6 * compute / 400 + 0.005 * np.random.default_rng(3).standard_normal(20)
    end = predict_ending(fit(Curve(compute, reward, prompts=1000, samples=16, name="down")), 800.0)
    assert end.lower < reward[-3:].mean() < end.median < reward[-6:].mean()


def test_a_run_that_no_sigmoid_describes_tells_the_others_nothing() -> None:
    for odd in (
        never_moved(0),
        Curve(FITS[0].curve.compute, np.full(FITS[0].points, 0.5), name="still", unit="GPU-hours"),
    ):
        alone, beside = (plan(arms, 40_000.0, horizon=16_000.0) for arms in (FITS, [*FITS, fit(odd)]))
        for arm in alone.arms:
            assert by_name(beside, arm.arm).end == arm.end
            assert by_name(beside, arm.arm).gain == arm.gain


def test_an_end_without_a_curve_is_told_as_the_run_by_itself_is_forecast() -> None:
    still = fit(never_moved(0))
    told = by_name(plan([*FITS, still], 40_000.0, horizon=16_000.0), still.curve.name)
    alone = predict_ending(still, 16_000.0)
    assert told.end.to_dict() == pytest.approx(alone.to_dict(), abs=5e-3)
    assert told.end.to_dict() == pytest.approx(told.gain.to_dict(), abs=5e-3)  # from 0
