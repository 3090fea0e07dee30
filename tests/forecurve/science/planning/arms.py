"""Arms that tests of the planner share."""

from __future__ import annotations

from forecurve import Curve, Fit, fit, plan
from forecurve.science import Outlook, Plan

from ..synthetic import noisy_curve

# a slow arm with the highest ceiling, a fast one with a lower one, and one that is far behind at any compute
SLOW = {"A": 0.70, "B": 1.7, "C_mid": 4000.0}
FAST = {"A": 0.58, "B": 1.9, "C_mid": 1500.0}
POOR = {"A": 0.40, "B": 1.8, "C_mid": 2500.0}


def arm_of(name: str, seed: int, last: float, points: int, *, A: float, B: float, C_mid: float) -> Curve:
    curve = noisy_curve(seed, A=A, B=B, C_mid=C_mid, last=last, points=points)
    return Curve(curve.compute, curve.reward, unit="GPU-hours", name=name, prompts=1000, samples=16)


def sweep(last: float = 4000.0, points: int = 20) -> list[Curve]:
    arms = (("slow", SLOW), ("fast", FAST), ("poor", POOR))
    return [arm_of(name, seed, last, points, **shape) for seed, (name, shape) in enumerate(arms)]


def close_arms(last: float, points: int) -> list[Fit]:
    """Four that may each be the best: arm0 to arm3."""
    shapes = [{"A": 0.60 + 0.01 * at, "B": 1.8, "C_mid": 3000.0 + 400 * at} for at in range(4)]
    return [fit(arm_of(f"arm{at}", at, last, points, **shape)) for at, shape in enumerate(shapes)]


FITS = [fit(curve) for curve in sweep()]
PLANNED = plan(FITS, 36_000.0, horizon=16_000.0)


def by_name(found: Plan, name: str) -> Outlook:
    return next(arm for arm in found.arms if arm.arm == name)


def never_moved(seed: int) -> Curve:
    still = arm_of("still", seed, 6000.0, 15, **POOR)
    return Curve(still.compute, 0.0 * still.reward, unit="GPU-hours", name="still", prompts=1000, samples=16)
