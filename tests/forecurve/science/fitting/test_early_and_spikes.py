"""Early regimes and single bad evaluations are part of the noise model: weighed, named, never cut out silently."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve.science import Curve, fit
from forecurve.science.curves.outliers import outlier_variance, stretch_variance
from forecurve.science.departures.misfit import HOLDS

from ..synthetic import sigmoid

COMPUTE = np.linspace(0, 8_000, 51)[1:]


def _curve(early: float = 0.0, seed: int = 0) -> Curve:
    """A run whose first evaluations lie `early` above the sigmoid, fading out over the first 800 GPU-hours."""
    rng = np.random.default_rng(seed)
    truth = sigmoid(COMPUTE, 0.61, 1.9, 2500, 0.2) + early * np.maximum(1 - COMPUTE / 900, 0)
    return Curve(COMPUTE, truth + rng.normal(0, 0.0035, 50), prompts=1000, samples=16, unit="GPU-hours")


def test_an_early_regime_is_set_apart_and_said() -> None:
    found = fit(_curve(early=0.12)).cutoff
    assert found is not None
    assert found.probability > 0.9
    assert 700 < found.compute < 2_100


def test_a_healthy_run_has_no_early_regime() -> None:
    assert [fit(_curve(seed=seed)).cutoff for seed in range(10)] == [None] * 10


def test_an_early_regime_moves_the_ceiling_less_than_its_interval() -> None:
    errors = [fit(_curve(early=0.12, seed=seed)).A.median - 0.61 for seed in range(8)]
    assert abs(np.mean(errors)) < 0.01


def _regime(kind: str, count: int, points: int, size: float, seed: int) -> tuple[Curve, float]:
    """A run of 8,000 GPU-hours whose first evaluations lie off its sigmoid, and where that is at 16,000."""
    rng = np.random.default_rng(seed)
    x = np.linspace(8_000 / points, 8_000, points)
    off = {"low": -size * np.ones(count), "jumping": rng.normal(0, size, count)}[kind]
    reward = sigmoid(x, 0.6, 1.4, 1500, 0.3) + rng.normal(0, 0.005, points)
    reward[:count] += off
    return Curve(x, reward), float(sigmoid(np.array([16_000.0]), 0.6, 1.4, 1500, 0.3)[0])


@pytest.mark.parametrize(("count", "points"), [(3, 20), (5, 60), (10, 60), (12, 100), (25, 100), (35, 200)])
@pytest.mark.parametrize("size", [0.06, 0.12, 0.2])
def test_an_early_regime_of_any_size_and_length_is_no_break_and_the_forecast_holds(
    count: int, points: int, size: float
) -> None:
    """Its evaluations were given a further variance of .05 at most, of which little was left where the noise was small:
    it was said to have broken, and the band of 90 % held 1 end of 15."""
    held = 0
    for seed in range(6):
        curve, end = _regime("low", count, points, size, seed)
        found = fit(curve)
        assert found.misfit in HOLDS
        assert found.cutoff is not None
        assert count <= found.cutoff.evaluations <= 1.7 * count
        band = found.predict([16_000.0])
        held += bool(band.lower90[0] <= end <= band.upper90[0])
    assert held >= 4


@pytest.mark.parametrize("size", [0.03, 0.1])
def test_early_evaluations_that_jump_about_are_an_early_regime(size: float) -> None:
    found = [fit(_regime("jumping", 8, 50, size, seed)[0]) for seed in range(8)]
    assert sum(one.cutoff is not None for one in found) >= 7
    assert {one.misfit for one in found} <= set(HOLDS)


def test_a_first_phase_is_no_early_regime() -> None:
    """It is a curve of its own, and describes the evaluations better than a cut-off does."""
    x = np.linspace(0, 300, 31)
    for seed in range(4):
        noise = np.random.default_rng(seed).normal(0, 0.004, 31)
        reward = sigmoid(x, 0.45, 2.5, 15, 0.1) + 0.3 / (1 + np.exp(-(x - 170) / 12)) + noise
        assert fit(Curve(x, reward, prompts=512, samples=16)).misfit == "two-phase"


def test_a_fall_that_came_early_is_no_early_regime() -> None:
    """Its last evaluations lie below what it once had, whatever the evaluations before the fall are called."""
    x = np.linspace(100, 4_000, 40)
    for seed in range(4):
        reward = sigmoid(x, 0.6, 1.4, 800, 0.2) + np.random.default_rng(seed).normal(0, 0.005, 40)
        reward[12:] -= 0.3
        detail = fit(Curve(x, reward)).misfit_detail
        assert detail is not None
        assert detail.fallen
        assert detail.since == x[11]


def test_the_sentence_says_which_evaluations_do_not_follow_the_curve() -> None:
    said = fit(_regime("low", 12, 100, 0.12, 0)[0]).sentence()
    assert said.endswith("The 12 evaluations before 1,000 compute units do not follow the curve.")
    assert "do not follow" not in fit(_curve()).sentence()


def test_a_single_bad_evaluation_hardly_moves_the_forecast() -> None:
    clean = _curve(seed=3)
    reward = clean.reward.copy()
    reward[30] = 0.05
    spoiled = Curve(COMPUTE, reward, prompts=1000, samples=16, unit="GPU-hours")
    a, b = fit(clean), fit(spoiled)
    assert b.outliers == pytest.approx([COMPUTE[30]])
    assert abs(a.A.median - b.A.median) < 0.2 * a.A.width
    assert b.A.width < 1.3 * a.A.width


def test_a_single_bad_evaluation_is_named_by_its_own_compute_to_the_last_digit() -> None:
    compute = 12.4 * np.arange(1, 31)
    reward = sigmoid(compute, 0.6, 1.5, 100, 0.2)
    reward[12] = 0.05
    assert fit(Curve(compute, reward, prompts=1000, samples=16, unit="GPU-hours")).outliers.tolist() == [compute[12]]


def test_a_fall_that_stays_is_no_spike() -> None:
    reward = _curve().reward.copy()
    reward[30:] -= 0.3
    assert not outlier_variance(reward, np.full(50, 1.2e-5)).any()


def test_healthy_noise_is_seldom_called_a_spike() -> None:
    rng = np.random.default_rng(0)
    flagged = [
        (outlier_variance(0.4 + rng.normal(0, 0.0035, 100), np.full(100, 0.0035**2)) > 0).sum() for _ in range(200)
    ]
    assert sum(flagged) <= 2


# --- stretches: while a verifier is down ---


def _outage(first: int, count: int, size: float, points: int = 50, seed: int = 0) -> Curve:
    x = np.linspace(8_000 / points, 8_000, points)
    reward = sigmoid(x, 0.6, 1.4, 1500, 0.25) + np.random.default_rng(seed).normal(0, 0.005, points)
    reward[first : first + count] -= size
    return Curve(x, np.clip(reward, 0, 1))


@pytest.mark.parametrize(
    ("first", "count", "points"), [(10, 4, 20), (25, 4, 50), (25, 8, 50), (60, 12, 100), (43, 4, 50)]
)
@pytest.mark.parametrize("size", [0.3, -0.3, 1.0])
def test_a_stretch_that_is_over_hardly_counts(first: int, count: int, points: int, size: float) -> None:
    """It was called a `break` and the forecast withheld, or had no name and made the interval many times as wide."""
    spoiled, clean = fit(_outage(first, count, size, points)), fit(_outage(first, count, 0.0, points))
    assert spoiled.misfit is None
    assert [len(one) for one in spoiled.stretches] == [count]
    assert spoiled.outliers == pytest.approx(spoiled.curve.compute[first : first + count])
    assert abs(spoiled.A.median - clean.A.median) < 0.5 * clean.A.width
    assert spoiled.A.width < 2 * clean.A.width


def test_a_stretch_is_known_three_evaluations_after_it_and_a_fall_until_then() -> None:
    whole = _outage(25, 4, 0.3)
    for points in range(27, 34):
        found = fit(Curve(whole.compute[:points], whole.reward[:points]))
        assert bool(found.stretches) == (points >= 32)
        assert (found.misfit in HOLDS) == (points >= 32)


def test_updates_find_a_stretch_as_a_refit_does() -> None:
    whole = _outage(25, 4, 0.3)
    found = fit(Curve(whole.compute[:24], whole.reward[:24]))
    for compute, reward in zip(whole.compute[24:], whole.reward[24:], strict=True):
        found = found.update((float(compute), float(reward)))
    again = fit(whole)
    assert found.outliers.tolist() == again.outliers.tolist()
    assert found.A.median == pytest.approx(again.A.median, abs=0.05 * again.A.width)


@pytest.mark.parametrize("after", [-0.15, 0.3])
def test_a_fall_that_is_half_made_good_and_a_rise_behind_a_dip_are_no_stretches(after: float) -> None:
    reward = _outage(25, 4, 0.3).reward.copy()
    reward[29:] += after
    assert not outlier_variance(reward, np.full(50, 1.2e-5)).any()


@pytest.mark.parametrize("pace", [0.5, 1.0, 2.0, 4.0])
def test_a_run_that_climbs_back_from_a_fall_has_no_stretch(pace: float) -> None:
    """It passes where it fell from on its way to where it would have been; taken for back there it was to be ended."""
    x = np.linspace(160, 8_000, 50)
    healthy, lost = sigmoid(x, 0.6, 1.4, 2500, 0.2), np.zeros(50)
    lost[15:30] = 0.25
    lost[30:] = 0.25 * np.exp(-np.arange(1, 21) / pace)
    reward = healthy - lost + np.random.default_rng(0).normal(0, 0.004, 50)
    for points in range(30, 51):
        assert not stretch_variance(reward[:points], np.full(points, 1.6e-5)).any()


@pytest.mark.parametrize("way", [1, -1])
def test_a_run_may_grow_over_a_stretch_but_not_fall(way: int) -> None:
    growing = 0.2 + 0.01 * np.arange(30) + np.random.default_rng(0).normal(0, 0.003, 30)
    growing[14:18] += way * 0.3
    known = np.full(30, 9e-6)
    assert np.flatnonzero(stretch_variance(growing, known)).tolist() == [14, 15, 16, 17]
    assert not stretch_variance(1 - growing, known).any()


def test_noise_that_wanders_is_hardly_ever_a_stretch() -> None:
    rng = np.random.default_rng(0)
    flagged = 0
    for _ in range(200):
        walk = np.zeros(100)
        for at in range(1, 100):
            walk[at] = 0.8 * walk[at - 1] + rng.normal(0, 0.01)
        flagged += bool((stretch_variance(0.4 + walk + rng.normal(0, 0.0035, 100), np.full(100, 0.0035**2)) > 0).any())
    assert flagged <= 1


def test_the_sentence_says_which_stretch_hardly_counts() -> None:
    said = fit(_outage(25, 4, 0.3)).sentence()
    assert said.endswith("The 4 evaluations from 4,200 to 4,600 compute units lie far off both sides and hardly count.")


# --- where neighbours are averaged ---


@pytest.mark.parametrize(("points", "count"), [(900, 6), (900, 10), (2000, 20)])
@pytest.mark.parametrize("off", range(3))
def test_of_many_evaluations_a_stretch_hardly_counts_wherever_the_blocks_begin(
    points: int, count: int, off: int
) -> None:
    first = int(0.66 * points) + off
    spoiled, clean = fit(_outage(first, count, 0.4, points)), fit(_outage(first, 0, 0.0, points))
    assert spoiled.misfit is None
    assert spoiled.outliers.tolist() == spoiled.curve.compute[first : first + count].tolist()
    assert abs(spoiled.A.median - clean.A.median) < 0.5 * clean.A.width
    assert spoiled.A.width < 1.2 * clean.A.width


def test_of_many_evaluations_those_set_apart_are_counted_one_by_one() -> None:
    compute, rng = np.arange(1.0, 2001.0), np.random.default_rng(0)
    reward = sigmoid(compute, 0.7, 1.5, 300, 0.2) + rng.normal(0, 0.004, 2000)
    reward[:60] += rng.normal(0.2, 0.03, 60)
    reward[1500] = 0.1
    found = fit(Curve(compute, np.clip(reward, 0, 1), prompts=1000, samples=16))
    assert found.outliers.tolist() == [1501.0]
    assert found.cutoff is not None
    assert found.cutoff.compute == found.cutoff.evaluations + 1
    assert 60 <= found.cutoff.evaluations <= 102
    assert f" The {found.cutoff.evaluations} evaluations before " in found.sentence()


def test_long_streams_find_a_stretch_as_a_refit_does() -> None:
    whole = _outage(480, 10, 0.4, 540)
    found = fit(Curve(whole.compute[:450], whole.reward[:450]))
    for compute, reward in zip(whole.compute[450:], whole.reward[450:], strict=True):
        found = found.update((float(compute), float(reward)))
    again = fit(whole)
    assert found.outliers.tolist() == again.outliers.tolist() == whole.compute[480:490].tolist()
    assert found.A.median == pytest.approx(again.A.median, abs=0.1 * again.A.width)
