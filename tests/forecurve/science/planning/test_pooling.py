"""Arms as siblings: against a long Markov chain, and against arms taken alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from forecurve.science import Prior, fit
from forecurve.science.arrays import FloatArray
from forecurve.science.past.family import SEED_SPREAD, SPREAD
from forecurve.science.planning.pooling import Joint, joint_draws
from forecurve.science.planning.siblings import OWN
from forecurve.science.posterior.prior import FLAT
from forecurve.science.simulator import synthetic_sweep

from ..synthetic import StandIn

MEANS = np.array([[0.60, 0.6, 7.8], [0.66, 0.5, 8.3], [0.55, 0.9, 7.9]])
SDS = np.array([[0.01, 0.1, 0.1], [0.06, 0.4, 0.5], [0.05, 0.5, 0.4]])


def _stand_in(mean: FloatArray, sd: FloatArray, seed: int, prior: Prior = FLAT) -> Any:
    """A fit whose posterior under its flat prior is normal, as far as the pooling can see."""
    theta = mean + sd * np.random.default_rng(seed).standard_normal((4000, 3))
    theta[:, 0] = np.clip(theta[:, 0], 0.01, 0.99)
    draws = SimpleNamespace(A=theta[:, 0], B=np.exp(theta[:, 1]), C_mid=np.exp(theta[:, 2]), R0=np.full(4000, 0.0))
    curve = SimpleNamespace(bounds=(0.0, 1.0), width=1.0, unit="h", compute=np.array([400.0, 4000.0, 8000.0]))
    return StandIn(all_draws=draws, curve=curve, prior=prior)


def _theta(joint: Joint) -> FloatArray:
    return np.stack([joint.A, np.log(joint.B), np.log(joint.C_mid)], axis=2)  # (S, K, 3)


def _chain(box: float, steps: int = 6000, chains: int = 300) -> FloatArray:
    """Metropolis on (theta_1..K, mu, ln s) with the arms' normal likelihoods; independent of the pooling's code."""
    rng = np.random.default_rng(5)
    arms = len(MEANS)
    theta = np.repeat(MEANS[None], chains, axis=0)
    mu, log_s = np.repeat(MEANS.mean(axis=0)[None], chains, axis=0), np.zeros((chains, 3))

    def log_density(theta: FloatArray, mu: FloatArray, log_s: FloatArray) -> FloatArray:
        likelihood = -0.5 * (((theta - MEANS) / SDS) ** 2).sum(axis=(1, 2))
        sd = np.array(SPREAD) * np.exp(log_s)
        z = (theta - mu[:, None]) / sd[:, None]
        sibling = -0.5 * (z**2).sum(axis=2) - np.log(sd).sum(axis=1)[:, None] - 1.5 * np.log(2 * np.pi)
        own = np.logaddexp(np.log(1 - OWN) + sibling, np.log(OWN) - np.log(box))
        return np.asarray(likelihood + own.sum(axis=1) - 0.5 * ((log_s / 0.5) ** 2).sum(axis=1))

    here, kept = log_density(theta, mu, log_s), []
    for step in range(steps):
        new = [theta, mu, log_s]
        which = step % (arms + 2)
        if which < arms:
            new[0] = theta.copy()
            new[0][:, which] += SDS[which] * rng.standard_normal((chains, 3)) * 0.7
        elif which == arms:
            new[1] = mu + np.array(SPREAD) * rng.standard_normal((chains, 3)) * 0.6
        else:
            new[2] = log_s + 0.4 * rng.standard_normal((chains, 3))
        there = log_density(*new)
        take = np.log(rng.random(chains)) < there - here
        theta, mu, log_s = (
            np.where(take.reshape(-1, *[1] * (a.ndim - 1)), b, a) for a, b in zip((theta, mu, log_s), new, strict=True)
        )
        here = np.where(take, there, here)
        if step > steps // 4 and step % 15 == 0:
            kept.append(theta)
    return np.concatenate(kept)


@pytest.mark.slow
def test_joint_draws_agree_with_a_long_markov_chain() -> None:
    stand_ins = [_stand_in(mean, sd, at) for at, (mean, sd) in enumerate(zip(MEANS, SDS, strict=True))]
    box = (np.log(10) - np.log(0.2)) * (2 * np.log(20) + np.log(20))  # of (ln B, ln C_mid); A's is 1
    found = np.concatenate([_theta(joint_draws(stand_ins, seed=seed)) for seed in range(8)])
    chain = _chain(float(box))
    np.testing.assert_array_less(np.abs(found.mean(axis=0) - chain.mean(axis=0)), 0.2 * chain.std(axis=0))
    np.testing.assert_allclose(found.std(axis=0), chain.std(axis=0), rtol=0.2)
    # arms move together: the difference of two is known better than if they were independent
    gap = found[:, 1, 0] - found[:, 2, 0]
    assert gap.std() == pytest.approx((chain[:, 1, 0] - chain[:, 2, 0]).std(), rel=0.2)


ARMS = (0, 0, 1, 1, 2)
SEED_MEANS = np.array([[0.60, 0.6, 7.8], [0.64, 0.5, 8.1], [0.66, 0.5, 8.3], [0.62, 0.7, 8.2], [0.55, 0.9, 7.9]])
SEED_SDS = np.array([[0.01, 0.1, 0.1], [0.05, 0.3, 0.4], [0.06, 0.4, 0.5], [0.03, 0.3, 0.3], [0.05, 0.5, 0.4]])


def _chain_of_seeds(box: float, steps: int = 12_000, chains: int = 300) -> FloatArray:
    """As `_chain`, of runs (theta_1..K) about the centres of their arms (alpha_1..A, ln t_1..A) about (mu, ln s); an
    arm of one run has no other centre."""
    rng = np.random.default_rng(6)
    several = [arm for arm in set(ARMS) if ARMS.count(arm) > 1]
    theta = np.repeat(SEED_MEANS[None], chains, axis=0)
    alpha = np.stack([SEED_MEANS[np.array(ARMS) == arm].mean(axis=0) for arm in several])
    state = [theta, np.repeat(alpha[None], chains, axis=0), np.zeros((chains, len(several), 3))]
    state += [np.repeat(SEED_MEANS.mean(axis=0)[None], chains, axis=0), np.zeros((chains, 3))]

    def about(x: FloatArray, centre: FloatArray, sd: FloatArray) -> FloatArray:
        """Log density of .9 N + .1 flat, (chains,)."""
        normal = -0.5 * (((x - centre) / sd) ** 2).sum(axis=1) - np.log(sd).sum(axis=1) - 1.5 * np.log(2 * np.pi)
        return np.asarray(np.logaddexp(np.log(1 - OWN) + normal, np.log(OWN) - np.log(box)))

    def log_density(theta: FloatArray, alpha: FloatArray, log_t: FloatArray, mu: FloatArray, log_s: FloatArray) -> Any:
        total = -0.5 * (((theta - SEED_MEANS) / SEED_SDS) ** 2).sum(axis=(1, 2))
        total -= 0.5 * ((log_s / 0.5) ** 2).sum(axis=1) + 0.5 * ((log_t / 0.5) ** 2).sum(axis=(1, 2))
        s = np.array(SPREAD) * np.exp(log_s)
        for at, arm in enumerate(ARMS):
            if arm in several:
                own = several.index(arm)
                total += about(theta[:, at], alpha[:, own], np.array(SEED_SPREAD) * np.exp(log_t[:, own]))
            else:
                total += about(theta[:, at], mu, s)
        for own in range(len(several)):
            total += about(alpha[:, own], mu, s)
        return total

    here, kept = log_density(*state), []
    for step in range(steps):
        new = [one.copy() for one in state]
        which = step % (len(ARMS) + len(several) + 3)
        if which < len(ARMS):
            new[0][:, which] += SEED_SDS[which] * rng.standard_normal((chains, 3)) * 0.5
        elif which < len(ARMS) + len(several):
            own = which - len(ARMS)
            new[1][:, own] += np.array(SEED_SPREAD) * rng.standard_normal((chains, 3))
        elif which == len(ARMS) + len(several):
            new[2] += 0.3 * rng.standard_normal(new[2].shape)
        elif which == len(ARMS) + len(several) + 1:
            new[3] += np.array(SPREAD) * rng.standard_normal((chains, 3)) * 0.6
        else:
            new[4] += 0.4 * rng.standard_normal((chains, 3))
        there = log_density(*new)
        take = np.log(rng.random(chains)) < there - here
        state = [np.where(take.reshape(-1, *[1] * (a.ndim - 1)), b, a) for a, b in zip(state, new, strict=True)]
        here = np.where(take, there, here)
        if step > steps // 4 and step % 20 == 0:
            kept.append(state[0])
    return np.concatenate(kept)


@pytest.mark.slow
def test_seeds_of_arms_agree_with_a_long_markov_chain() -> None:
    stand_ins = [_stand_in(mean, sd, at) for at, (mean, sd) in enumerate(zip(SEED_MEANS, SEED_SDS, strict=True))]
    box = (np.log(10) - np.log(0.2)) * (2 * np.log(20) + np.log(20))
    found = np.concatenate([_theta(joint_draws(stand_ins, seed=seed, arms=ARMS)) for seed in range(8)])
    chain = _chain_of_seeds(float(box))
    np.testing.assert_array_less(np.abs(found.mean(axis=0) - chain.mean(axis=0)), 0.25 * chain.std(axis=0))
    np.testing.assert_allclose(found.std(axis=0), chain.std(axis=0), rtol=0.25)
    for draws in (found, chain):  # seeds go together more than arms do
        across = np.corrcoef(draws[:, :, 0].T)
        assert across[2, 3] > across[2, 4] + 0.1
    gap, expected = (draws[:, 2:4, 0].mean(axis=1) - draws[:, :2, 0].mean(axis=1) for draws in (found, chain))
    assert gap.std() == pytest.approx(expected.std(), rel=0.2)


def test_the_mean_of_seeds_is_known_no_better_for_what_other_arms_tell() -> None:
    """Ceilings that no run tells: by the other arms alone the mean of three seeds is as open as an arm is."""
    mean, open_one = np.array([0.6, 0.6, 8.0]), np.array([0.15, 0.1, 0.1])
    known = [_stand_in(mean, 0.02 * open_one, at) for at in range(4)]
    stand_ins = [*known, *(_stand_in(mean, open_one, 10 + at) for at in range(3))]
    nested, flat = (
        np.concatenate([_theta(joint_draws(stand_ins, seed=seed, arms=arms))[:, 4:, 0] for seed in range(6)])
        for arms in ((0, 1, 2, 3, 4, 4, 4), range(7))
    )
    assert nested.mean(axis=1).std() > 1.3 * flat.mean(axis=1).std()
    assert nested.mean(axis=1).std() > 0.75 * nested[:, 0].std()
    assert (nested[:, 0] - nested[:, 1]).std() < (flat[:, 0] - flat[:, 1]).std()


def test_runs_that_are_all_seeds_of_one_arm_are_a_family_of_their_own() -> None:
    stand_ins = [_stand_in(mean, sd, at) for at, (mean, sd) in enumerate(zip(MEANS, SDS, strict=True))]
    one_arm, apart = (_theta(joint_draws(stand_ins, arms=arms)) for arms in ((0, 0, 0), (0, 1, 2)))
    assert (one_arm[:, 1, 0] - one_arm[:, 2, 0]).std() < (apart[:, 1, 0] - apart[:, 2, 0]).std()


def test_an_arm_known_by_itself_is_left_alone() -> None:
    sure = [_stand_in(mean, 0.02 * sd, at) for at, (mean, sd) in enumerate(zip(MEANS, SDS, strict=True))]
    found = _theta(joint_draws(sure))
    np.testing.assert_allclose(found.mean(axis=0), MEANS, atol=2e-3)
    np.testing.assert_allclose(found.std(axis=0), 0.02 * SDS, rtol=0.15)


def test_the_prior_of_the_fits_is_not_counted_once_for_every_arm() -> None:
    """Draws that are nothing but their informative prior: pooling them must not make the common centre sharper."""
    prior = Prior("wide", (0.6, 0.1), (0.6, 0.3), (8.0, 0.5), weight=0.99, dof=200.0)
    mean, sd = np.array([0.6, 0.6, 8.0]), np.array([0.1, 0.3, 0.5])
    found = _theta(joint_draws([_stand_in(mean, sd, at, prior) for at in range(6)]))
    assert found.mean(axis=1)[:, 0].std() > 0.06  # counted six times it would be .1 / sqrt(6) = .04


def test_siblings_bring_early_forecasts_nearer_to_the_truth() -> None:
    alone, together = [], []
    for seed in (1, 2, 3):
        sweep = synthetic_sweep(seed, arms=6, spread="siblings", noise="white")
        finals = np.array([track.final for track in sweep.tracks])
        fits = [fit(track.curve.until(3200.0)) for track in sweep.tracks]
        for kept, siblings in ((alone, False), (together, True)):
            joint = joint_draws(fits, siblings=siblings)
            ends = np.array([joint.run(at, np.array([sweep.horizon])).mean() for at in range(6)])
            kept.append(np.abs(ends - finals).mean())
    assert np.mean(together) < 0.7 * np.mean(alone)


def test_joint_draws_are_reproducible() -> None:
    stand_ins = [_stand_in(mean, sd, at) for at, (mean, sd) in enumerate(zip(MEANS, SDS, strict=True))]
    np.testing.assert_array_equal(joint_draws(stand_ins, seed=3).A, joint_draws(stand_ins, seed=3).A)
