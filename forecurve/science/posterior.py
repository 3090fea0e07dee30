"""The posterior of (A, B, C_mid, R0) by adaptive quadrature.

Given (ln B, ln C_mid) and a noise hypothesis the curve is linear in (R0, A) and the noise scale alpha integrates in
closed form, so the density of (R0, A) at a node is (rate + Q(R0, A)/2)^-(shape + N/2) on the triangle
0 <= R0 <= A <= 1. The quadrature is 2-D over (ln B, ln C_mid): a coarse grid on the whole box, then grids rotated and
cut to where the mass lies until enough nodes carry it. At the nodes of the last grid (R0, A) are drawn by stratified
inversion from truncated normals and weighted exactly, so that no approximation but the grid itself is left.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

from .arrays import BoolArray, FloatArray, IntArray
from .linear import Best, Quadratic, best_on_triangle, quadratic
from .noise import ALPHA_PRIOR, HYPOTHESES, Whitener, evaluation_clock, whiteners
from .prior import Box, Prior, box_of, student_t
from .sigmoid import log_compute, rise

GRID = 20
ENOUGH_NODES = 50.0
MAX_PASSES = 8
DRAWS = 2000
_CUT = 8.0  # nodes below exp(-8) of the best one (4 sd) are left out
_STILL_SHRINKING = 0.6  # of the last grid's cell: else the mass (heavy tails) fills the grid as well as it ever will
_TEMPERED_CUT = 3.0  # while the grid is too coarse to trust, in tempered units (many more of the true ones)
_PAIR_DRAWS = 6_000
_GOLDEN = 0.6180339887498949


@dataclass(frozen=True, eq=False)
class Problem:
    """A curve made ready: reward moved to [0, 1], noise scaled to mean 1, priors on that scale."""

    log_c: FloatArray  # (N,)
    reward: FloatArray  # (N,)
    mean_variance: float  # v, the mean nominal sampling variance
    shares: FloatArray  # w = variance / v, (N,)
    shape: float  # of alpha's inverse-gamma prior
    rate: float
    prior: Prior
    box: Box
    whiteners: tuple[Whitener, ...]
    usual_gap: float

    @property
    def nu(self) -> float:
        """Exponent of the marginal density once alpha is integrated."""
        return self.shape + len(self.reward) / 2


def make_problem(compute: FloatArray, reward: FloatArray, variance: FloatArray, source: str, prior: Prior) -> Problem:
    """All in the scale where rewards lie in [0, 1]."""
    clock, usual = evaluation_clock(compute)
    mean = float(variance.mean())
    shape, rate = ALPHA_PRIOR[source]
    shares = variance / mean
    return Problem(
        log_c=log_compute(compute),
        reward=reward,
        mean_variance=mean,
        shares=shares,
        shape=shape,
        rate=rate,
        prior=prior,
        box=box_of(prior, compute),
        whiteners=whiteners(shares, clock),
        usual_gap=usual,
    )


@dataclass(frozen=True, eq=False)
class Posterior:
    """Equally weighted draws, every array of shape (K,), rewards in [0, 1].

    Attributes:
        alpha: noise scale, in units of the mean nominal variance v.
        hypothesis: index into HYPOTHESES.
        state_mean, state_variance: the wandering part at the last evaluation (variance in units of alpha v).
        node_ess: how many grid nodes carry the mass.
        passes: grids laid.
        nodes: the last grid's (ln B, ln C_mid), shape (2, n).
    """

    A: FloatArray
    B: FloatArray
    C_mid: FloatArray
    R0: FloatArray
    alpha: FloatArray
    hypothesis: IntArray
    state_mean: FloatArray
    state_variance: FloatArray
    node_ess: float
    passes: int
    nodes: FloatArray


def posterior(problem: Problem) -> Posterior:
    """Integrate. Deterministic; a few milliseconds for 10 points, some tens for 100."""
    grid, last_area = _first_grid(problem.box), np.inf
    for passes in range(1, MAX_PASSES + 1):
        table = _tabulate(problem, grid.nodes)
        log_node = logsumexp(table.log_weight, axis=(0, 1))
        power = _temper(log_node)
        settled = _ess(log_node) >= ENOUGH_NODES or grid.cell_area > _STILL_SHRINKING * last_area
        if (power == 1.0 and settled) or passes == MAX_PASSES:
            break
        last_area = grid.cell_area
        grid = _cut_grid(grid, log_node, power, problem.box)
    return _draw(problem, grid.nodes, table, passes)


# --- the grid over (ln B, ln C_mid) ---


@dataclass(frozen=True, eq=False)
class _Grid:
    nodes: FloatArray  # (2, n)
    cell: FloatArray  # (2, 2): its columns are the steps of the grid

    @property
    def cell_area(self) -> float:
        return abs(float(np.linalg.det(self.cell)))


def _first_grid(box: Box) -> _Grid:
    origin = np.array([box.log_b[0], box.log_mid[0]])
    span = np.diag([box.log_b[1] - box.log_b[0], box.log_mid[1] - box.log_mid[0]])
    return _lay(origin, span, box)


def _lay(origin: FloatArray, span: FloatArray, box: Box) -> _Grid:
    """A GRID x GRID lattice of cell centres on origin + span [0, 1]^2, without what lies outside the box."""
    steps = (np.arange(GRID) + 0.5) / GRID
    unit = np.stack(np.meshgrid(steps, steps, indexing="ij")).reshape(2, -1)
    nodes = origin[:, None] + span @ unit
    (b_low, b_high), (mid_low, mid_high) = box.log_b, box.log_mid
    inside = (nodes[0] >= b_low) & (nodes[0] <= b_high) & (nodes[1] >= mid_low) & (nodes[1] <= mid_high)
    return _Grid(nodes[:, inside], span / GRID)


def _cut_grid(grid: _Grid, log_node: FloatArray, power: float, box: Box) -> _Grid:
    """The next grid: along the principal axes of the (tempered) mass, just large enough for it."""
    tempered = power * (log_node - log_node.max())
    weight = np.exp(tempered)
    weight /= weight.sum()
    mean = grid.nodes @ weight
    centred = grid.nodes - mean[:, None]
    # one cell's own spread keeps the axes defined when a single node carries everything
    covariance = (centred * weight) @ centred.T + grid.cell @ grid.cell.T / 12
    values, vectors = np.linalg.eigh(covariance)
    axes = vectors * np.sqrt(values)
    kept = tempered > -(_CUT if power == 1.0 else _TEMPERED_CUT)
    along = np.linalg.solve(axes, centred[:, kept])
    pad = np.abs(np.linalg.solve(axes, grid.cell)).sum(axis=1)
    low, high = along.min(axis=1) - pad, along.max(axis=1) + pad
    return _lay(mean + axes @ low, axes * (high - low), box)


def _temper(log_node: FloatArray, least: float = 12.0) -> float:
    """The largest power <= 1 at which at least `least` nodes carry the mass."""
    if _ess(log_node) >= least:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(10):
        middle = (low + high) / 2
        low, high = (middle, high) if _ess(middle * log_node) >= least else (low, middle)
    return max(low, 1e-12)


def _ess(log_weight: FloatArray) -> float:
    weight = np.exp(log_weight - log_weight.max())
    return float(weight.sum() ** 2 / (weight**2).sum())


# --- what every (noise hypothesis, node) pair says ---


@dataclass(frozen=True, eq=False)
class _Table:
    """Arrays of shape (parts of the prior, hypotheses, nodes)."""

    q: Quadratic  # without the prior's pull on A; shape (hypotheses, nodes)
    log_base: FloatArray  # all of the log density that does not depend on (R0, A)
    log_weight: FloatArray  # Laplace estimate of the log mass, used to lay grids and to choose pairs
    parts: tuple[bool, ...]  # for each part of the prior: is it the informative one?


def _tabulate(problem: Problem, nodes: FloatArray) -> _Table:
    g = rise(problem.log_c, nodes[0], nodes[1])
    q = inner_products(problem, g)
    parts = (False, True) if problem.prior.informative else (False,)
    half_logdet = np.array([whitener.logdet for whitener in problem.whiteners])[:, None] / 2
    log_hypothesis = np.log([hypothesis.weight for hypothesis in HYPOTHESES])[:, None]
    bases, weights = [], []
    best = best_on_triangle(q)
    for informative in parts:
        base = _log_node_prior(problem, nodes, informative) + log_hypothesis - half_logdet
        bases.append(base)
        weights.append(base + _laplace(problem, q, best, informative))
    return _Table(q, np.stack(bases), np.stack(weights), parts)


def inner_products(problem: Problem, g: FloatArray) -> Quadratic:
    """Q for every hypothesis (rows) and node (columns), in units of the mean nominal variance."""
    y, one = problem.reward, np.ones_like(problem.reward)
    rows = []
    for whitener in problem.whiteners:
        solved_one, solved_y = whitener.solve(one), whitener.solve(y)
        rows.append((whitener.squares(g), solved_one @ g, solved_y @ g, one @ solved_one, solved_y @ one, y @ solved_y))
    gg, g1, gy = (np.stack([row[at] for row in rows]) / problem.mean_variance for at in range(3))
    oo, oy, yy = (np.array([[row[at]] for row in rows]) / problem.mean_variance for at in range(3, 6))
    return quadratic(gg, g1, gy, oo, oy, yy)


def _log_node_prior(problem: Problem, nodes: FloatArray, informative: bool) -> FloatArray:
    prior, box = problem.prior, problem.box
    if not informative:
        return np.full(nodes.shape[1], np.log(1 - prior.weight) + box.log_density)
    total = np.full(nodes.shape[1], np.log(prior.weight))
    for pair, values, (low, high) in ((prior.log_B, nodes[0], box.log_b), (prior.log_C_mid, nodes[1], box.log_mid)):
        total += -np.log(high - low) if pair is None else student_t(values, *pair, prior.dof)
    return total


def _log_reward_prior(prior: Prior, informative: bool, R0: FloatArray, A: FloatArray) -> FloatArray:
    """R0 ~ U(0, 1); A ~ U(R0, 1) in the flat part, Student-t in the informative one."""
    if informative and prior.A is not None:
        return student_t(A, *prior.A, prior.dof)
    return -np.log(np.maximum(1.0 - R0, 1e-3))


def _laplace(problem: Problem, q: Quadratic, best: Best, informative: bool) -> FloatArray:
    """Log of the integral over (R0, A), roughly: the top of the density times the area it fills."""
    prior = problem.prior
    R0, A, least = best
    if informative and prior.A is not None:
        alpha = (problem.rate + least.min(axis=1, keepdims=True) / 2) / problem.nu  # at each hypothesis's best node
        q_top = q.pull_ceiling(prior.A[0], alpha / prior.A[1] ** 2)
        R0, A, _ = best_on_triangle(q_top)
        least = q.value(R0, A)
    else:
        q_top = q
    half = problem.rate + least / 2
    area = np.minimum(0.5, 2 * np.pi * half / problem.nu / np.sqrt(np.maximum(q_top.determinant, 1e-12)))
    return np.asarray(-problem.nu * np.log(half) + np.log(area) + _log_reward_prior(prior, informative, R0, A))


# --- draws at the last grid ---


def _draw(problem: Problem, nodes: FloatArray, table: _Table, passes: int) -> Posterior:
    part, hypothesis, node = np.nonzero(_worth(table.log_weight))
    repeats = int(np.clip(_PAIR_DRAWS // len(node), 3, 32))
    part, hypothesis, node = (np.repeat(index, repeats) for index in (part, hypothesis, node))
    u, w = _lattice(len(node), repeats)
    R0, A, log_w = _weigh(problem, table, part, hypothesis, node, u, w)
    weight = np.exp(log_w - log_w.max())
    weight /= weight.sum()
    node_weight = np.bincount(node, weight)
    chosen = resample(weight, A, DRAWS)
    at_node, at_hypothesis = node[chosen], hypothesis[chosen]
    q = table.q.take((at_hypothesis, at_node)).value(R0[chosen], A[chosen])
    B, C_mid = np.exp(nodes[0][at_node]), np.exp(nodes[1][at_node])
    state_mean, state_variance = _states(problem, A[chosen], R0[chosen], nodes[:, at_node], at_hypothesis)
    return Posterior(
        A=A[chosen],
        B=B,
        C_mid=C_mid,
        R0=R0[chosen],
        alpha=_alpha(problem, q),
        hypothesis=at_hypothesis,
        state_mean=state_mean,
        state_variance=state_variance,
        node_ess=float(1.0 / (node_weight**2).sum()),
        passes=passes,
        nodes=nodes,
    )


def _worth(log_weight: FloatArray) -> BoolArray:
    """Pairs that carry mass, at most a third of the draws we can afford."""
    flat = np.sort(log_weight, axis=None)
    limit = flat[max(0, flat.size - _PAIR_DRAWS // 3)]
    return np.asarray(log_weight >= max(log_weight.max() - _CUT - 1, limit))


def _lattice(size: int, repeats: int) -> tuple[FloatArray, FloatArray]:
    """Two coordinates in (0, 1): the first stratified within each pair, shifted from pair to pair."""
    index = np.arange(size)
    shift = (_GOLDEN * (index // repeats + 1)) % 1.0
    u = ((index % repeats) + shift) / repeats
    w = (0.5 + 0.7548776662466927 * (index + 1)) % 1.0
    return u, np.clip(w, 1e-6, 1 - 1e-6)


def _weigh(
    problem: Problem,
    table: _Table,
    part: IntArray,
    hypothesis: IntArray,
    node: IntArray,
    u: FloatArray,
    w: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Draw (R0, A) from truncated normals near the density's top; weigh by target over proposal."""
    q = table.q.take((hypothesis, node))
    informative = np.array(table.parts)[part]
    _, _, least = best_on_triangle(q)
    spread = 1.3 * (problem.rate + least / 2) / problem.nu
    mean, sd = problem.prior.A or (0.5, 1.0)
    pull = np.where(informative & (problem.prior.A is not None), 1.3 / sd**2, 1.0)
    centre = np.where(informative, mean, 0.5)
    # precision of the proposal; the units on the diagonal keep it proper where the data say nothing
    k00, k01, k11 = q.h00 / spread + 1.0, q.h01 / spread, q.h11 / spread + pull
    b0, b1 = q.c0 / spread + 0.5, q.c1 / spread + pull * centre
    det = k00 * k11 - k01**2
    zero, one = np.zeros(len(u)), np.ones(len(u))
    A, log_a = _truncated_normal((k00 * b1 - k01 * b0) / det, np.sqrt(k00 / det), zero, one, u)
    R0, log_r = _truncated_normal((b0 - k01 * A) / k00, 1 / np.sqrt(k00), zero, A, w)
    target = table.log_base[part, hypothesis, node] - problem.nu * np.log(problem.rate + q.value(R0, A) / 2)
    flat = _log_reward_prior(problem.prior, False, R0, A)
    target += np.where(informative, _log_reward_prior(problem.prior, True, R0, A), flat)
    return R0, A, target - log_a - log_r


def _truncated_normal(
    mean: FloatArray, sd: FloatArray, low: FloatArray, high: FloatArray, u: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """(x, log density) by inversion; uniform where the normal has no mass on [low, high] to speak of."""
    flip = mean < (low + high) / 2  # mirrored so that a lies in the lower tail, where ndtr keeps its digits
    sign = np.where(flip, -1.0, 1.0)
    a = np.where(flip, mean - high, low - mean) / sd
    b = np.where(flip, mean - low, high - mean) / sd
    at_a, at_b = ndtr(a), ndtr(b)
    mass = at_b - at_a
    usable = mass > 1e-12
    z = ndtri(np.clip(at_a + u * mass, 1e-300, 1 - 1e-16))
    x = np.where(usable, mean + sign * sd * z, low + u * (high - low))
    x = np.clip(x, low, high)
    with np.errstate(divide="ignore"):
        normal = -0.5 * z**2 - 0.9189385332046727 - np.log(sd) - np.log(np.where(usable, mass, 1.0))
        uniform = -np.log(np.maximum(high - low, 1e-300))
    return x, np.where(usable, normal, uniform)


def resample(weight: FloatArray, order_by: FloatArray, size: int) -> IntArray:
    """Systematic resampling in the order of one coordinate: that coordinate's quantiles are kept almost exactly."""
    order = np.argsort(order_by)
    cumulative = np.cumsum(weight[order])
    picks = np.searchsorted(cumulative, (np.arange(size) + 0.5) / size * cumulative[-1])
    return np.asarray(order[np.minimum(picks, len(order) - 1)])


def _alpha(problem: Problem, q: FloatArray) -> FloatArray:
    """alpha given everything else: inverse-gamma, its chi-square by Wilson and Hilferty's cube root."""
    dof = 2 * problem.nu
    z = ndtri((0.5 + _GOLDEN * np.arange(1, len(q) + 1)) % 1.0 * 0.998 + 0.001)
    spread = 2 / (9 * dof)
    chi2 = dof * np.maximum(1 - spread + z * np.sqrt(spread), 0.05) ** 3
    return np.asarray((problem.rate + q / 2) / (chi2 / 2))


def _states(
    problem: Problem, A: FloatArray, R0: FloatArray, nodes: FloatArray, hypothesis: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Where the wandering part stands at the last evaluation, per draw."""
    g = rise(problem.log_c, nodes[0], nodes[1])
    residual = problem.reward[:, None] - (R0 + (A - R0) * g)
    states = [whitener.last_state() for whitener in problem.whiteners]
    gains = np.stack([gain for gain, _ in states])
    variances = np.array([variance for _, variance in states])
    return np.einsum("kn,nk->k", gains[hypothesis], residual), variances[hypothesis]
