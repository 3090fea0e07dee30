"""Replays: what each policy sees, spends and chooses on sweeps whose truth is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecurve.science import Curve
from forecurve.science.simulator import (
    BestSoFar,
    ConstantCut,
    EqualForecast,
    Forecasting,
    SuccessiveHalving,
    recorded_sweep,
    replay,
    synthetic_sweep,
)

from .crossing import COMPUTE, CROSSING


def test_a_constant_cut_takes_the_leader_and_changes_its_mind_where_the_curves_cross() -> None:
    found = replay(CROSSING, ConstantCut())
    at = {
        round(compute / CROSSING.full_cost, 3): CROSSING.tracks[arm].name
        for compute, arm in zip(found.compute, found.chosen, strict=True)
    }
    assert at[0.2] == "hare"
    assert at[1.0] == "tortoise"
    crossing = next(share for share in sorted(at) if share > 0 and at[share] == "tortoise")
    hare, tortoise = CROSSING.tracks[0].curve.reward, CROSSING.tracks[1].curve.reward
    assert crossing == pytest.approx(COMPUTE[np.flatnonzero(tortoise > hare)[0]] / 16_000)
    assert found.total == CROSSING.full_cost


def test_forecasts_find_the_later_winner_before_it_leads() -> None:
    ours = replay(CROSSING, Forecasting(), most=0.3 * CROSSING.full_cost)
    cut = replay(CROSSING, ConstantCut())
    share = 0.2 * CROSSING.full_cost
    assert ours.regret_at(share) == 0.0
    assert cut.regret_at(share) > 0.09
    assert ours.settled < cut.compute[np.flatnonzero(cut.regret == 0)[0]]


def test_equal_forecasts_spend_evenly() -> None:
    found = replay(CROSSING, EqualForecast(), most=0.15 * CROSSING.full_cost)
    np.testing.assert_allclose(found.compute % (4 * 400), 0, atol=1e-6)


@pytest.mark.parametrize(("first", "eta"), [(3, 2), (5, 2), (3, 4)])
def test_halving_spends_what_its_rungs_cost(first: int, eta: int) -> None:
    sweep = synthetic_sweep(1, arms=8, noise="white")
    found = replay(sweep, SuccessiveHalving(first, eta))
    gap, spent, alive, rung, reached = 400.0, 0.0, 8, first, 0
    while alive > 1:
        spent += alive * (rung - reached) * gap  # the start, at compute 0, is free and no evaluation of a rung
        reached, rung, alive = rung, rung * eta, max(alive // eta, 1)
    assert found.total == pytest.approx(spent)


def test_a_replay_that_ends_before_any_choice_is_a_choice_at_random() -> None:
    found = replay(CROSSING, EqualForecast(), most=2000.0)
    assert len(found.compute) == 0
    assert 2000 <= found.total == found.settled < 2400 + 1e-9
    assert found.regret_at(found.total) == found.blind > 0


def test_best_so_far_ends_when_its_best_is_finished() -> None:
    found = replay(CROSSING, BestSoFar(first=5))
    assert CROSSING.tracks[found.chosen[-1]].name == "hare"  # it never learns that another would have passed
    assert found.total == pytest.approx(16_000 + 3 * 4 * 400)


POLICIES = [ConstantCut, lambda: BestSoFar(4), lambda: SuccessiveHalving(4, 3)]


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), arms=st.integers(2, 9), which=st.integers(0, 2))
def test_every_replay_spends_more_and_more_up_to_the_whole_sweep(seed: int, arms: int, which: int) -> None:
    sweep = synthetic_sweep(seed, arms=arms, noise="white", evaluations=15)
    found = replay(sweep, POLICIES[which]())
    assert (np.diff(found.compute) >= 0).all()
    assert found.total <= sweep.full_cost * (1 + 1e-9)
    assert (found.regret >= 0).all()
    assert found.blind >= 0
    finals = np.array([track.final for track in sweep.tracks])
    np.testing.assert_allclose(found.regret, finals.max() - finals[found.chosen])
    assert found.regret_at(-1.0) == found.blind


def test_synthetic_sweeps_have_the_spread_that_they_are_named_after() -> None:
    finals, noise = [], []
    for seed in range(60):
        sweep = synthetic_sweep(seed, arms=10, spread="siblings", noise="white", horizon=1e9, evaluations=30)
        finals += [track.final for track in sweep.tracks]  # at such a compute the ceiling itself
        noise += [track.curve.reward[-5:] - track.final for track in sweep.tracks]
    assert np.mean(finals) == pytest.approx(0.61, abs=0.004)
    assert np.std(finals) == pytest.approx(0.02, rel=0.15)
    assert np.std(noise) == pytest.approx(0.0035, rel=0.1)


def test_wandering_noise_hangs_together() -> None:
    residual = []
    for seed in range(40):
        sweep = synthetic_sweep(seed, arms=2, noise="ar", horizon=1e9, evaluations=60)
        residual += [track.curve.reward[10:] - track.final for track in sweep.tracks]
    r = np.array(residual)
    assert r.std() == pytest.approx(np.hypot(0.006, 0.0035), rel=0.15)
    lag = (r[:, 1:] * r[:, :-1]).mean() / (r**2).mean()
    assert lag == pytest.approx(0.7 * 0.006**2 / (0.006**2 + 0.0035**2), abs=0.08)


def test_sweeps_are_reproducible_by_seed() -> None:
    one, same, other = (synthetic_sweep(seed, noise="ar") for seed in (4, 4, 5))
    np.testing.assert_array_equal(one.tracks[3].curve.reward, same.tracks[3].curve.reward)
    assert not np.array_equal(one.tracks[3].curve.reward, other.tracks[3].curve.reward)


def test_recorded_arms_are_cut_to_the_shortest_and_worth_their_last_tenth() -> None:
    long = Curve(np.arange(1, 41), np.linspace(0.1, 0.5, 40), name="long")
    short = Curve(np.arange(1, 31), np.linspace(0.2, 0.4, 30), name="short")
    sweep = recorded_sweep([long, short])
    assert sweep.horizon == 30
    assert sweep.tracks[0].curve.points == 30
    assert sweep.tracks[0].final == pytest.approx(np.linspace(0.1, 0.5, 40)[27:30].mean())
    assert sweep.tracks[1].final == pytest.approx(np.linspace(0.2, 0.4, 30)[-3:].mean())


def test_an_arm_that_ends_before_the_horizon_is_asked_no_further() -> None:
    """There is nothing more to see of it, however much its forecast leaves open."""
    long, short = CROSSING.tracks[1].curve, CROSSING.tracks[0].curve.until(4000)
    found = replay(recorded_sweep([long, short], horizon=16_000), Forecasting())
    assert found.total == 20_000
    assert found.chosen[-1] == 0


def test_best_so_far_chooses_once_every_arm_is_at_its_first_point() -> None:
    """One that is over before that is at its end; the others are waited for."""
    short, long = CROSSING.tracks[2].curve.until(1200), CROSSING.tracks[0].curve
    found = replay(recorded_sweep([short, long], horizon=16_000), BestSoFar(first=11))
    assert found.compute[0] == 1200 + 4000
