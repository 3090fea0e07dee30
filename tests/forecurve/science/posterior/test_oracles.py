"""The quadrature and the point fit against programs that share nothing with them: emcee, MINOS, dense integration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import qmc
from scipy.stats import t as student

from forecurve.science import Curve, Fit, Prior, fit, least_squares
from forecurve.science.arrays import FloatArray
from forecurve.science.curves.noise import ALPHA_PRIOR, NoiseKnown
from forecurve.science.curves.wandering import HYPOTHESES, hypotheses_for
from forecurve.science.posterior.drawing import draw, over_cells
from forecurve.science.posterior.integral import effective_nodes, tabulate
from forecurve.science.posterior.lattice import Lattice, centres
from forecurve.science.posterior.prior import C_MID_REACH, LOG_B_BOX, PAPER

from ..dense import wandering_covariance
from ..synthetic import flat_log_b, log_rise_of, noisy_curve, sigmoid


def _covariances(curve: Curve, noise: NoiseKnown | None = None) -> tuple[list[FloatArray], FloatArray]:
    """Dense covariance of the evaluations under each noise hypothesis in units of v, and its log prior weight."""
    x, v = curve.compute, curve.noise.variance
    clock = np.concatenate([[0.0], np.cumsum(np.clip(np.diff(x) / np.median(np.diff(x)), 0.2, 5))])
    guesses = hypotheses_for(len(x))
    unit = v[:8].mean()
    dense = [np.diag(v / unit) + wandering_covariance(guess, clock, unit) for guess in guesses]
    weights = np.array([guess.weight for guess in guesses])
    if noise is not None:
        weights[: len(noise.weights)] = noise.weights
    return dense, np.log(weights)


def log_likelihood(curve: Curve, noise: NoiseKnown | None = None) -> Callable[[FloatArray], FloatArray]:
    """Of mean curves (W, N), up to a constant: alpha integrated, hypotheses summed."""
    dense, weights = _covariances(curve, noise)
    inverses = np.stack([np.linalg.inv(m) for m in dense])
    constants = weights - np.array([np.linalg.slogdet(m)[1] for m in dense]) / 2
    shape, rate = ALPHA_PRIOR[curve.noise.source] if noise is None else noise.alpha_priors[0][1:]
    unit, y = curve.noise.variance[:8].mean(), curve.reward

    def log_likelihood(mean: FloatArray) -> FloatArray:
        residual = y - mean
        q = np.einsum("wn,hnm,wm->wh", residual, inverses, residual) / unit
        return np.asarray(logsumexp(constants - (shape + len(y) / 2) * np.log(rate + q / 2), axis=1))

    return log_likelihood


def _log_posterior(curve: Curve, prior: Prior) -> Callable[[FloatArray], FloatArray]:
    """Of (A, R0, ln B, ln C_mid), shape (W, 4)."""
    likelihood = log_likelihood(curve, prior.noise)
    first, last = curve.compute[curve.compute > 0][0], curve.compute[-1]
    low = np.array([0, 0, LOG_B_BOX[0], np.log(first / C_MID_REACH)])
    high = np.array([1, 1, LOG_B_BOX[1], np.log(last * C_MID_REACH)])

    def log_posterior(theta: FloatArray) -> FloatArray:
        A, R0, log_b, log_mid = theta.T
        inside = ((theta >= low) & (theta <= high)).all(axis=1) & (R0 <= A)
        with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
            g = 1 / (1 + (np.exp(log_mid)[:, None] / curve.compute) ** np.exp(log_b)[:, None])
            flat = np.log(1 - prior.weight) + log_rise_of(A, R0) - np.log(high[3] - low[3]) + flat_log_b(log_b)
        informed = np.full(len(theta), -np.inf)
        if prior.informative:
            informed = np.full(len(theta), np.log(prior.weight))
            for at, pair in ((0, prior.A), (2, prior.log_B), (3, prior.log_C_mid)):
                if pair is None:
                    informed += flat_log_b(log_b) if at == 2 else -np.log(high[at] - low[at])
                    continue
                scale = pair[1] * np.sqrt((prior.dof - 2) / prior.dof)
                informed += student.logpdf(theta[:, at], prior.dof, pair[0], scale)
        with np.errstate(invalid="ignore"):  # points outside the box have no density
            total = likelihood(R0[:, None] + (A - R0)[:, None] * g) + np.logaddexp(flat, informed)
        return np.where(inside & np.isfinite(total), total, -np.inf)

    return log_posterior


def _emcee(curve: Curve, prior: Prior, steps: int) -> FloatArray:
    """Draws of (A, R0, ln B, ln C_mid), shape (4, n)."""
    emcee = pytest.importorskip("emcee")
    best = least_squares(curve)
    rng = np.random.default_rng(0)
    centre = [min(best.A, 0.95), max(best.R0, 0.02), np.clip(np.log(best.B), -1.5, 2.2), np.log(best.C_mid)]
    start = np.array(centre) + rng.normal(0, [0.01, 0.01, 0.1, 0.1], (48, 4))
    start[:, 0] = np.clip(start[:, 0], start[:, 1] + 1e-3, 0.999)
    start[:, 2] = np.clip(start[:, 2], LOG_B_BOX[0] + 1e-3, LOG_B_BOX[1] - 1e-3)
    reach = np.log(curve.compute[-1] * C_MID_REACH)
    start[:, 3] = np.clip(start[:, 3], None, reach - 1e-3)
    moves = [(emcee.moves.DEMove(), 0.8), (emcee.moves.DESnookerMove(), 0.1), (emcee.moves.StretchMove(), 0.1)]
    sampler = emcee.EnsembleSampler(48, 4, _log_posterior(curve, prior), vectorize=True, moves=moves)
    sampler.random_state = np.random.RandomState(1).get_state()
    sampler.run_mcmc(start, steps)
    return np.asarray(sampler.get_chain(discard=steps // 4, thin=5, flat=True).T)


def _read(found: Fit) -> tuple[FloatArray, ...]:
    """Draws of (A, R0, ln B, ln C_mid) as intervals are read off them: a node stands for its cell of the lattice."""
    draws, (b, mid) = found.all_draws, found.posterior.cells
    return draws.A, draws.R0, over_cells(np.log(draws.B), b), over_cells(np.log(draws.C_mid), mid)


def _dense(curve: Curve) -> FloatArray:
    """Draws of (A, R0, ln B, ln C_mid) under the flat prior, shape (4, n), of half a million points of a Sobol
    sequence: walkers hardly find tails as wide as the box. More of them lie near R0 = 0, with that much less weight."""
    u = qmc.Sobol(4, seed=1).random_base2(19)
    compute = curve.compute
    boxes = LOG_B_BOX, (np.log(compute[compute > 0][0] / C_MID_REACH), np.log(compute[-1] * C_MID_REACH))
    R0 = u[:, 0] ** 2
    A = R0 + (1 - R0) * u[:, 1]
    log_b, log_mid = (low + (high - low) * u[:, at] for at, (low, high) in zip((2, 3), boxes, strict=True))
    likelihood, parts = log_likelihood(curve), []
    for rows in np.array_split(np.arange(len(u)), 32):
        with np.errstate(divide="ignore", over="ignore"):
            g = 1 / (1 + (np.exp(log_mid[rows])[:, None] / compute) ** np.exp(log_b[rows])[:, None])
        parts.append(likelihood(R0[rows, None] + (A - R0)[rows, None] * g))
    weight = np.concatenate(parts) + np.log(u[:, 0] + 1e-12) + np.log(1 - R0) + log_rise_of(A, R0) + flat_log_b(log_b)
    cumulative = np.cumsum(np.exp(weight - weight.max()))
    picks = np.searchsorted(cumulative, (np.arange(20_000) + 0.5) / 20_000 * cumulative[-1])
    return np.stack([A, R0, log_b, log_mid])[:, picks]


def _agrees(curve: Curve, prior: Prior, steps: int, slack: float) -> None:
    _agrees_with(_emcee(curve, prior, steps), fit(curve, prior=prior), slack)


def _agrees_with(draws: FloatArray, result: Fit, slack: float) -> None:
    for ours, theirs in zip(_read(result), draws, strict=True):
        expected = np.quantile(theirs, (0.05, 0.25, 0.5, 0.75, 0.95))
        width = expected[-1] - expected[0]
        np.testing.assert_allclose(np.quantile(ours, (0.05, 0.25, 0.5, 0.75, 0.95)), expected, atol=slack * width)
        assert ours.mean() == pytest.approx(theirs.mean(), abs=slack * width)


FLAT = Prior("none", weight=0.0)
SIBLINGS = Prior("siblings", A=(0.6, 0.02), log_B=(0.6, 0.2), log_C_mid=(float(np.log(2500)), 0.3))
_SLOWER = np.array([1.0 + 9 * (kind.rho >= 0.8) for kind in HYPOTHESES])
NOISE = NoiseKnown(tuple(_SLOWER / _SLOWER.sum()), (("binomial", 12.0, 9.0),))


def test_an_early_posterior_under_siblings_agrees_with_emcee() -> None:
    _agrees(noisy_curve(5, last=2000.0, points=10), SIBLINGS, steps=1000, slack=0.1)


@pytest.mark.slow  # a long chain; others are below
def test_a_posterior_with_what_is_known_of_the_noise_agrees_with_emcee() -> None:
    _agrees(noisy_curve(5, last=4000.0, points=20), replace(PAPER, noise=NOISE), steps=1200, slack=0.08)


@pytest.mark.slow  # a long chain; others are below
def test_a_posterior_under_a_prior_agrees_with_emcee_where_nothing_is_known_of_the_noise_or_the_start() -> None:
    told = noisy_curve(3, last=4000.0, points=15)
    _agrees(Curve(told.compute[1:], told.reward[1:]), PAPER, steps=1200, slack=0.08)


@pytest.mark.slow  # a long chain; others are below
def test_a_late_steep_rise_that_the_first_lattice_steps_over_agrees_with_emcee() -> None:
    """Its narrow ridge lies between the nodes of the first lattice, and beyond the edge of the second."""
    compute = np.geomspace(20, 8000, 8)
    reward = [0.249, 0.25, 0.25, 0.249, 0.249, 0.249, 0.375, 0.613]
    _agrees(Curve(compute, reward, prompts=26_667, samples=1), FLAT, steps=2500, slack=0.2)


def test_the_heavy_tails_of_a_few_noisy_evaluations_agree_with_dense_integration() -> None:
    """With unknown noise (R0, A) are Student-t: normal proposals do not reach what leads to late midpoints. And no
    lattice is small enough for such a peak, but that under every kind of noise."""
    reward = [0.0522, 0.0, 0.0963, 0.0, 0.1406, 0.1735, 0.259, 0.3735]
    curve = Curve(np.linspace(0, 8000, 8), reward)
    _agrees_with(_dense(curve), fit(curve), slack=0.1)


STEP = [0.0] * 17 + [1.0, 1.0, 1.0, 0.9] + [1.0] * 10
BUMPY = [0.0, 0.0, 0.0, 0.0, 0.4, 0.9, 1.0, 1.0, 0.8, 1.0, 1.0, 0.6, 0.9, 1.0, 1.0, 1.0]
BEGINNING = [0.0] * 21 + [0.1, 0.0, 0.0, 0.0, 0.0, 0.1, 0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 0.1, 0.1, 0.1, 0.7, 0.4]
TWICE = [0.01, 0.05, 0.14, 0.21, 0.25, 0.29, 0.3, 0.32, 0.33, 0.34, 0.36, 0.39, 0.44, 0.5, 0.56, 0.6, 0.62, 0.64, 0.65]
TWICE += [0.66, 0.66, 0.66, 0.67, 0.66, 0.66, 0.66]


def _agrees_with_nodes(found: Fit, log_b: tuple[float, float], log_mid: tuple[float, float]) -> None:
    """As much as draws let it, with 90,000 nodes."""
    size = 300
    lattice = Lattice.plain(centres(*log_b, size), np.tile(centres(*log_mid, size), (size, 1)))
    table = tabulate(found.problem, lattice, np.arange(len(found.setting.hypotheses)))
    dense = draw(found.setting, table, found.problem.filtered.last, times=50)
    x = 2 * found.curve.now
    ours, theirs = ((p.A, p.R0 + (p.A - p.R0) / (1 + (p.C_mid / x) ** p.B)) for p in (found.posterior, dense))
    for value, expected in zip(ours, theirs, strict=True):
        ends = np.quantile(expected, (0.05, 0.5, 0.95))
        np.testing.assert_allclose(np.quantile(value, (0.05, 0.5, 0.95)), ends, atol=0.06 * (ends[2] - ends[0]))


@pytest.mark.parametrize("reward", [STEP, BUMPY, BEGINNING], ids=["step", "bumpy", "beginning"])
@pytest.mark.parametrize("prior", ["none", "paper"])
def test_a_narrow_peak_with_tails_as_wide_as_the_box_agrees_with_very_many_nodes(
    reward: list[float], prior: str
) -> None:
    """A rise between two evaluations: its ridge is narrower than the cells of any lattice that holds the tails."""
    found = fit(Curve(np.arange(1, len(reward) + 1) * 5e4, reward), prior=prior)
    _agrees_with_nodes(found, found.setting.box.log_b, found.setting.box.log_mid)


@pytest.mark.parametrize("prior", ["none", "paper"])
def test_a_second_rise_whose_peak_lies_between_the_nodes_of_every_lattice_agrees_with_very_many(prior: str) -> None:
    """Without it the ceiling of a run that stands at .66 was said to be .87 (.71 to .99)."""
    compute = np.arange(1, len(TWICE) + 1) * 5e4
    later = least_squares(Curve(compute[8:], TWICE[8:]))
    found, middle = fit(Curve(compute, TWICE), prior=prior), float(np.log(later.C_mid))
    assert 0.65 < found.A.lower < found.A.upper < 0.68
    _agrees_with_nodes(found, (0.5, found.setting.box.log_b[1]), (middle - 0.5, middle + 0.5))


@pytest.mark.parametrize("prior", ["none", "paper"])
def test_enough_nodes_carry_the_posterior_of_any_run(prior: str) -> None:
    """Late, flat, short and log-spaced runs, whose posterior has a peak and tails as wide as the box."""
    rng = np.random.default_rng(3)
    for points in (3, 5, 8, 12, 30) * 8:
        compute = np.geomspace(20, 8000, points) if rng.random() < 0.5 else np.linspace(100, 8000, points)
        ceiling, start, middle = rng.uniform(0.1, 0.99), rng.uniform(0, 1), np.exp(rng.uniform(5, 10))
        level = sigmoid(compute, ceiling, rng.uniform(0.5, 4), middle, ceiling * start)
        reward = np.clip(level + rng.normal(0, rng.choice([0.003, 0.01, 0.04]), points), 0, 1)
        assert effective_nodes(fit(Curve(compute, reward), prior=prior).table.masses.nodes) > 18


@pytest.mark.slow
@pytest.mark.parametrize(
    ("prior", "last", "points"),
    [(SIBLINGS, 2500.0, 13), (FLAT, 8000.0, 40), (PAPER, 8000.0, 40), (Prior("wrong", A=(0.8, 0.02)), 8000.0, 40)],
    ids=["early, siblings", "later, flat", "later, paper", "later, wrong"],
)
def test_the_posterior_agrees_with_a_long_run_of_emcee(prior: Prior, last: float, points: int) -> None:
    """Where the posterior is not so bent that an ensemble of walkers mixes too slowly to be an oracle."""
    _agrees(noisy_curve(7, last=last, points=points), prior, steps=8000, slack=0.08)


def _dense_marginals(curve: Curve, R0: FloatArray, A: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
    """Values and weights of (A, R0, ln B, ln C_mid) under the flat prior, summed over a plain grid of all four."""
    dense, weights = _covariances(curve)
    inverses = [np.linalg.inv(m) / curve.noise.variance[:8].mean() for m in dense]
    constants = [weight - np.linalg.slogdet(m)[1] / 2 for weight, m in zip(weights, dense, strict=True)]
    shape, rate = ALPHA_PRIOR[curve.noise.source]
    y, first, last = curve.reward, curve.compute[curve.compute > 0][0], curve.compute[-1]
    log_b, log_mid = (
        np.linspace(*LOG_B_BOX, 48),
        np.linspace(np.log(first / C_MID_REACH), np.log(last * C_MID_REACH), 80),
    )
    r, a = np.meshgrid(R0, A, indexing="ij")
    log_prior = np.where(r <= a, -np.log(1 - r), -np.inf)
    total, by_b, by_mid, top = np.zeros(r.shape), np.zeros(48), np.zeros(80), -np.inf
    for i, b in enumerate(log_b):
        for j, mid in enumerate(log_mid):
            g = sigmoid(curve.compute, 1.0, np.exp(b), np.exp(mid), 0.0)
            h = 1 - g
            parts = []
            for inverse, constant in zip(inverses, constants, strict=True):
                hh, hg, gg, hy, gy, yy = (u @ inverse @ v for u, v in ((h, h), (h, g), (g, g), (h, y), (g, y), (y, y)))
                q = yy - 2 * (hy * r + gy * a) + hh * r**2 + 2 * hg * r * a + gg * a**2
                parts.append(constant - (shape + len(y) / 2) * np.log(rate + np.maximum(q, 0) / 2))
            best = max(part.max() for part in parts)
            if best < top - 14:
                continue
            if best > top:  # keep numbers near 1
                for sums in (total, by_b, by_mid):
                    sums *= np.exp(max(top - best, -700.0))
                top = best
            density = np.exp(np.stack(parts) - top + log_prior + flat_log_b(b)).sum(axis=0)
            total += density
            by_b[i] += density.sum()
            by_mid[j] += density.sum()
    return [(A, total.sum(axis=0)), (R0, total.sum(axis=1)), (log_b, by_b), (log_mid, by_mid)]


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "last", "points"), [(7, 1500.0, 6)])
def test_an_early_flat_posterior_agrees_with_a_plain_sum_over_a_grid_of_all_four(
    seed: int, last: float, points: int
) -> None:
    """Long and bent: the ceiling is hardly identified."""
    curve = noisy_curve(seed, last=last, points=points)
    marginals = _dense_marginals(curve, np.linspace(0.17, 0.23, 81), np.linspace(0.2, 1.0, 61))
    for ours, (values, weight) in zip(_read(fit(curve)), marginals, strict=True):
        half = (values[1] - values[0]) / 2  # a cell reaches half a step to both sides
        expected = np.interp((0.05, 0.25, 0.5, 0.75, 0.95), np.cumsum(weight) / weight.sum(), values + half)
        width = expected[-1] - expected[0]
        np.testing.assert_allclose(np.quantile(ours, (0.05, 0.25, 0.5, 0.75, 0.95)), expected, atol=0.08 * width)


def test_with_exponent_and_midpoint_known_the_ceiling_is_a_dense_integral() -> None:
    """p(A | y) over a fine grid of (R0, A), dense covariances; no lattice in ln B and ln C_mid is left."""
    curve = noisy_curve(2, last=5000.0, points=14)
    known = Prior("known", log_B=(float(np.log(1.9)), 1e-3), log_C_mid=(float(np.log(2500.0)), 1e-3), weight=0.9999)
    axis = np.linspace(0.0, 1.0, 2001)
    A, R0 = axis[(axis > 0.45) & (axis < 0.75)], axis[(axis > 0.15) & (axis < 0.25)]
    pairs = np.stack(np.meshgrid(A, R0, indexing="ij")).reshape(2, -1)
    g = sigmoid(curve.compute, 1.0, 1.9, 2500.0, 0.0)
    log_p = log_likelihood(curve)(pairs[1][:, None] + (pairs[0] - pairs[1])[:, None] * g) - np.log(1 - pairs[1])
    density = np.exp(log_p - log_p.max()).reshape(len(A), len(R0))
    for marginal, values, ours in ((density.sum(axis=1), A, "A"), (density.sum(axis=0), R0, "R0")):
        cumulative = (np.cumsum(marginal) - marginal / 2) / marginal.sum()  # half of a cell lies below its value
        expected = np.interp((0.05, 0.5, 0.95), cumulative, values)
        estimate = getattr(fit(curve, prior=known), ours)
        width = expected[2] - expected[0]
        np.testing.assert_allclose([estimate.lower, estimate.median, estimate.upper], expected, atol=0.05 * width)


@pytest.mark.parametrize("seed", range(4))
def test_the_point_fit_is_where_minuit_ends(seed: int) -> None:
    Minuit = pytest.importorskip("iminuit").Minuit
    curve = noisy_curve(seed, last=8000.0, points=40)

    def sse(A: float, log_b: float, log_mid: float, R0: float) -> float:
        return float(np.square(curve.reward - sigmoid(curve.compute, A, np.exp(log_b), np.exp(log_mid), R0)).sum())

    minuit = Minuit(sse, A=0.6, log_b=0.5, log_mid=7.5, R0=0.2)
    minuit.errordef, minuit.tol, minuit.strategy = 0.0035**2, 1e-4, 2
    minuit.migrad(ncall=20_000)
    best = least_squares(curve)
    assert best.sse <= minuit.fval * (1 + 1e-9)
    assert abs(best.A - minuit.values["A"]) < 0.05 * minuit.errors["A"]
    assert np.log(best.B) == pytest.approx(minuit.values["log_b"], abs=0.05 * minuit.errors["log_b"])
    assert np.log(best.C_mid) == pytest.approx(minuit.values["log_mid"], abs=0.05 * minuit.errors["log_mid"])


@pytest.mark.parametrize("seed", range(3))
def test_late_the_posterior_interval_is_a_little_wider_than_minos(seed: int) -> None:
    """MINOS takes the noise for known and white; the posterior knows neither, so it may not be narrower."""
    Minuit = pytest.importorskip("iminuit").Minuit
    curve = noisy_curve(seed, last=16_000.0, points=98)

    def chi2(A: float, log_b: float, log_mid: float, R0: float) -> float:
        mean = sigmoid(curve.compute, A, np.exp(log_b), np.exp(log_mid), R0)
        return float(np.square((curve.reward - mean) / 0.0035).sum())

    minuit = Minuit(chi2, A=0.6, log_b=0.6, log_mid=7.8, R0=0.2)
    minuit.errordef = 1.0
    minuit.migrad()
    minuit.minos("A", cl=0.9)
    low, high = (minuit.values["A"] + getattr(minuit.merrors["A"], end) for end in ("lower", "upper"))
    ours = fit(curve).A
    assert 0.85 < ours.width / (high - low) < 2.0
    assert ours.median == pytest.approx(minuit.values["A"], abs=0.5 * (high - low))
