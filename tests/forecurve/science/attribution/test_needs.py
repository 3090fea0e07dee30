"""How many seeds decide: the closed form against simulated sweeps judged in full."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import stdtr
from scipy.stats import norm

from forecurve.science import SeedSpread
from forecurve.science.attribution.judge import Rules, judge
from forecurve.science.attribution.needs import MOST_SEEDS, Design, Effect, control_advice, seeds_to_decide

from ..sweeps import known_run

TAU, NOISE = 0.0125, 0.004
KNOWN = Design(noise=NOISE, spread=SeedSpread(TAU), rope=0.02, level=0.95, alpha=0.05)
RULES = Rules(0.02, 0.95, SeedSpread(TAU), SeedSpread(10.0))  # so wide that speed is never claimed


def _share(verdict: str, difference: float, seeds: int, sweeps: int) -> float:
    """How often one arm with a true difference gets a verdict."""
    rng = np.random.default_rng(round(1e6 * difference) + seeds)
    sd = np.hypot(TAU, NOISE)
    found = 0
    for _ in range(sweeps):
        control, arm = rng.normal(0.6, sd, seeds), rng.normal(0.6 + difference, sd, seeds)
        runs = {"control": [known_run(A, NOISE) for A in control], "arm": [known_run(A, NOISE) for A in arm]}
        found += judge(runs, "control", RULES, "steps").arms[0].label == verdict
    return found / sweeps


def _smallest(design: Design, arm_seeds: int, control_seeds: int, more_runs: int = 0) -> float:
    """The least difference beyond the region that would be decided."""
    low, high = design.rope, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if design.decides(middle, arm_seeds, control_seeds, more_runs) else (middle, high)
    return high


@pytest.mark.slow
def test_the_smallest_difference_is_claimed_four_times_in_five() -> None:
    # two claims are made of one arm (ceiling, efficiency), so that one gets about half of the 5 %
    design = Design(NOISE, SeedSpread(TAU), 0.02, 0.95, alpha=0.0253)
    assert _share("ceiling up", _smallest(design, 3, 3), 3, 100) == pytest.approx(0.8, abs=0.1)


def test_the_seeds_said_to_show_sameness_do_show_it() -> None:
    seeds = seeds_to_decide([Effect(KNOWN, 0.0)], 1, 1)
    assert seeds is not None
    assert _share("no difference shown", 0.0, seeds, 40) >= 0.7
    assert _share("no difference shown", 0.0, seeds - 3, 40) < 0.7


@pytest.mark.parametrize("rope", [0.0005, 0.005, 0.02])
def test_the_smallest_difference_is_claimed_whichever_side_the_draws_chose(rope: float) -> None:
    """Uneven arms by simulation: where there is next to no region, the side that was not chosen counts as much."""
    design, chance = replace(KNOWN, rope=rope), np.random.default_rng(0).normal(size=200_000)
    sd = float(np.hypot(TAU, NOISE) * np.sqrt(1 / 2 + 1 / 4))
    seen = np.abs(_smallest(design, 2, 4) + sd * chance)
    p = norm.sf((seen - rope) / sd) + norm.sf((seen + rope) / sd)
    assert (p <= design.alpha).mean() == pytest.approx(0.8, abs=0.005)


@pytest.mark.parametrize("difference", [0.0, 0.005, 0.009])
def test_the_seeds_said_to_show_sameness_are_the_fewest_that_do(difference: float) -> None:
    """The closed form against simulated differences with tails of a Student-t around what is seen."""
    design, chance = (
        Design(0.002, SeedSpread(0.008, 6.0), 0.02, 0.95, 0.05),
        np.random.default_rng(1).normal(size=50_000),
    )

    def power(seeds: int) -> float:
        sd = design.sd(seeds, seeds)
        seen, dof = difference + sd * chance, 6 + 2 * (seeds - 1)
        p_same = stdtr(dof, (0.02 - seen) / sd) - stdtr(dof, (-0.02 - seen) / sd)
        return float((p_same >= 0.95).mean())

    seeds = seeds_to_decide([Effect(design, difference)], 1, 1)
    assert seeds is not None
    assert power(seeds - 1) < 0.8 <= power(seeds)


@pytest.mark.slow  # 4 s
def test_the_smallest_speed_is_claimed_four_times_in_five() -> None:
    """Sweeps judged in full: a speed's claim has two sides, and there is no region to lose one in."""
    spread, rng = SeedSpread(0.2), np.random.default_rng(7)
    slower = _smallest(Design(0.0, spread, 0.0, 0.95, alpha=0.0253), 3, 3)
    rules, found = Rules(0.02, 0.95, SeedSpread(TAU), spread), 0
    for _ in range(200):
        control, arm = 2500 * np.exp(rng.normal(0, 0.2, 3)), 2500 * np.exp(slower + rng.normal(0, 0.2, 3))
        runs = {"control": [known_run(0.6, C_mid=c) for c in control], "arm": [known_run(0.6, C_mid=c) for c in arm]}
        found += judge(runs, "control", rules, "steps").arms[0].label == "efficiency slower"
    assert found / 200 == pytest.approx(0.8, abs=0.06)


def test_a_rough_spread_needs_more_than_a_known_one() -> None:
    rough = Design(NOISE, SeedSpread(TAU, 6.0), 0.02, 0.95, 0.01)
    known = Design(NOISE, SeedSpread(TAU), 0.02, 0.95, 0.01)
    assert _smallest(rough, 3, 3) > _smallest(known, 3, 3)
    assert _smallest(rough, 3, 3, more_runs=50) < _smallest(rough, 3, 3)


def test_larger_effects_need_fewer_seeds_and_the_edge_cannot_be_decided() -> None:
    needed = [seeds_to_decide([Effect(KNOWN, size)], 1, 1) for size in (0.04, 0.05, 0.10, -0.10)]
    assert all(isinstance(seeds, int) and seeds <= MOST_SEEDS for seeds in needed)
    assert needed[0] > needed[1] > needed[2] == needed[3]  # type: ignore[operator]
    assert seeds_to_decide([Effect(KNOWN, 0.0201)], 1, 1) is None
    assert seeds_to_decide([Effect(KNOWN, 0.0199)], 1, 1) is None


def test_seeds_that_are_there_are_not_asked_for_again() -> None:
    seeds = seeds_to_decide([Effect(KNOWN, 0.10)], 4, 2)
    assert seeds == 3  # the control's; the arm has enough


def test_seeds_of_the_control_are_advised_where_they_decide_most() -> None:
    waiting = [([Effect(KNOWN, size)], 8) for size in (0.05, 0.05, 0.02)]
    found = control_advice(waiting, 1)
    assert found is not None
    more, decided = found
    assert decided == 2
    assert KNOWN.decides(0.05, 8, 1 + more)
    assert not KNOWN.decides(0.05, 8, more)
    assert control_advice([([Effect(KNOWN, 0.02)], 1)], 1) is None
    assert control_advice([], 1) is None


def test_an_arm_is_decided_by_whichever_of_its_effects_takes_fewer_seeds() -> None:
    speed = Design(noise=0.05, spread=SeedSpread(0.2), rope=0.0, level=0.95, alpha=0.0125)
    twice, alike = Effect(speed, float(np.log(2))), Effect(KNOWN, 0.0)
    alone = seeds_to_decide([alike], 1, 1)
    assert alone is not None
    assert alone >= 5
    assert seeds_to_decide([alike, twice], 1, 1) == seeds_to_decide([twice], 1, 1) == 2
    assert seeds_to_decide([alike, Effect(speed, 0.0)], 1, 1) == alone
    assert control_advice([([alike, twice], 8)], 1) == (1, 1)
