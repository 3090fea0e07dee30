"""The evidence against a forecast: bounded while it holds, and each of its parts by its definition."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve.science import FrozenForecast, fit, freeze, watch
from forecurve.science.arrays import FloatArray
from forecurve.science.posterior.sigmoid import reward_at
from forecurve.science.watching.evidence import Evidence, e_process, start_weights
from forecurve.science.watching.standing import CLIP
from forecurve.science.watching.surprise import Mixture, innovations
from forecurve.science.watching.watch import ALERT_THRESHOLD, WARN_THRESHOLD

from ..synthetic import noisy_curve

FROZEN = freeze(fit(noisy_curve(0, last=4000, points=25)))
LATER = np.linspace(4160, 16000, 75)


def _forecast(frozen: FrozenForecast) -> Mixture:
    return frozen.mixture(LATER, np.full(len(LATER), frozen.last_variance), frozen.clock(LATER))


def _futures(frozen: FrozenForecast, runs: int, inflation: float, seed: int) -> FloatArray:
    """Futures from the forecast's own draws: a curve, a noise scale, a wandering part and sampling noise; (runs, H)."""
    rng = np.random.default_rng(seed)
    k = rng.integers(0, len(frozen.A), runs)
    curves = reward_at(LATER, frozen.A[k], frozen.B[k], frozen.C_mid[k], frozen.R0[k]).T
    eta, rho = np.array(frozen.hypotheses)[frozen.hypothesis[k]].T
    sd = inflation * np.sqrt(frozen.scale[k])
    state = frozen.state[k] + np.sqrt(frozen.state_variance[frozen.hypothesis[k]]) * sd * rng.normal(size=runs)
    wandering = np.empty((runs, len(LATER)))
    for t in range(len(LATER)):
        state = rho * state + np.sqrt(eta * (1 - rho**2)) * sd * rng.normal(size=runs)
        wandering[:, t] = state
    return curves + wandering + np.sqrt(frozen.last_share) * sd[:, None] * rng.normal(size=(runs, len(LATER)))


@pytest.mark.parametrize(
    ("inflation", "warn", "alert"),
    [(1.0, 0.05, 0.01), (1.2, 0.05, 0.01), pytest.param(1.5, 0.1, 0.02, marks=pytest.mark.slow)],
)
def test_false_alarms_are_rare_when_the_forecast_holds(inflation: float, warn: float, alert: float) -> None:
    """2,000 futures of 75 evaluations, also with a noise larger than assumed. Twice as many false alarms as allowed
    would be found 99 times in 100."""
    forecast = _forecast(FROZEN)
    reward = _futures(FROZEN, 2_000, inflation, seed=1)
    below = reward < forecast.moments()[0]
    sharp = np.where(below, e_process(innovations(forecast, reward), FROZEN.horizon), -np.inf).max(axis=1)
    robust = np.where(below, e_process(innovations(forecast, reward, CLIP), FROZEN.horizon), -np.inf).max(axis=1)
    assert (sharp >= np.log(WARN_THRESHOLD)).mean() <= warn
    assert (robust >= np.log(ALERT_THRESHOLD)).mean() <= alert


def _dense(weight: FloatArray, mean: FloatArray, factor: FloatArray, dof: float) -> Mixture:
    """J pieces of any covariances, by Cholesky's factors (J, H, H): as many parts as evaluations, which stay."""
    pieces, size = mean.shape
    loading = factor.transpose(1, 0, 2)
    return Mixture(
        weight=weight,
        mean=mean.T,
        variance=(loading**2).sum(axis=2),
        sampling=np.zeros((size, pieces)),
        loading=loading,
        start=np.ones((pieces, size)),
        carried=np.ones((size, size)),
        fresh=np.zeros((size, pieces, size)),
        dof=dof,
    )


@pytest.mark.parametrize(("change", "most"), [("grows", 0.33), ("is small for long", 0.06)])
def test_a_noise_that_changes_is_learned_on_the_way(change: str, most: float) -> None:
    """To four times its standard deviation, or from a twentieth back to what was frozen: where every evaluation since
    the freeze tells as much as the last, .38 and .15 of the runs are warned of."""
    forecast, rng = _forecast(FROZEN), np.random.default_rng(1)
    mean, at = forecast.moments()[0], np.arange(len(LATER))
    sd = np.sqrt(np.median(FROZEN.scale) * FROZEN.last_share) * (
        4 ** (at / at[-1]) if change == "grows" else np.where(at < 60, 0.05, 1.0)
    )
    reward = mean + sd * rng.normal(size=(1000, len(LATER)))
    evidence = np.where(reward < mean, e_process(innovations(forecast, reward), FROZEN.horizon), -np.inf)
    assert (evidence.max(axis=1) >= np.log(WARN_THRESHOLD)).mean() <= most


@pytest.mark.parametrize("clip", [np.inf, CLIP])
def test_the_expected_evidence_never_exceeds_one_while_the_forecast_holds(clip: float) -> None:
    """By simulation, at every evaluation: the defining property of an e-process, and what follows by Ville."""
    weight, mean, dof = np.array([0.7, 0.3]), np.array([[0.5] * 8, [0.52] * 8]), 12.0
    factor = np.stack([np.linalg.cholesky(1e-4 * (np.eye(8) + share)) for share in (0.5, 2.0)])
    mixture = _dense(weight, mean, factor, dof)
    rng = np.random.default_rng(4)
    runs = 40_000
    piece = rng.choice(2, size=runs, p=weight)
    scale = np.sqrt(dof / rng.chisquare(dof, runs))
    normal = np.einsum("rhk,rk->rh", factor[piece], rng.normal(size=(runs, 8)))
    value = np.exp(e_process(innovations(mixture, mean[piece] + scale[:, None] * normal, clip), 8))
    bounded = np.minimum(value, 50.0)  # its tail is heavy: what lies beyond is left to the next line
    assert (bounded.mean(axis=0) <= 1.0 + 3 * bounded.std(axis=0) / np.sqrt(runs)).all()
    assert (value.max(axis=1) >= 20).mean() <= 0.05


def test_whitening_by_pieces_is_dense_linear_algebra_for_one_piece_with_a_known_scale() -> None:
    rng = np.random.default_rng(6)
    root = rng.normal(size=(9, 9))
    covariance = root @ root.T + 9 * np.eye(9)
    mean, reward = rng.normal(size=9), rng.normal(size=(3, 9))
    one = _dense(np.array([1.0]), mean[None], np.linalg.cholesky(covariance)[None], dof=1e7)
    expected = np.linalg.solve(np.linalg.cholesky(covariance), (reward - mean).T).T
    np.testing.assert_allclose(innovations(one, reward), expected, atol=1e-5)


def test_what_wanders_is_whitened_as_its_covariance_written_out_is() -> None:
    """Two parts that fade and are refreshed, beside what stays and what is an evaluation's own."""
    rng, size = np.random.default_rng(7), 12
    loading, carried = rng.normal(size=(size, 1, 3)), rng.uniform(0, 1, (size, 3))
    fresh, start, sampling = rng.uniform(0, 2, (size, 1, 3)), rng.uniform(0, 2, (1, 3)), rng.uniform(0.5, 2, (size, 1))
    covariance = np.diag(sampling[:, 0])
    for s in range(size):
        parts = start[0] * (carried[: s + 1] ** 2).prod(axis=0)
        for r in range(s + 1):
            parts = parts + fresh[r, 0] * (carried[r + 1 : s + 1] ** 2).prod(axis=0)
        for t in range(s, size):
            shared = (parts * carried[s + 1 : t + 1].prod(axis=0) * loading[s, 0] * loading[t, 0]).sum()
            covariance[s, t] += shared
            covariance[t, s] = covariance[s, t] if t == s else covariance[t, s] + shared
    mean, reward = rng.normal(size=size), rng.normal(size=(3, size))
    variance = np.diag(covariance)[:, None]
    one = Mixture(np.array([1.0]), mean[:, None], variance, sampling, loading, start, carried, fresh, dof=1e7)
    expected = np.linalg.solve(np.linalg.cholesky(covariance), (reward - mean).T).T
    np.testing.assert_allclose(innovations(one, reward), expected, atol=1e-5)


def test_innovations_of_a_student_mixture_are_its_probability_integral_transform() -> None:
    """One evaluation, by scipy's own distribution functions."""
    from scipy.stats import norm, t

    weight, mean, sd, dof = np.array([0.6, 0.4]), np.array([0.3, 0.6]), np.array([0.05, 0.2]), 9.0
    mixture = _dense(weight, mean[:, None], sd[:, None, None], dof)
    at = np.linspace(-0.5, 1.5, 21)
    expected = norm.ppf((weight * t.cdf((at[:, None] - mean) / sd, dof)).sum(axis=1))
    np.testing.assert_allclose(innovations(mixture, at[:, None])[:, 0], expected, atol=0.03)


def test_innovations_of_the_models_own_futures_are_standard_normal() -> None:
    """Futures drawn from the frozen forecast itself: mean 0, variance 1, no correlation left."""
    z = innovations(_forecast(FROZEN), _futures(FROZEN, 600, 1.0, seed=1))
    assert np.abs(z.mean()) < 0.03
    assert z.std() == pytest.approx(1, abs=0.04)
    assert np.abs((z[:, 1:] * z[:, :-1]).mean()) < 0.04


def test_the_e_process_is_the_average_of_its_bets() -> None:
    """Written out by its definition: average over drifts and start times of the products from s to t."""
    z, horizon = np.random.default_rng(2).normal(-0.5, 1, 12), 10
    weight = start_weights(12, horizon)
    for t in (0, 4, 11):
        bets = [
            weight[s] * np.exp(-d * z[s : t + 1] - d**2 / 2).prod() / 4 for d in (0.5, 1, 2, 3) for s in range(t + 1)
        ]
        by_hand = sum(bets) + 1 - weight[: t + 1].sum()
        assert np.exp(e_process(z[None, :], horizon)[0, t]) == pytest.approx(by_hand)


def test_the_weights_of_start_times_never_exceed_one() -> None:
    assert start_weights(80, 80).sum() == pytest.approx(0.9)
    assert start_weights(5000, 80).sum() < 1


def test_the_e_value_before_any_evidence_is_one() -> None:
    assert Evidence.none_yet(80).then(0.25, counts=True).peak == pytest.approx(1.0, abs=0.02)


def test_evidence_never_falls_and_is_never_less_than_what_is_left_of_it() -> None:
    """Of a healthy run too, whose first evaluations may be above the forecast and its next ones just below."""
    curve = noisy_curve(0, last=16_000, points=98)
    past = curve.until(10_000)
    frozen, later, reward = freeze(fit(past)), curve.compute[past.points :], curve.reward[past.points :]
    looks = [watch(frozen, later[:size], reward[:size]) for size in range(1, 12)]
    assert (np.diff([look.e_value for look in looks]) >= -1e-12).all()
    assert all(look.e_value_others <= look.e_value_robust * (1 + 1e-12) for look in looks)
