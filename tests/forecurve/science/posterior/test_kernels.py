"""The inner loops: compiled and in numpy they agree with one another and with dense linear algebra."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from scipy.optimize import minimize

from forecurve.science import compiled, fit
from forecurve.science.curves.noise import evaluation_clock
from forecurve.science.curves.wandering import Hypotheses, NoiseHypothesis, Wandering
from forecurve.science.departures.extension import NullModel, _Terms
from forecurve.science.posterior.advancing import Known, New, Wanted, advance
from forecurve.science.posterior.kernels import Filtered, LatticeSums, lattice_sums, noise_filter
from forecurve.science.posterior.lattice import Lattice
from forecurve.science.posterior.masses import Beforehand, constants_of, log_masses, pulls
from forecurve.science.posterior.prior import Prior

from ..dense import wandering_covariance
from ..synthetic import noisy_curve

RNG = np.random.default_rng(5)
SIZE = 15
TICKS = np.concatenate([[0.0], RNG.uniform(0.2, 5.0, SIZE - 1)])
GUESSES = Hypotheses(
    [
        NoiseHypothesis(0.0, 0.0, 1.0),
        NoiseHypothesis(1.0, 0.5, 1.0),
        NoiseHypothesis(4.0, 0.85, 1.0, 5, 0.9),
        # white after their early regimes, neither in the order of its length
        NoiseHypothesis(0.0, 0.0, 1.0, 3, 0.9),
        NoiseHypothesis(0.0, 0.0, 1.0, 7, 0.99),
        NoiseHypothesis(0.0, 0.0, 1.0, 4, 0.9),
    ]
)
ETA, RHO = GUESSES.columns[:2]
UNIT = 1e-3
SHARES = RNG.uniform(0.5, 2.0, SIZE)
LOG_C = np.concatenate([[-np.inf], np.linspace(0.0, 4.0, SIZE - 1)])
REWARD = RNG.uniform(0.2, 0.6, SIZE)
LOG_B = np.array([-1.0, 0.5, 2.0, 7.0])  # the last one is that of steps, whose factors no float holds
LOG_MID = np.linspace(-2.0, 6.0, 20).reshape(5, 4).T


@pytest.fixture(params=["numba", "numpy"])
def loops(request: pytest.FixtureRequest) -> Iterator[str]:
    """With numba, and with numpy."""
    compiled.twins_until(lambda: request.param == "numba")
    yield request.param
    compiled.twins_until(lambda: True)


def _dense(h: int) -> np.ndarray:
    return np.diag(SHARES) + wandering_covariance(GUESSES[h], np.cumsum(TICKS), UNIT)


def _filtered(shares: np.ndarray, ticks: np.ndarray, reward: np.ndarray) -> Filtered:
    laid = Wandering.of(GUESSES, ticks, UNIT)
    return noise_filter(shares, laid.variance, laid.decay, reward)


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("burr", [False, True])
def test_the_filter_gives_the_inner_products_of_the_dense_covariance(burr: bool) -> None:
    filtered = _filtered(SHARES, TICKS, REWARD)
    sums = LatticeSums.zeros(len(GUESSES), LOG_MID.size)
    lattice_sums(LOG_C, Lattice.plain(LOG_B, LOG_MID).factors, filtered, sums, burr)
    nodes_b = np.exp(np.repeat(LOG_B, 5))
    odds = np.exp(np.clip(nodes_b * (LOG_MID.ravel() - LOG_C[:, None]), -700.0, 700.0))
    g = 1 - (1 + 1 / odds) ** (-1 / 3) if burr else 1 / (1 + odds)
    one = np.ones(SIZE)
    for h in range(len(GUESSES)):
        dense = _dense(h)
        inverse = np.linalg.inv(dense)
        expected = [one @ inverse @ one, one @ inverse @ REWARD, REWARD @ inverse @ REWARD, np.linalg.slogdet(dense)[1]]
        np.testing.assert_allclose(filtered.sums[h], expected, rtol=1e-9)
        np.testing.assert_allclose(sums.gg[h], np.einsum("nk,nm,mk->k", g, inverse, g), rtol=1e-8, atol=1e-100)
        np.testing.assert_allclose(sums.g1[h], one @ inverse @ g, rtol=1e-8, atol=1e-100)
        np.testing.assert_allclose(sums.gy[h], REWARD @ inverse @ g, rtol=1e-8, atol=1e-100)


@pytest.mark.usefixtures("loops")
def test_the_wandering_part_is_known_as_well_as_a_dense_regression_knows_it() -> None:
    filtered = _filtered(SHARES, TICKS, REWARD)
    for h in (1, 2):
        dense, last = _dense(h), wandering_covariance(GUESSES[h], np.cumsum(TICKS), UNIT)[-1]
        gain = np.linalg.solve(dense, last)
        np.testing.assert_allclose(filtered.last[h], [ETA[h] - last @ gain, gain.sum(), gain @ REWARD], rtol=1e-8)


def test_nothing_carries_over_a_restart() -> None:
    """With a restart in the middle the covariance falls into two blocks."""
    compute = np.linspace(1.0, 15.0, SIZE)
    ticks, _ = evaluation_clock(compute, restarts=(8.2,))
    assert np.isinf(ticks).tolist() == [at == 8 for at in range(SIZE)]
    laid = Wandering.of(GUESSES, ticks, UNIT)
    assert (laid.decay[:, 8] == 0).all()
    whole = _filtered(SHARES, ticks, REWARD)
    blocks = [
        noise_filter(SHARES[part], laid.variance[:, part], laid.decay[:, part], REWARD[part])
        for part in (slice(0, 8), slice(8, SIZE))
    ]
    np.testing.assert_allclose(whole.sums, blocks[0].sums + blocks[1].sums, rtol=1e-9)


@pytest.mark.usefixtures("loops")
def test_a_step_of_a_stream_is_the_last_step_of_a_whole_pass() -> None:
    """All evaluations at once, and all but the last and then that one, give the same sums and masses: those of the
    hypotheses that are alive at once, and all others' once they take in what has waited for them."""
    lattice, prior = Lattice.plain(LOG_B, LOG_MID), Prior("some", A=(0.6, 0.05))
    log_weights, node_prior = np.log([0.4, 0.2, 0.1, 0.1, 0.1, 0.1]), RNG.normal(-3.0, 1.0, (2, LOG_MID.size))
    whole, totals, _ = _sums_of(lattice, SIZE)
    nearly, nearly_totals, last = _sums_of(lattice, SIZE - 1)
    alive, nu = np.array([0, 2, 4]), 2.0 + SIZE / 2
    beforehand = Beforehand(log_weights[alive], node_prior, pulls(prior), constants_of(prior, 1e-4, 1.0, nu))
    few = LatticeSums(*(part[alive] for part in whole))
    masses = log_masses(few, totals[alive], beforehand)
    step = RNG.normal(0.0, 1.0, LOG_MID.size)
    known = Known(np.stack(nearly)[:, alive], nearly_totals, last, masses.nodes - step)
    new = New(LOG_C[-1], REWARD[-1], 1.3, TICKS[-1])
    wanted = Wanted(alive, lattice.outer, lattice.edges, beforehand)
    after, spread = advance(known, new, lattice.factors, (ETA, RHO), wanted)
    np.testing.assert_allclose(after.few, np.stack(few), rtol=1e-9, atol=1e-12)
    inverse, gain, decay, one, reward = after.filtered
    waited = Filtered(inverse, gain, decay, one, reward, after.totals, after.last)
    lattice_sums(LOG_C[-1:], lattice.factors, waited, nearly)
    np.testing.assert_allclose(np.stack(nearly), np.stack(whole), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(after.few_totals, totals[alive], rtol=1e-9)
    np.testing.assert_allclose(after.masses.nodes, masses.nodes, rtol=1e-9)
    mass = np.exp(masses.nodes - masses.nodes.max()).reshape(LOG_MID.shape)
    coarse = _coarse(masses.nodes.reshape(LOG_MID.shape))
    parts = [mass[coarse], mass[0], mass[-1], mass[:, 0], mass[:, -1]]
    assert 0 < coarse.sum() < coarse.size
    expected = [part.sum() / mass.sum() for part in parts]
    carried = known.nodes > known.nodes.max() - 5.0
    np.testing.assert_allclose(spread, [*expected, np.ptp(step[carried])], rtol=1e-9, atol=1e-15)


@pytest.mark.usefixtures("loops")
def test_nodes_that_are_left_out_have_no_say_in_the_masses_of_others() -> None:
    """Not even where they describe the evaluations best."""
    sums, totals, _ = _sums_of(Lattice.plain(LOG_B, LOG_MID), SIZE)
    prior = Prior("some", A=(0.6, 0.05))
    log_weights, told = np.zeros(len(GUESSES)), (pulls(prior), constants_of(prior, 1e-4, 1.0, 2.0 + SIZE / 2))
    for kept in (np.arange(LOG_MID.size) % 2 == 0, np.arange(LOG_MID.size) % 2 == 1):
        believed = np.where(kept, -3.0, -np.inf)[None].repeat(2, axis=0)
        pairs = log_masses(sums, totals, Beforehand(log_weights, believed, *told)).pairs
        fewer = LatticeSums(*(np.ascontiguousarray(part[:, kept]) for part in sums))
        alone = log_masses(fewer, totals, Beforehand(log_weights, np.full((2, kept.sum()), -3.0), *told)).pairs
        np.testing.assert_allclose(pairs[..., kept], alone, rtol=1e-12)


def _coarse(log_mass: np.ndarray) -> np.ndarray:
    """Nodes that step by more than 3 or bend by more than 2, one at a time."""
    found = np.zeros(log_mass.shape, dtype=bool)
    for (i, j), here in np.ndenumerate(log_mass):
        for line, at in ((log_mass[:, j], i), (log_mass[i], j)):
            near = [line[k] for k in (at - 1, at + 1) if 0 <= k < len(line)]
            bends = len(near) == 2 and abs(near[0] + near[1] - 2 * here) > 2
            found[i, j] |= bends or any(abs(other - here) > 3 for other in near)
    return found


def _sums_of(lattice: Lattice, size: int) -> tuple[LatticeSums, np.ndarray, np.ndarray]:
    """Sums of the first `size` evaluations, the last of all with the variance that the test gives it."""
    shares = SHARES.copy()
    shares[-1] = 1.3
    filtered = _filtered(shares[:size], TICKS[:size], REWARD[:size])
    sums = LatticeSums.zeros(len(GUESSES), LOG_MID.size)
    lattice_sums(LOG_C[:size], lattice.factors, filtered, sums)
    return sums, filtered.sums, filtered.last


@pytest.mark.usefixtures("loops")
@pytest.mark.parametrize("sign", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("falls", [False, True])
def test_an_extension_is_the_bounded_least_squares_of_its_columns(sign: float, falls: bool) -> None:
    """Against scipy's solver of the same problem at the node that was chosen: R0 <= A as R0 = u, A = u + v."""
    curve = noisy_curve(3, last=8000, points=24)
    problem = fit(curve).problem
    nodes = np.array([[0.2, 0.6, 1.1], [7.0, 7.6, 8.2]])
    comparison = NullModel(problem, nodes, np.array([0.1, 0.1]))
    column = np.linspace(0.0, 1.0, len(problem.reward))[:, None] ** 2
    signed = -column if falls else column
    found = comparison._extend(_Terms.of(problem, signed, np.array([sign]), comparison._alive, comparison.top))
    at = int(np.flatnonzero((nodes == found.node[:, None]).all(axis=0))[0])
    likelihoods = []
    for h, whitener in enumerate(problem.whiteners):
        root = np.linalg.cholesky(whitener.solve(np.eye(len(problem.reward)))).T
        g = comparison.g[:, at]
        design = np.stack([np.ones_like(g), g, (-column if falls else column)[:, 0]], axis=1)
        low, high = (0.0 if sign > 0 else -np.inf), (0.0 if sign < 0 else np.inf)
        best = minimize(
            lambda x, d=design, r=root: float(((r @ (problem.reward - d @ x)) ** 2).sum()),
            np.array([0.2, 0.3, 0.0]),
            bounds=[(0, 1), (0, 1), (low, high)],
            constraints=[{"type": "ineq", "fun": lambda x: 1 - x[0] - x[1]}],
            method="SLSQP",
            options={"ftol": 1e-14, "maxiter": 500},
        )
        setting = problem.setting
        least = best.fun / setting.unit_variance
        constant = setting.log_weights[h] - problem.filtered.sums[h, 3] / 2
        likelihoods.append(constant - setting.nu * np.log(setting.rate + least / 2))
    assert found.ratio / comparison.by_size / 2 + comparison.top == pytest.approx(max(likelihoods), abs=1e-4)
