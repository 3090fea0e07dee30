"""Sweeps to replay: drawn from the spread of the paper's runs, or recorded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..arrays import FloatArray
from ..curves.curve import Curve
from ..fitting.outcome import Outcome
from ..posterior.sigmoid import reward_at


@dataclass(frozen=True)
class Spread:
    """Normal spread of (A, ln B, ln C_mid) over the arms of a sweep: means, sds, correlations of A with the others."""

    mean: tuple[float, float, float]
    sd: tuple[float, float, float]
    correlation: tuple[float, float]

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """(size, 3)."""
        ab, ac = self.correlation
        matrix = np.array([[1.0, ab, ac], [ab, 1.0, ab * ac], [ac, ab * ac, 1.0]])
        root = np.linalg.cholesky(matrix)
        return np.asarray(np.array(self.mean) + (rng.standard_normal((size, 3)) @ root.T) * np.array(self.sd))


# "table": ScaleRL's Table 1 (10 runs of several recipes and models). "siblings": one-field ablations of one recipe,
# as close to one another as the paper's leave-one-out arms and seeds.
SPREADS = {
    "table": Spread((0.619, 0.61, 8.20), (0.038, 0.22, 0.63), (-0.39, 0.51)),
    "siblings": Spread((0.610, 0.61, 7.85), (0.02, 0.15, 0.25), (0.0, 0.0)),
}
SEED_SPREAD = np.array([0.0125, 0.1, 0.2])  # sd of A, ln B, ln C_mid between seeds; the paper's runs differ so in A
START = 0.2
START_SD = 0.01  # arms of one sweep start from one checkpoint; its measured pass rate differs a little


@dataclass(frozen=True, eq=False)
class Track:
    """One arm at full length.

    Attributes:
        curve: all of its evaluations.
        final: what it is worth at the end: the true curve where that is known, else the mean of the last evaluations.
            Of a seed that is what its arm is worth.
        arm: of which it is one of several seeds; None where it is an arm by itself.
    """

    curve: Curve
    final: float
    arm: str | None = None

    @property
    def name(self) -> str:
        """The arm's name."""
        return self.curve.name


@dataclass(frozen=True, eq=False)
class Sweep:
    """Arms that compete, compared at `horizon` (the compute of a full run)."""

    tracks: tuple[Track, ...]
    horizon: float

    @property
    def best(self) -> float:
        """The highest final value."""
        return max(track.final for track in self.tracks)

    @property
    def full_cost(self) -> float:
        """Compute of running every arm to its end."""
        return sum(track.curve.now for track in self.tracks)


def synthetic_run(
    theta: FloatArray,
    start: float,
    rng: np.random.Generator,
    *,
    horizon: float,
    evaluations: int,
    noise: str,
    name: str = "run",
) -> Track:
    """A run with a measured start and equally spaced evaluations of 1,000 prompts x 16.

    Args:
        theta: A, ln B, ln C_mid.
        start: the true R0.
        rng: of the noise.
        horizon: compute of the last evaluation.
        evaluations: after the start.
        noise: "white" (sd .0035) or "ar" (an AR(1) part with sd .006 and correlation .7 between neighbours on top).
    """
    compute = np.linspace(0.0, horizon, evaluations + 1)
    A, B, C_mid = theta[0], np.exp(theta[1]), np.exp(theta[2])
    truth = reward_at(compute, *(np.array([value]) for value in (A, B, C_mid, start)))[:, 0]
    error = 0.0035 * rng.standard_normal(len(compute))
    if noise == "ar":
        error += _wandering(rng, len(compute), 0.006, 0.7)
    reward = np.clip(truth + error, 0.0, 1.0)
    curve = Curve(compute, reward, unit="GPU-hours", name=name, prompts=1000, samples=16)
    return Track(curve, float(truth[-1]))


def _wandering(rng: np.random.Generator, size: int, sd: float, rho: float) -> FloatArray:
    steps = rng.standard_normal(size) * sd
    values = np.empty(size)
    values[0] = steps[0]
    for at in range(1, size):
        values[at] = rho * values[at - 1] + np.sqrt(1 - rho**2) * steps[at]
    return values


def synthetic_sweep(
    seed: int,
    *,
    arms: int = 8,
    spread: str = "table",
    noise: str = "ar",
    horizon: float = 16_000.0,
    evaluations: int = 40,
    seeds: int = 1,
) -> Sweep:
    """Arms drawn from a named spread of `SPREADS`, evaluated every horizon / evaluations; reproducible by seed.

    Args:
        seeds: runs of an arm. Where it has several, they are drawn about it (`SEED_SPREAD`).
    """
    rng = np.random.default_rng([seed, arms, evaluations])
    thetas = SPREADS[spread].draw(rng, arms)
    thetas[:, 0] = np.clip(thetas[:, 0], 0.3, 0.95)
    if seeds > 1:
        return Sweep(tuple(_seeded(thetas, seeds, rng, noise, horizon, evaluations)), horizon)
    starts = START + START_SD * rng.standard_normal(arms)
    tracks = [
        synthetic_run(theta, start, rng, horizon=horizon, evaluations=evaluations, noise=noise, name=f"arm {at + 1}")
        for at, (theta, start) in enumerate(zip(thetas, starts, strict=True))
    ]
    return Sweep(tuple(tracks), horizon)


def _seeded(
    thetas: FloatArray, seeds: int, rng: np.random.Generator, noise: str, horizon: float, evaluations: int
) -> Iterator[Track]:
    """The runs of arms, (A, 3), each with so many seeds. What an arm is worth is its own curve, which no seed has
    exactly."""
    for arm, theta in enumerate(thetas):
        A, B, C_mid = theta[0], np.exp(theta[1]), np.exp(theta[2])
        final = float(START + (A - START) / (1 + (C_mid / horizon) ** B))
        for seed in range(seeds):
            own, start = theta + SEED_SPREAD * rng.standard_normal(3), START + START_SD * rng.standard_normal()
            name = f"arm {arm + 1} s{seed + 1}"
            run = synthetic_run(own, start, rng, horizon=horizon, evaluations=evaluations, noise=noise, name=name)
            yield replace(run, final=final, arm=f"arm {arm + 1}")


def recorded_sweep(curves: Sequence[Curve], *, horizon: float | None = None) -> Sweep:
    """A sweep of recorded curves.

    Args:
        curves: at full length, one unit of compute.
        horizon: compute of a full run; by default the shortest of the curves' last computes. Curves are cut there.

    The value of an arm is its `Outcome`, up to the horizon.
    """
    end = min(curve.now for curve in curves) if horizon is None else horizon
    return Sweep(tuple(_recorded(curve.until(end)) for curve in curves), float(end))


def _recorded(curve: Curve) -> Track:
    return Track(curve, Outcome.of(curve).reward)
