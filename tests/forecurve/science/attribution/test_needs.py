"""How many seeds decide: the closed form against simulated sweeps judged in full."""

from __future__ import annotations

import numpy as np
import pytest

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


def test_the_smallest_difference_is_claimed_four_times_in_five() -> None:
    # two claims are made of one arm (ceiling, efficiency), so that one gets about half of the 5 %
    design = Design(NOISE, SeedSpread(TAU), 0.02, 0.95, alpha=0.0253)
    assert _share("ceiling up", _smallest(design, 3, 3), 3, 100) == pytest.approx(0.8, abs=0.1)


def test_the_seeds_said_to_show_sameness_do_show_it() -> None:
    seeds = seeds_to_decide([Effect(KNOWN, 0.0)], 1, 1)
    assert seeds is not None
    assert _share("no difference shown", 0.0, seeds, 40) >= 0.7
    assert _share("no difference shown", 0.0, seeds - 3, 40) < 0.7


def test_the_smallest_difference_passes_its_own_test_four_times_in_five() -> None:
    """Uneven arms by simulation: an observed difference counts that the edge of the region would show once in 20."""
    smallest, rng = _smallest(KNOWN, 2, 4), np.random.default_rng(0)
    runs = rng.normal(0.6, TAU, (100_000, 6)) + rng.normal(0, NOISE, (100_000, 6))
    chance = runs[:, :2].mean(axis=1) - runs[:, 2:].mean(axis=1)
    threshold = float(np.quantile(KNOWN.rope + chance, 0.95))
    assert (smallest + chance > threshold).mean() == pytest.approx(0.8, abs=0.01)


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
