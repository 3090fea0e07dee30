"""Where arms stand: alike ones are told alike, what is finished is known, and no look saves more than can be lost."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve import Curve, plan


def _full(name: str) -> Curve:
    """A run that answers all there is to answer."""
    return Curve(np.linspace(100, 4000, 20), np.ones(20), unit="GPU-hours", name=name, prompts=1000, samples=16)


def test_arms_that_end_alike_are_told_alike_in_whatever_order_they_come() -> None:
    there, back = (plan([_full(name) for name in names], 40_000, horizon=16_000) for names in ("ab", "ba"))
    assert {arm.arm: arm.p_best for arm in there.arms} == pytest.approx({arm.arm: arm.p_best for arm in back.arms})
    assert [arm.p_best for arm in there.arms] == pytest.approx([0.5, 0.5], abs=0.03)
    assert there.sentence == back.sentence
