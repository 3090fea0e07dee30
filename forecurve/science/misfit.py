"""When one sigmoid is the wrong curve: named, dated and sized.

The tests compare the best sigmoid with the best sigmoid + one further term (a ramp or step down for a decline, a
second step up for two-phase growth) under the same noise hypotheses. Because these include a wandering part, wandering
is not mistaken for a decline; it shows as wider intervals instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from .arrays import FloatArray
from .drawing import Posterior
from .posterior import inner_products
from .problem import Problem
from .sigmoid import rise
from .wording import compute_text

_RATIO = 18.0  # twice the log likelihood ratio; about 1e-4 by chi-square, less after the search over change points
_LEAST_FALL = 0.02  # of the reward's range: smaller falls are no reason to act
_LEAST_SECOND = 0.05
_SHOULDER = 0.6  # the slope between two phases is below this share of the smaller one's peak
_MIN_POINTS = 6
_RUNS_POINTS = 12
_RUNS_P = 1e-3
_CHANGES = 10
_SHARPEST = 5  # falls between neighbours that are tried as sudden collapses


@dataclass(frozen=True)
class Misfit:
    """A reason not to trust the sigmoid.

    Attributes:
        name: pinned | constant | decline | two-phase | residuals.
        since: compute from which it shows, None for the whole curve.
        size: fall, second rise or autocorrelation.
        sentence: what a colleague would say.
    """

    name: str
    since: float | None
    size: float
    sentence: str


def degenerate(reward: FloatArray, bounds: tuple[float, float]) -> Misfit | None:
    """Curves without a shape: all at one end of the range, or all the same."""
    low, high = bounds
    if (reward == low).all() or (reward == high).all():
        end = low if reward[0] == low else high
        return Misfit("pinned", None, float(end), f"Every evaluation is {end:g}: there is no curve to fit yet")
    if (reward == reward[0]).all():
        return Misfit("constant", None, 0.0, f"Every evaluation is {reward[0]:.3g}: there is no curve to fit yet")
    return None


def find_misfit(problem: Problem, compute: FloatArray, found: Posterior, width: float) -> Misfit | None:
    """The first of decline, two-phase and residuals that holds.

    Args:
        problem: the scaled curve.
        compute: shape (N,), in the curve's unit.
        found: its posterior, whose nodes contain the best sigmoid.
        width: of the reward's range, for the sizes that are reported.
    """
    if len(compute) < _MIN_POINTS:
        return None
    comparison = _Comparison.of(problem, found)
    return (
        _decline(comparison, compute, width)
        or _two_phase(comparison, compute, width)
        or _residual_runs(comparison.residual())
    )


@dataclass(frozen=True, eq=False)
class _Extended:
    """The best sigmoid + delta x column."""

    ratio: float
    delta: float
    values: FloatArray  # the extended curve at the evaluations
    node: FloatArray
    column: int


class _Comparison:
    """Sigmoid against sigmoid + one column, least squares in (R0, A, delta) at every node and noise hypothesis."""

    def __init__(self, problem: Problem, nodes: FloatArray):
        self.problem = problem
        self.nodes = nodes
        self.g = rise(problem.log_c, nodes[0], nodes[1])
        self.q = inner_products(problem, self.g)
        self.det = np.maximum(self.q.determinant, 1e-9 * np.maximum(self.q.h00 * self.q.h11, 1e-9))
        self.R0, self.A = self._solve(self.q.c0, self.q.c1)
        self.free = np.maximum(self.q.yy - self.q.c0 * self.R0 - self.q.c1 * self.A, 0.0)
        self.constant = np.array(
            [
                np.log(h.weight) - w.logdet / 2
                for h, w in zip(problem.setting.hypotheses, problem.whiteners, strict=True)
            ]
        )[:, None]
        self.null = float(self._log_likelihood(self.free).max())

    @classmethod
    def of(cls, problem: Problem, found: Posterior) -> _Comparison:
        """On the posterior's own nodes and a coarse lattice over the whole box."""
        b, mid = np.linspace(*problem.setting.box.log_b, 14), np.linspace(*problem.setting.box.log_mid, 18)
        lattice = np.stack(np.meshgrid(b, mid, indexing="ij")).reshape(2, -1)
        return cls(problem, np.concatenate([found.nodes, lattice], axis=1))

    def _solve(self, d0: FloatArray, d1: FloatArray) -> tuple[FloatArray, FloatArray]:
        """H^-1 (d0, d1)."""
        q = self.q
        return (q.h11 * d0 - q.h01 * d1) / self.det, (q.h00 * d1 - q.h01 * d0) / self.det

    def residual(self) -> FloatArray:
        """Of the best sigmoid under white noise, shape (N,)."""
        node = int(self.free[0].argmin())
        R0, A = self.R0[0, node], self.A[0, node]
        return np.asarray(self.problem.reward - (R0 + (A - R0) * self.g[:, node]))

    def _log_likelihood(self, least: FloatArray) -> FloatArray:
        return np.asarray(self.constant - self.problem.setting.nu * np.log(self.problem.setting.rate + least / 2))

    def extend(self, columns: FloatArray, sign: float) -> _Extended:
        """The best extension with delta of one sign. columns: (N, T)."""
        problem, y = self.problem, self.problem.reward
        best = _Extended(-np.inf, 0.0, y, self.nodes[:, 0], 0)
        solved = [whitener.solve(columns) / problem.setting.unit_variance for whitener in problem.whiteners]
        for at in range(columns.shape[1]):
            rows = np.stack([block[:, at] for block in solved])  # (hypotheses, N)
            qq, qy = (rows @ columns[:, at])[:, None], (rows @ y)[:, None]
            on_g = rows @ self.g
            on_start = rows.sum(axis=1)[:, None] - on_g
            part0, part1 = self._solve(on_start, on_g)
            own = np.maximum(qq - on_start * part0 - on_g * part1, 1e-6 * qq)
            delta = (qy - on_start * self.R0 - on_g * self.A) / own
            gain = np.where(delta * sign > 0, delta**2 * own, 0.0)
            likelihood = self._log_likelihood(np.maximum(self.free - gain, 0.0))
            hypothesis, node = np.unravel_index(int(likelihood.argmax()), likelihood.shape)
            ratio = 2 * float(likelihood[hypothesis, node] - self.null)
            if ratio <= best.ratio:
                continue
            step = delta[hypothesis, node]
            R0 = self.R0[hypothesis, node] - step * part0[hypothesis, node]
            A = self.A[hypothesis, node] - step * part1[hypothesis, node]
            values = R0 + (A - R0) * self.g[:, node] + step * columns[:, at]
            best = _Extended(ratio, float(step), values, self.nodes[:, node], at)
        return best


def _change_points(size: int) -> list[int]:
    """Evaluations from which a ramp may run: at least three before, two after."""
    return sorted({int(at) for at in np.linspace(3, size - 2, _CHANGES)})


def _sharpest_falls(reward: FloatArray) -> list[int]:
    """Evaluations that begin a fall: the mean of two lies far below the mean of the two before."""
    pairs = (reward[1:] + reward[:-1]) / 2
    falls = pairs[2:] - pairs[:-2]  # falls[i] compares evaluations i+2, i+3 with i, i+1
    starts = np.argsort(falls)[:_SHARPEST] + 2
    return [int(at) for at in starts if at >= 3]


def _decline(comparison: _Comparison, compute: FloatArray, width: float) -> Misfit | None:
    ramps, steps = _change_points(len(compute)), _sharpest_falls(comparison.problem.reward)
    columns = [np.maximum(compute - compute[at - 1], 0.0) / (compute[-1] - compute[at - 1]) for at in ramps]
    columns += [(compute >= compute[at]).astype(np.float64) for at in steps]
    best = comparison.extend(np.stack(columns, axis=1), sign=-1.0)
    since = (ramps + steps)[best.column] - 1
    peak = float(best.values[: since + 1].max())
    fall = peak - float(best.values[-1])
    if best.ratio < _RATIO or fall < _LEAST_FALL:
        return None
    return Misfit(
        "decline",
        float(compute[since]),
        fall * width,
        f"The pass rate fell by {fall * width:.2f}, beginning about {compute_text(float(compute[since]))}",
    )


def _two_phase(comparison: _Comparison, compute: FloatArray, width: float) -> Misfit | None:
    log_c = comparison.problem.log_c
    seen = log_c[np.isfinite(log_c)]
    centres = np.linspace(seen[min(3, len(seen) - 1)], seen[-2], _CHANGES)
    columns = 1 / (1 + np.exp(np.minimum(6.0 * (centres - log_c[:, None]), 700.0)))
    best = comparison.extend(columns, sign=1.0)
    if (
        best.ratio < _RATIO
        or best.delta < _LEAST_SECOND
        or not _has_shoulder(best, seen, centres[best.column], comparison)
    ):
        return None
    since = float(np.exp(centres[best.column]))
    size = best.delta * width
    return Misfit(
        "two-phase", since, size, f"Growth has two phases: a second rise of {size:.2f} about {compute_text(since)}"
    )


def _has_shoulder(best: _Extended, seen: FloatArray, centre: float, comparison: _Comparison) -> bool:
    """Whether the slope in log compute really dips between the two phases, inside the data."""
    fine = np.linspace(seen[0], seen[-1], 200)
    first = rise(fine, best.node[:1], best.node[1:])[:, 0]
    second = 1 / (1 + np.exp(-6.0 * (fine - centre)))
    at = comparison.g.shape[0] - 1
    g_last = rise(comparison.problem.log_c[[at]], best.node[:1], best.node[1:])[0, 0]
    height = (best.values[at] - best.values[0] - best.delta) / max(g_last, 1e-9)
    slope = np.gradient(height * first + best.delta * second, fine)
    peaks = np.flatnonzero((slope[1:-1] >= slope[:-2]) & (slope[1:-1] > slope[2:])) + 1
    peaks = np.concatenate([[0], peaks, [len(slope) - 1]])
    late = int(np.abs(fine - centre).argmin())
    valley = int(slope[: late + 1].argmin())
    early_peak = slope[: valley + 1].max()
    return bool(slope[valley] < _SHOULDER * min(early_peak, slope[peaks].max()) and early_peak > 0)


def _residual_runs(residual: FloatArray) -> Misfit | None:
    """Wald and Wolfowitz's runs test: too few changes of sign along the curve, and strong lag-1 correlation."""
    centred = residual - residual.mean()
    size = len(centred)
    if size < _RUNS_POINTS or not centred.any():
        return None
    signs = centred > np.median(centred)
    above, below = int(signs.sum()), int((~signs).sum())
    runs = 1 + int((signs[1:] != signs[:-1]).sum())
    mean = 2 * above * below / size + 1
    variance = (mean - 1) * (mean - 2) / (size - 1)
    if variance <= 0:
        return None
    p = float(ndtr((runs + 0.5 - mean) / np.sqrt(variance)))
    lag = float(centred[1:] @ centred[:-1] / (centred @ centred))
    if p >= _RUNS_P or lag < 0.5:
        return None
    return Misfit("residuals", None, lag, f"Residuals hang together along the curve (correlation {lag:.2f})")
