"""Streaming: one more evaluation gives what a refit gives."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forecurve.science import Curve, CurveError, Evaluation, Fit, fit

from ..synthetic import sigmoid


def _run(seed: int, size: int = 70, spike: int | None = None) -> Curve:
    rng = np.random.default_rng(seed)
    compute = np.linspace(0, 16_000, size + 1)[1:]
    wander = np.zeros(size)
    for at in range(1, size):
        wander[at] = 0.7 * wander[at - 1] + rng.normal(0, 0.004)
    reward = sigmoid(compute, 0.61, 1.9, 2500, 0.2) + rng.normal(0, 0.0035, size) + wander
    if spike is not None:
        reward[spike] = 0.0
    return Curve(compute, reward, prompts=1000, samples=16)


def _distance(a: Fit, b: Fit, name: str = "A") -> float:
    """The largest difference of a parameter's median and ends, in widths of its interval."""
    x, y = getattr(a, name), getattr(b, name)
    return float(max(abs(x.median - y.median), abs(x.lower - y.lower), abs(x.upper - y.upper)) / y.width)


@pytest.mark.parametrize("prior", [pytest.param("none", marks=pytest.mark.slow), "paper"])
def test_a_stream_of_updates_stays_at_what_refits_say(prior: str) -> None:
    whole = _run(seed=1)
    streamed = fit(whole.until(1400), prior=prior)
    apart, steps = [], 0
    for compute, reward in zip(whole.compute[streamed.points :], whole.reward[streamed.points :], strict=True):
        streamed = streamed.update((compute, reward))
        steps += "stream" in streamed.__dict__
        apart.append(_distance(streamed, fit(whole.until(compute), prior=prior)))
    assert streamed.points == 70
    assert streamed.curve.reward.tolist() == whole.reward.tolist()
    assert steps > 25, "most updates need no refit"
    assert np.median(apart) < 0.01
    assert max(apart) < 0.15


def test_a_jump_far_off_all_that_the_lattice_holds_is_looked_at_anew() -> None:
    """Where hardly any compute is seen nothing in the lattice rises as fast: all of its nodes miss the jump alike."""
    compute, reward = 1.0 + 1e-7 * np.arange(89), 0.2 + np.random.default_rng(1).normal(0, 0.02, 89)
    reward[-1] = 1.0
    streamed = fit(Curve(compute[:-1], reward[:-1])).update((compute[-1], reward[-1]))
    ours, theirs = (found.predict([2.0]).at(0) for found in (streamed, fit(Curve(compute, reward))))
    assert (ours.lower, ours.median, ours.upper) == pytest.approx((theirs.lower, theirs.median, theirs.upper), abs=0.01)


def test_a_run_that_is_flat_is_not_refitted_for_lying_at_the_edge_of_what_there_is() -> None:
    rng = np.random.default_rng(0)
    compute, reward = np.linspace(100, 10_000, 100), 0.5 + 0.01 * rng.standard_normal(100)
    whole = Curve(compute, reward, prompts=1000, samples=4)
    streamed, steps = fit(whole.until(compute[59])), 0
    for point in zip(compute[60:], reward[60:], strict=True):
        streamed = streamed.update(point)
        steps += "stream" in streamed.__dict__
    assert steps >= 30
    assert _distance(streamed, fit(whole)) < 0.05


def test_midpoints_that_grow_possible_as_compute_grows_are_known_to_the_stream() -> None:
    """Where a run has not bent yet, its midpoint may lie anywhere up to twenty times the compute that there is."""
    compute = np.geomspace(1, 6000, 25)[:13]
    reward = sigmoid(compute, 0.6, 1.8, 2000, 0.2) + np.random.default_rng(1).normal(0, 0.005, 13)
    streamed, apart = fit(Curve(compute[:9], reward[:9], prompts=1000, samples=16)), []
    for point in zip(compute[9:], reward[9:], strict=True):
        streamed = streamed.update(point)
        apart.append(_distance(streamed, fit(streamed.curve)))
    assert max(apart) < 0.05  # 0.21 where the box of midpoints stays what it was


def test_the_edge_of_a_lattice_is_heeded_where_finer_nodes_lie_there() -> None:
    compute = 2.0 ** np.arange(12)
    reward = sigmoid(compute, 0.65, 1.5, 3000, 0.25) + np.random.default_rng(5).normal(0, 0.008, 12)
    streamed, apart = fit(Curve(compute[:9], reward[:9], prompts=2000, samples=1), prior="paper"), []
    assert not streamed.table.lattice.plainly_laid
    for point in zip(compute[9:], reward[9:], strict=True):
        streamed = streamed.update(point)
        again = fit(streamed.curve, prior="paper")
        apart.append([_distance(streamed, again, name) for name in ("A", "C_mid")])
    assert np.max(apart) < 0.05  # 0.36 where only nodes of the lattice as it was laid are asked


def test_parameters_of_the_lattice_do_not_jump_by_its_rows() -> None:
    """Where a stream keeps its lattice and refits lay others, what they say is the same."""
    whole = _run(seed=1)
    streamed, apart = fit(whole.until(4000), prior="paper"), []
    for compute, reward in zip(whole.compute[streamed.points :], whole.reward[streamed.points :], strict=True):
        streamed = streamed.update((compute, reward))
        again = fit(whole.until(compute), prior="paper")
        apart.append([_distance(streamed, again, name) for name in ("B", "C_mid")])
    assert (np.median(apart, axis=0) < 0.025).all()
    assert np.max(apart) < 0.1


def test_a_spike_is_found_two_evaluations_later_by_the_stream_as_by_a_refit() -> None:
    whole = _run(seed=2, spike=40)
    streamed = fit(whole.until(whole.compute[35]))
    for compute, reward in zip(whole.compute[36:50], whole.reward[36:50], strict=True):
        streamed = streamed.update((compute, reward))
    assert streamed.outliers == pytest.approx([whole.compute[40]])
    assert _distance(streamed, fit(whole.until(whole.compute[49]))) < 0.1


@pytest.mark.parametrize("size", [0.02, 0.15, 0.4])
def test_what_nobody_expected_is_known_at_once_as_to_a_refit(size: float) -> None:
    """A fall, or an outlier to be: hypotheses and nodes that had carried nothing may now carry all."""
    whole = _run(seed=5)
    streamed = fit(whole.until(whole.compute[40]))
    for at in (41, 42, 43):
        streamed = streamed.update((whole.compute[at], whole.reward[at]))
    for at in (44, 45):
        streamed = streamed.update((whole.compute[at], whole.reward[at] - size))
        again = fit(streamed.curve)
        assert _distance(streamed, again) < 0.045
        assert streamed.misfit == again.misfit


def test_an_update_leaves_the_old_fit_as_it_was() -> None:
    whole = _run(seed=3)
    before = fit(whole.until(8000))
    a = before.update((8200.0, 0.6)).A
    before.update((8200.0, 0.1))
    assert a == before.update((8200.0, 0.6)).A
    assert before.points == whole.until(8000).points


def test_an_evaluation_may_have_its_own_size_counts_or_variance() -> None:
    whole = _run(seed=3).until(8000)
    counts = np.random.default_rng(0).integers(0, 5, 50)
    for point in (
        Evaluation(8300, 0.6, prompts=10, samples=1),
        Evaluation(8300, 0.6, variance=1e-6),
        Evaluation(8300, float(counts.mean()) / 4, samples=4, counts=counts),
    ):
        updated = fit(whole).update(point)
        assert updated.points == whole.points + 1
        assert updated.A.lower < updated.A.median < updated.A.upper
    small = fit(whole).update(Evaluation(8300, 0.45, prompts=5, samples=1)).A
    large = fit(whole).update(Evaluation(8300, 0.45)).A
    assert abs(small.median - fit(whole).A.median) < abs(large.median - fit(whole).A.median)


def test_what_one_evaluation_tells_of_the_size_of_all_makes_a_refit() -> None:
    """Evaluations of unknown size are guessed at until one of them states its own."""
    whole = _run(seed=5, size=40)
    streamed = fit(Curve(whole.compute[:15], whole.reward[:15]))
    for compute, reward in zip(whole.compute[15:20], whole.reward[15:20], strict=True):
        streamed = streamed.update(Evaluation(compute, reward, prompts=1000, samples=4))
    assert streamed.setting.source == streamed.curve.noise.source == "binomial"
    assert _distance(streamed, fit(streamed.curve)) < 0.1
    told = streamed.update(Evaluation(whole.compute[20], whole.reward[20], variance=1e-6))
    assert told.setting.source == told.curve.noise.source == "known"
    assert _distance(told, fit(told.curve)) < 1e-12


def test_samples_that_are_told_at_last_make_a_refit() -> None:
    """Prompts alone were taken for all answers; of those before, samples are unknown from here on."""
    whole = _run(seed=5, size=30)
    before = fit(Curve(whole.compute, whole.reward, prompts=100))
    told = before.update(Evaluation(16_500, 0.6, samples=4))
    again = fit(told.curve)
    assert told.curve.sizes[0] == 400
    assert told.setting.unit_variance == again.setting.unit_variance < before.setting.unit_variance / 3
    assert _distance(told, again) < 1e-12


def test_beyond_the_evaluations_that_are_fitted_the_clock_stays_that_of_their_means() -> None:
    """1,200 evaluations are 400 means of three; the wandering part's memory is told from one mean to the next."""
    rng = np.random.default_rng(7)
    compute, wander = np.arange(1, 1301) * 10.0, np.zeros(1300)
    for at in range(1, 1300):
        wander[at] = 0.97 * wander[at - 1] + rng.normal(0, 0.01)
    curve = Curve(compute, sigmoid(compute, 0.6, 1.5, 3000, 0.2) + wander + rng.normal(0, 0.01, 1300))
    streamed = fit(curve.until(12_000))
    assert streamed.setting.usual_gap == pytest.approx(30)
    for at in range(1200, 1203):
        streamed = streamed.update((compute[at], curve.reward[at]))
    again = fit(streamed.curve)
    assert "stream" in streamed.__dict__
    assert streamed.setting.usual_gap == again.setting.usual_gap == pytest.approx(30)
    a, b = (found.predict_evaluation(12_100.0).at(0) for found in (streamed, again))
    assert abs(a.median - b.median) < 0.1 * b.width


@pytest.mark.parametrize(
    ("point", "field"),
    [
        ((8000.0, 0.6), "compute"),
        ((7000.0, 0.6), "compute"),
        ((float("nan"), 0.6), "compute"),
        ((9000.0, 1.2), "reward"),
        ((9000.0, float("nan")), "reward"),
        ((9000.0, 0.6, -4.0), "prompts"),
    ],
)
def test_a_bad_evaluation_is_named_and_changes_nothing(point: tuple[float, ...], field: str) -> None:
    curve = _run(seed=3)
    compute = np.concatenate([curve.compute[:20], [8000.0]])
    known = fit(Curve(compute, curve.reward[:21], prompts=1000, samples=16))
    with pytest.raises(CurveError, match=field) as caught:
        known.update(point)
    assert caught.value.field == field
    assert known.points == 21


@settings(max_examples=25, deadline=None)
@given(
    gaps=st.lists(st.floats(0.01, 100), min_size=12, max_size=30),
    rewards=st.lists(st.floats(0, 1), min_size=30, max_size=30),
)
def test_any_run_can_be_streamed(gaps: list[float], rewards: list[float]) -> None:
    compute = np.cumsum(gaps)
    streamed = fit(Curve(compute[:9], rewards[:9]))
    for at in range(9, len(compute)):
        streamed = streamed.update((compute[at], rewards[at]))
    whole = fit(Curve(compute, rewards[: len(compute)]))
    assert streamed.points == whole.points
    assert _distance(streamed, whole) < 0.35


def test_a_restart_ahead_is_known_to_the_stream_as_to_a_refit() -> None:
    whole = _run(seed=5)
    parts = {"prompts": 1000, "samples": 16, "restarts": [9_000.0]}
    streamed = fit(Curve(whole.compute[:36], whole.reward[:36], **parts))
    for compute, reward in zip(whole.compute[36:46], whole.reward[36:46], strict=True):
        streamed = streamed.update((compute, reward))
    assert _distance(streamed, fit(Curve(whole.compute[:46], whole.reward[:46], **parts))) < 0.05
