"""Where arms stand: alike ones are told alike, what is finished is known, and no look saves more than can be lost."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve import Curve, fit, plan

from ..synthetic import noisy_curve


def _arm(name: str, seed: int, A: float, C_mid: float = 2500.0, last: float = 4000.0, points: int = 20) -> Curve:
    curve = noisy_curve(seed, A=A, C_mid=C_mid, last=last, points=points)
    return Curve(curve.compute, curve.reward, unit="GPU-hours", name=name, prompts=1000, samples=16)


def _full(name: str) -> Curve:
    """A run that answers all there is to answer."""
    return Curve(np.linspace(100, 4000, 20), np.ones(20), unit="GPU-hours", name=name, prompts=1000, samples=16)


def test_arms_that_end_alike_are_told_alike_in_whatever_order_they_come() -> None:
    there, back = (plan([_full(name) for name in names], 40_000, horizon=16_000) for names in ("ab", "ba"))
    assert {arm.arm: arm.p_best for arm in there.arms} == pytest.approx({arm.arm: arm.p_best for arm in back.arms})
    assert [arm.p_best for arm in there.arms] == pytest.approx([0.5, 0.5], abs=0.03)
    assert there.sentence == back.sentence


@pytest.mark.parametrize("rises_at", [7_000, 9_000, 12_000])
def test_a_second_rise_is_not_taken_for_noise(rises_at: float) -> None:
    """Where a finished run of two phases stood is known as well as its evaluations are."""
    x = np.linspace(0, 16_000, 61)
    reward = 0.2 + 0.2 / (1 + (800 / np.maximum(x, 1e-9)) ** 3) + 0.25 / (1 + np.exp((rises_at - x) / 500))
    reward += np.random.default_rng(1).normal(0, 0.0035, 61)
    two = fit(Curve(x, reward, unit="GPU-hours", name="two", prompts=1000, samples=16))
    assert two.misfit == "two-phase"
    found = plan([two, _arm("low", 3, 0.45)], 20_000, horizon=16_000)
    assert found.chosen.arm == "two"
    assert found.chosen.end.median == pytest.approx(0.65, abs=0.01)
    assert found.chosen.end.width < 0.02
    assert "its end is hardly known" not in found.sentence
    assert "its end is hardly known" in plan([two], 20_000).sentence  # beyond what it has reached


def test_looks_together_are_worth_no_more_than_choosing_now_may_lose() -> None:
    early = _arm("early", 4, 0.61, last=2000.0, points=10)
    found = plan([_arm("a", 1, 0.62), _arm("b", 2, 0.60, 1800.0), early], 30_000, horizon=16_000)
    looks = [row for row in found.allocation if row.kind == "look"]
    assert looks
    assert 0 < sum(row.value for row in looks) <= found.expected_regret * (1 + 1e-9)
    assert found.value_of_information == pytest.approx(sum(row.value for row in looks))
