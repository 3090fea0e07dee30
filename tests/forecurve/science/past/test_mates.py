"""Forecasts drawn to how the other seeds of their arms ended: as far as that would have helped past ones."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve.science import Conformal, Curve, Estimate, Hindsight, Past, backtest, fit
from forecurve.science.arrays import FloatArray
from forecurve.science.backtesting.siblings import Siblings
from forecurve.science.past.kin import Kin
from forecurve.science.past.mates import Drawn, drawn_to_ends

COMPUTE = np.arange(1.0, 41.0)


def arms_of_three(rng: np.random.Generator, between: float, within: float) -> FloatArray:
    """How twelve arms of three seeds ended, (12, 3)."""
    return 0.5 + between * rng.normal(size=(12, 1)) + within * rng.normal(size=(12, 3))


def drawn(ends: FloatArray, medians: FloatArray, sds: FloatArray, width: float = 1.0) -> Drawn:
    """The last seed of the last arm is the new run."""
    came = ends.ravel()
    of = np.repeat(np.arange(len(ends)), ends.shape[1])
    mates = [
        [float(came[other]) for other in range(len(came) - 1) if of[other] == of[at] and other != at]
        for at in range(len(came))
    ]
    return drawn_to_ends(medians, sds, came[:-1], mates, width)


def test_forecasts_that_say_nothing_go_where_their_arms_seeds_ended() -> None:
    ends = arms_of_three(np.random.default_rng(1), between=0.2, within=0.005)
    found = drawn(ends, np.full(36, 0.5), np.full(36, 0.2))
    assert 0.5 + found.move[-1] == pytest.approx(ends[-1, :2].mean(), abs=0.01)
    assert found.narrower[-1] < 0.15
    assert found.share[-1] > 0.95


def test_forecasts_that_know_better_than_their_arm_stay_where_they_are() -> None:
    rng = np.random.default_rng(2)
    ends = arms_of_three(rng, between=0.02, within=0.2)
    found = drawn(ends, ends.ravel() + 0.01 * rng.normal(size=36), np.full(36, 0.01))
    assert np.abs(found.move).max() < 0.005
    assert found.narrower.min() > 0.97


def test_a_sure_forecast_is_drawn_less_than_an_unsure_one() -> None:
    rng = np.random.default_rng(3)
    ends = arms_of_three(rng, between=0.2, within=0.05)
    sds = np.where(np.arange(36) % 2, 0.02, 0.2)
    medians = ends.ravel() + sds * rng.normal(size=36)
    medians[-2:] = 0.5
    less, more = (drawn(ends, medians, np.append(sds[:-1], sd)) for sd in (0.02, 0.2))
    assert abs(less.move[-1]) < 0.8 * abs(more.move[-1])
    assert less.narrower[-1] > more.narrower[-1]


@pytest.mark.parametrize(("of_new", "known"), [(0, 6), (2, 2)])
def test_nothing_is_drawn_without_seeds_of_its_arm_or_where_few_past_runs_have_any(of_new: int, known: int) -> None:
    mates = [*([0.9, 0.9] if at < known else [] for at in range(8)), [0.9] * of_new]
    found = drawn_to_ends(np.full(9, 0.5), np.full(9, 0.2), np.full(8, 0.9), mates)
    assert (found.move.tolist(), found.narrower.tolist(), found.share.tolist()) == ([0.0] * 9, [1.0] * 9, [0.0] * 9)


def test_in_another_range_of_rewards_all_is_the_same() -> None:
    rng = np.random.default_rng(4)
    ends = arms_of_three(rng, between=0.1, within=0.02)
    medians, sds = ends.ravel() + 0.1 * rng.normal(size=36), rng.uniform(0.05, 0.2, 36)
    one, hundred = drawn(ends, medians, sds), drawn(100 * ends, 100 * medians, 100 * sds, 100.0)
    assert hundred.move == pytest.approx(100 * one.move)
    assert hundred.narrower == pytest.approx(one.narrower)


def test_the_interval_goes_with_the_forecast_and_forgets_which_side_was_the_wider() -> None:
    """Nine arms of two seeds end anywhere, their forecasts at .9 with hardly room above."""
    said = Estimate(0.9, 0.4, 0.95)
    ends = np.linspace(0.05, 0.85, 9)
    past = [Past(f"{at} {seed}", 0.25, said, end, mates=(end,)) for at, end in enumerate(ends) for seed in range(2)]
    conformal = Conformal.of(Hindsight.of(past, said, mates=(0.2, 0.21)))
    told = conformal.apply(said)
    assert told.median == pytest.approx(0.205, abs=0.02)
    assert conformal.even > 0.9
    assert told.upper - told.median == pytest.approx(told.median - told.lower, rel=0.1)
    assert told.width < 0.2


def test_seeds_that_are_only_ahead_move_the_expected_end_and_take_nothing_off_the_interval() -> None:
    """Arms end anywhere and their seeds together; the new one's seed is at half, and expected to end at .7."""
    said = Estimate(0.5, 0.2, 0.8)
    past = [Past(f"{at}", 0.1, said, end, mates=(end,)) for at, end in enumerate(np.linspace(0.1, 0.9, 9))]
    alone = Conformal.of(Hindsight.of(past, said))
    sure, unsure, over = (
        Conformal.of(Hindsight.of(past, said, **told)).apply(said)  # type: ignore[arg-type]
        for told in (
            {"ahead": [Estimate(0.7, 0.68, 0.72)]},
            {"ahead": [Estimate(0.7, 0.3, 1.0)]},
            {"ahead": [Estimate(0.3, 0.2, 0.4)], "mates": (0.7,)},  # one that is over tells it all
        )
    )
    before = alone.apply(said)
    assert sure.median == pytest.approx(0.7, abs=0.02)
    assert before.median + 0.03 < unsure.median < sure.median - 0.03
    assert (sure.lower, unsure.lower) == (before.lower, before.lower)
    assert sure.upper == pytest.approx(min(before.upper + sure.median - before.median, 1.0))
    assert over.median == pytest.approx(0.7, abs=0.02)
    assert over.width < 0.5 * before.width
    lower = Hindsight.of(past, said, ahead=[Estimate(0.3, 0.28, 0.32)])
    assert lower.shift == pytest.approx(0.0, abs=1e-6)  # a gain is less sure for it, not less
    assert lower.sd == pytest.approx(0.2, abs=0.02)


def test_seeds_ahead_move_nothing_while_no_past_runs_tell_how_far_seeds_end_apart() -> None:
    said = Estimate(0.5, 0.2, 0.8)
    past = [Past(f"{at}", 0.1, said, end) for at, end in enumerate(np.linspace(0.1, 0.9, 9))]
    told = Conformal.of(Hindsight.of(past, said, ahead=[Estimate(0.7, 0.68, 0.72)]))
    assert (told.lean, told.ahead) == (0.0, 0)
    assert told == Conformal.of(Hindsight.of(past, said))


def flat_and_rising() -> list[Curve]:
    """Six arms of three seeds: of each second one all seeds stay at 0."""
    rng = np.random.default_rng(5)
    curves = []
    for arm, seed in np.ndindex(6, 3):
        ceiling = 0.0 if arm % 2 else 0.5 + 0.05 * arm
        reward = ceiling / (1 + (12.0 / COMPUTE) ** 3) + (ceiling > 0) * 0.01 * rng.normal(size=40)
        curves.append(Curve(COMPUTE, np.clip(reward, 0, 1), name=f"arm{arm} s{seed}", seed=seed))
    return curves


@pytest.mark.slow  # 8 s
def test_a_further_seed_of_an_arm_that_never_rose_is_not_expected_to() -> None:
    rows = {row.series: row for row in backtest(flat_and_rising(), fractions=[0.1], prior="siblings").rows}
    flat = [row for name, row in rows.items() if row.actual == 0]
    assert len(flat) == 9
    assert max(row.predicted or 0.0 for row in flat) < 0.1
    assert min(row.raw.median for row in flat if row.raw is not None) > 0.2  # by its own evaluations and the prior
    assert np.mean([abs(row.error or 0.0) for row in rows.values()]) < 0.05


def test_a_run_tells_nothing_of_itself_nor_does_its_copy() -> None:
    curves = flat_and_rising()
    kin = Kin([*curves, Curve(COMPUTE, curves[0].reward, name="arm0 s7", seed=7)])
    one, other = (float(curve.reward[-4:].mean()) for curve in curves[1:3])
    for same in (0, 18):
        assert sorted(kin.mates_ended(same, 40.0)) == pytest.approx(sorted([one, other]))
        assert kin.mates_ended(1, 40.0, but=same) == (pytest.approx(other),)


def test_seeds_tell_how_they_stood_at_the_budget_and_those_that_fell_short_nothing() -> None:
    longer = Curve(COMPUTE, COMPUTE / 100, name="a s0", seed=0)
    shorter = longer.until(17.0)
    shorter = Curve(shorter.compute, shorter.reward + 0.01, name="a s1", seed=1)
    kin = Kin([longer, shorter])
    assert kin.mates_ended(None, 20.0, "a") == (pytest.approx(0.195),)
    assert sorted(kin.mates_ended(None, 18.0, "a")) == pytest.approx([0.18, 0.18])
    assert kin.mates_ended(None, 50.0, "a") == ()


def test_runs_of_a_sweep_learn_from_their_arms_seeds_as_the_backtest_has_it() -> None:
    curves = flat_and_rising()
    new = curves[-1].until(4.0)
    siblings = Siblings(curves[:-1])
    arm = curves[-1].arm
    told = siblings.hindsight(fit(new, prior=siblings.prior(arm=arm)), 40.0, arm=arm)
    assert told is not None
    assert list(told.mates) == [0.0, 0.0]
    assert Conformal.of(told).apply(told.estimate).median < 0.1


def test_a_seed_at_half_of_the_budget_tells_of_one_at_a_tenth_and_one_at_its_stage_does_not() -> None:
    curves = flat_and_rising()
    ahead, beside, new = curves[-3].until(22.0), curves[-2].until(5.0), curves[-1].until(4.0)
    arm = curves[-1].arm
    siblings = Siblings([*curves[:-3], ahead, beside])
    told = siblings.hindsight(fit(new, prior=siblings.prior(arm=arm, now=4.0, budget=40.0)), 40.0, arm=arm)
    assert told is not None
    assert (list(told.mates), len(told.ahead)) == ([], 1)
    conformal = Conformal.of(told)
    assert conformal.ahead == 1
    assert conformal.apply(told.estimate).median < 0.5 * told.estimate.median
    assert "and 1 of its seeds further along" in conformal.words


def test_runs_that_never_moved_are_copies_of_one_only_by_name_and_seed() -> None:
    names = [("a s0", 0), ("a s1", 1), ("b s0", 0), ("a s0", 0)]
    kin = Kin([Curve(COMPUTE, np.zeros(40), name=name, seed=seed) for name, seed in names])
    assert sorted(kin.others(0)) == [1, 2]
    assert kin.mates_ended(0, 40.0) == (0.0,)
