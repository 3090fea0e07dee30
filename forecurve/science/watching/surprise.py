"""How surprising each evaluation is, given the frozen forecast and the evaluations before it.

The forecast is a mixture of a few Gaussian pieces with a common, not exactly known noise scale. Given what came
before, the next evaluation is then a mixture of Student-t's; its probability integral transform, moved to the normal
scale, gives innovations z that are independent standard normals if the forecast holds: uncertainty of the curve, of
the noise and their correlation are absorbed. One Gaussian alone would not do: four-parameter posteriors are bent.

Each piece is a linear state space: what is not known of the curve stays, what wanders is carried over in part. So the
next evaluation is predicted by Kalman's recursion, at a cost that does not grow with the evaluations before it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtri_exp

from ..arrays import FloatArray

_KEPT = 0.98  # of what evaluations since the freeze tell of the scale, from one to the next


@dataclass(frozen=True, eq=False)
class Mixture:
    """The joint forecast of H evaluations: of J pieces, each its mean and N independent parts that are not known.

    Attributes:
        weight: of each piece, (J,).
        mean: of each evaluation under each piece, (H, J).
        variance: of each evaluation by itself, of a scale of 1, (H, J).
        sampling: what of it is its own alone, (H, J).
        loading: how far a part of size 1 moves each evaluation, (H, J, N).
        start: variance of each part at the freeze, (J, N).
        carried: the factor by which each part is carried over from the evaluation before, (H, N).
        fresh: variance that is added to each part then, (H, J, N).
        dof: degrees of freedom with which the scale of all variances is known.
    """

    weight: FloatArray
    mean: FloatArray
    variance: FloatArray
    sampling: FloatArray
    loading: FloatArray
    start: FloatArray
    carried: FloatArray
    fresh: FloatArray
    dof: float

    def moments(self) -> tuple[FloatArray, FloatArray]:
        """Mean (H,) and standard deviation (H,) of each evaluation by itself."""
        mean = (self.mean * self.weight).sum(axis=1)
        inflated = self.variance * self.dof / (self.dof - 2)
        return mean, np.sqrt(((inflated + (self.mean - mean[:, None]) ** 2) * self.weight).sum(axis=1))


def innovations(forecast: Mixture, reward: FloatArray, clip: float = np.inf) -> FloatArray:
    """z, shape (R, H), of R runs with H evaluations each.

    Args:
        forecast: of the H evaluations, the first after the freeze.
        reward: (R, H).
        clip: as of `Known.then`.
    """
    known, z = Known.at_freeze(forecast, len(reward)), np.empty(reward.shape)
    for t in range(reward.shape[1]):
        known, z[:, t] = known.then(forecast, t, reward[:, t], np.full(len(reward), clip))
    return z


@dataclass(frozen=True, eq=False)
class Known:
    """What is known of R runs after `seen` evaluations, by J pieces with N parts each.

    Attributes:
        log_weight: of each piece, (J, R).
        place: expected size of each part, (J, R, N).
        spread: covariance of the parts about it, of a scale of 1, (J, N, N); it hangs on no reward.
        squares: sum of squared standardised errors, earlier ones faded, (J, R).
        worth: of how many evaluations that is.
    """

    log_weight: FloatArray
    place: FloatArray
    spread: FloatArray
    squares: FloatArray
    worth: float
    seen: int

    @classmethod
    def at_freeze(cls, forecast: Mixture, runs: int) -> Known:
        """Before any evaluation."""
        pieces, parts = forecast.start.shape
        log_weight = np.repeat(np.log(forecast.weight)[:, None], runs, axis=1)
        spread = forecast.start[:, :, None] * np.eye(parts)
        return cls(log_weight, np.zeros((pieces, runs, parts)), spread, np.zeros((pieces, runs)), 0.0, 0)

    def then(self, forecast: Mixture, t: int, value: FloatArray, clip: FloatArray) -> tuple[Known, FloatArray]:
        """What is known after one evaluation more, and its z, (R,).

        Args:
            forecast: one that has it.
            t: its place there; the one before is the last that was seen.
            value: of each run, (R,).
            clip: bound |z| by it, and let an evaluation beyond it move the expectation of the next ones by its clipped
                part only, (R,). Whitening expects a run that has fallen to stay down, so that its later innovations
                are small and a clipped first one proves nothing; this way what stays down stays a surprise.
        """
        loading, carried = forecast.loading[t], forecast.carried[t]
        place, spread = self.place * carried, self.spread * np.multiply.outer(carried, carried)
        every = np.arange(len(carried))
        spread[:, every, every] += forecast.fresh[t]
        along = np.matmul(spread, loading[:, :, None])[:, :, 0]
        variance = np.maximum((along * loading).sum(axis=1), 0.0) + forecast.sampling[t]  # of a scale of 1

        mean = forecast.mean[t, :, None] + np.matmul(place, loading[:, :, None])[:, :, 0]
        dof = forecast.dof + self.worth
        sd = np.sqrt(variance[:, None] * (forecast.dof + self.squares) / dof)
        z = self._z((value - mean) / sd, dof)
        beyond = np.abs(z) > clip
        if beyond.any():
            value = np.where(beyond, self._clipped(value, mean, sd, clip), value)
            z = np.clip(z, -clip, clip)
        off = value - mean
        log_weight = self.log_weight - np.log(sd) - (dof + 1) / 2 * np.log1p((off / sd) ** 2 / dof)
        gain = along / variance[:, None]
        known = Known(
            log_weight=log_weight - np.logaddexp.reduce(log_weight, axis=0),
            place=place + off[:, :, None] * gain[:, None, :],
            spread=spread - gain[:, :, None] * along[:, None, :],
            squares=_KEPT * (self.squares + off**2 / variance[:, None]),
            worth=_KEPT * (self.worth + 1),
            seen=self.seen + 1,
        )
        return known, z

    def _z(self, error: FloatArray, dof: float) -> FloatArray:
        """Normal scores of the mixture's distribution function, from its lower or upper tail, whichever is exact."""
        normal = _normal_score(error, dof)
        lower = np.logaddexp.reduce(self.log_weight + log_ndtr(normal), axis=0)
        upper = np.logaddexp.reduce(self.log_weight + log_ndtr(-normal), axis=0)
        return np.asarray(np.where(lower < upper, ndtri_exp(lower), -ndtri_exp(upper)))

    def _clipped(self, value: FloatArray, mean: FloatArray, sd: FloatArray, clip: FloatArray) -> FloatArray:
        """The value within `clip` standard deviations of what was expected."""
        weight = np.exp(self.log_weight)
        middle = (weight * mean).sum(axis=0)
        whole = np.sqrt((weight * (sd**2 + (mean - middle) ** 2)).sum(axis=0))
        return np.asarray(np.clip(value, middle - clip * whole, middle + clip * whole))


def _normal_score(t: FloatArray, dof: float) -> FloatArray:
    """The normal deviate with the tail of a Student-t one (Wallace 1959): with 5 dof
    within 0.02 up to 3 of them, 0.05 up to 4."""
    return np.asarray(np.sign(t) * (8 * dof + 1) / (8 * dof + 3) * np.sqrt(dof * np.log1p(t**2 / dof)))
