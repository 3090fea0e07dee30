"""The watch: quiet while the forecast holds, and quick when it does not."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest

from forecurve.science import Curve, FrozenError, fit, freeze, revision, watch
from forecurve.science.watching.watch import ALERT_THRESHOLD, WARN_THRESHOLD

from ..synthetic import noisy_curve, sigmoid

FIT = fit(noisy_curve(0, last=4000, points=25))
FROZEN = freeze(FIT)
LATER = np.linspace(4160, 16000, 75)


def test_healthy_runs_raise_no_alert_end_to_end() -> None:
    """Whole chain: noisy run, fit, freeze, and its own future."""
    levels = []
    for seed in range(40):
        curve = noisy_curve(seed, last=16000, points=98)
        past = curve.until(4000)
        frozen = freeze(fit(past))
        levels.append(watch(frozen, curve.compute[past.points :], curve.reward[past.points :]).level)
    assert levels.count("ALERT") == 0
    assert levels.count("WARN") <= 5


def test_a_fall_is_found_soon_and_dated() -> None:
    delays, dates = [], []
    for seed in range(15):
        curve = noisy_curve(seed, last=16000, points=98)
        past = curve.until(8000)
        later, reward = curve.compute[past.points :], curve.reward[past.points :].copy()
        reward[20:] -= 0.04
        frozen = freeze(fit(past))
        found = next(
            (t for t in range(1, len(later) + 1) if watch(frozen, later[:t], reward[:t]).level == "ALERT"), None
        )
        assert found is not None
        delays.append(found - 20)
        dates.append(abs(watch(frozen, later[:found], reward[:found]).since_compute - later[20]))
    assert np.median(delays) <= 6
    assert min(delays) >= 1
    assert np.median(dates) <= 400


def test_a_collapse_is_an_alert_with_its_shortfall() -> None:
    reward = sigmoid(LATER, 0.61, 1.9, 2500, 0.2)
    reward[30:] = 0.1
    verdict = watch(FROZEN, LATER, reward)
    assert verdict.level == "ALERT"
    assert verdict.since_compute == pytest.approx(LATER[30], rel=0.05)
    assert verdict.actual == pytest.approx(0.1)
    assert verdict.shortfall == pytest.approx(0.5, abs=0.05)
    assert verdict.predicted.lower > 0.5
    assert "fell below its own forecast: 0.10 at 16,000 GPU-hours" in verdict.sentence


def test_a_collapse_after_an_early_freeze_is_an_alert_within_six_evaluations() -> None:
    """Ten points leave the forecast wide and its errors correlated: the first fall explains all that follow."""
    curve = noisy_curve(3, last=16000, points=24, sd=0.02)
    past = curve.until(16000 * 9 / 24)
    later, reward = curve.compute[past.points :], curve.reward[past.points :].copy()
    reward[3:] = 0.0
    frozen = freeze(fit(past))
    levels = [watch(frozen, later[:t], reward[:t]).level for t in range(1, len(later) + 1)]
    assert "ALERT" in levels
    assert 3 < levels.index("ALERT") <= 9
    assert levels[-1] == "ALERT"


def test_no_single_evaluation_raises_an_alert() -> None:
    reward = sigmoid(LATER, 0.61, 1.9, 2500, 0.2)
    for at in (5, 40, 74):
        broken = reward.copy()
        broken[at] = 0.0
        verdict = watch(FROZEN, LATER, broken)
        assert verdict.level == "WARN"
        assert verdict.e_value > WARN_THRESHOLD
        assert verdict.e_value_robust < ALERT_THRESHOLD


@pytest.mark.parametrize(("horizon", "most"), [(3, 4), (8, 4), (20, 1), (80, 0)])
def test_an_alert_hardly_ever_rests_on_one_evaluation(horizon: int, most: int) -> None:
    """Evaluations before it that were a little low, or few that were expected, let no single broken one raise it."""
    past = noisy_curve(0, last=4000, points=25)
    frozen = freeze(fit(past), horizon=horizon)
    later, rung = np.linspace(4160, 16000, 20), 0
    for seed in range(40):
        reward = sigmoid(later, 0.61, 1.9, 2500, 0.2) + 0.0035 * np.random.default_rng(seed).normal(size=20)
        broken = reward.copy()
        broken[seed % 12] = 0.0
        assert watch(frozen, later, reward).level != "ALERT", seed
        verdict = watch(frozen, later, broken)
        rung += verdict.level == "ALERT"
        assert verdict.level is not None, seed
        assert (verdict.level == "ALERT") == (verdict.e_value_robust >= 100 and verdict.e_value_others >= 2), seed
    assert rung <= most  # of 40: those whose other evaluations speak for a fall by chance


@pytest.mark.slow  # 5 s; sizes that become known are in test_earlier.py too
def test_evaluations_whose_size_becomes_known_are_judged_relative_to_what_they_were() -> None:
    """Frozen with sizes unknown; from then on each states its own. What is nominal is now told otherwise, the noise is
    the same: no run rings, and one that falls does."""
    compute = np.arange(1, 161) * 100.0
    levels, fallen = [], []
    for seed in range(20):
        reward = sigmoid(compute, 0.6, 1.6, 2500, 0.2) + 0.003 * np.random.default_rng(seed).normal(size=160)
        frozen = freeze(fit(Curve(compute[:40], reward[:40])))
        for found, drop in ((levels, 0.0), (fallen, 0.05)):
            now = reward - drop * (compute > 8000)
            whole = fit(Curve(compute, now, prompts=[None] * 40 + [1000] * 120, samples=16))
            found.append(watch(frozen, compute[40:], now[40:], fit=whole).level)
    assert levels.count(None) >= 19
    assert fallen.count("ALERT") >= 18


@pytest.mark.slow
def test_nothing_wandering_carries_over_a_restart() -> None:
    """Healthy runs that wander, resumed three times, each time with a wandering part of its own. Taken for runs that go
    on, far more of them ring."""
    compute, rung = np.arange(1, 121) * 100.0, {"known": 0, "unknown": 0}
    segments = np.split(np.arange(120), (60, 80, 100))
    decay = 0.95 ** np.abs(np.arange(60)[:, None] - np.arange(60))
    factor = np.linalg.cholesky(8 * decay)
    for seed in range(120):
        rng = np.random.default_rng(seed)
        wander = np.concatenate([factor[: len(part), : len(part)] @ rng.normal(size=len(part)) for part in segments])
        reward = sigmoid(compute, 0.6, 1.6, 2500, 0.2) + 0.003 * (wander + rng.normal(size=120))
        found = fit(Curve(compute[:40], reward[:40], prompts=1500, samples=16))
        if found.withheld:
            continue
        frozen, resumed = freeze(found), compute[[59, 79, 99]]
        rung["known"] += watch(frozen, compute[40:], reward[40:], restarts=resumed).level is not None
        rung["unknown"] += watch(frozen, compute[40:], reward[40:]).level is not None
    assert rung["known"] <= 12, rung
    assert rung["unknown"] >= 1.5 * rung["known"], rung


def test_restarts_are_those_of_the_fit_and_bad_ones_are_refused() -> None:
    reward = sigmoid(LATER, 0.59, 1.9, 2500, 0.2)
    whole = Curve([*FIT.curve.compute, *LATER], [*FIT.curve.reward, *reward], restarts=[LATER[9]])
    by_fit = watch(FROZEN, LATER, reward, np.full(75, 1e-5), fit=fit(whole))
    by_hand = watch(FROZEN, LATER, reward, np.full(75, 1e-5), restarts=[LATER[9]])
    np.testing.assert_allclose(by_fit.z, by_hand.z)
    assert not np.allclose(by_hand.z, watch(FROZEN, LATER, reward, np.full(75, 1e-5)).z)
    with pytest.raises(FrozenError, match=r"^restarts: .*got -1"):
        watch(FROZEN, LATER, reward, restarts=[-1.0])


def test_missing_and_late_evaluations_change_nothing_but_what_they_say() -> None:
    """A gap is no evidence; an evaluation that comes late is judged as if it had come in time."""
    rng = np.random.default_rng(9)
    reward = sigmoid(LATER, 0.61, 1.9, 2500, 0.2) + rng.normal(0, 0.0035, len(LATER))
    kept = np.sort(rng.choice(len(LATER), 40, replace=False))
    with_gaps = watch(FROZEN, LATER[kept], reward[kept])
    assert with_gaps.level is None
    assert len(with_gaps.z) == 40
    one_long_gap = watch(FROZEN, LATER[-3:], reward[-3:])
    assert one_long_gap.level is None
    dropped = reward - 0.05 * (LATER > 9000)
    assert watch(FROZEN, LATER[kept], dropped[kept]).level == "ALERT"


def test_very_many_evaluations_are_judged_as_means_of_neighbours() -> None:
    many = np.linspace(4010, 16000, 1700)
    healthy = sigmoid(many, 0.61, 1.9, 2500, 0.2)
    frozen = freeze(FIT, horizon=1700)
    fine = watch(frozen, many, healthy)
    assert fine.level is None
    assert len(fine.compute) == 688  # 400, means of 2 to 600, of 4 to 1,000, of 8 to 1,696, and the last by itself
    assert fine.compute[[399, 400]].tolist() == pytest.approx([many[399], many[400:402].mean()])
    assert (fine.compute[-1], fine.actual) == (many[-1], healthy[-1])
    fallen = watch(frozen, many, healthy - 0.05 * (many > 9000))
    assert fallen.level == "ALERT"
    assert fallen.since_compute == pytest.approx(9000, abs=200)
    assert fallen.since_compute in many
    assert fallen.actual == healthy[-1] - 0.05


def test_any_number_of_evaluations_may_be_expected() -> None:
    reward = sigmoid(LATER, 0.61, 1.9, 2500, 0.2)
    for horizon in (1, 10**7, 10**30):
        verdict = watch(freeze(FIT, horizon=horizon), LATER, reward)
        assert (verdict.level, len(verdict.z)) == (None, 75)


@pytest.mark.slow
def test_beyond_400_evaluations_too_nothing_is_judged_anew() -> None:
    """A short fall that has rung is not averaged away by what comes after it, and the first evaluations are judged one
    by one however many are expected."""
    rng = np.random.default_rng(4)
    many = np.linspace(4010, 16000, 1100)
    reward = sigmoid(many, 0.61, 1.9, 2500, 0.2) + 0.004 * rng.normal(size=len(many))
    reward[4:8] -= 0.1
    frozen = freeze(FIT, horizon=1100)
    looks = [watch(frozen, many[:count], reward[:count]) for count in (1, 5, 7, 8, 9, 399, 401, 402, 650, 700, 1100)]
    assert [look.level for look in looks[:2]] == [None, "WARN"]
    assert {look.level for look in looks[3:]} == {"ALERT"}
    assert {look.since_compute for look in looks[3:]} == {many[4]}
    assert (np.diff([look.e_value_robust for look in looks]) >= 0).all()
    for earlier, later in pairwise(looks):
        complete = len(earlier.z) - 1
        np.testing.assert_allclose(earlier.z[:complete], later.z[:complete], rtol=1e-6, atol=1e-9)


def test_a_level_once_reached_stays_and_a_run_that_is_back_is_said_to_be() -> None:
    reward = sigmoid(LATER, 0.61, 1.9, 2500, 0.2)
    reward[10:25] -= 0.1
    low, back = watch(FROZEN, LATER[:25], reward[:25]), watch(FROZEN, LATER, reward)
    assert (low.level, back.level) == ("ALERT", "ALERT")
    assert " fell below its own forecast: " in low.sentence
    assert " was below its own forecast from " in back.sentence
    assert (low.back_since, back.back_since) == (None, LATER[25])
    assert " on and is back within it since " in back.sentence


def test_one_evaluation_by_chance_makes_no_run_back_and_takes_none_down() -> None:
    reward = sigmoid(LATER, 0.61, 1.9, 2500, 0.2)
    reward[10:25] -= 0.1
    lucky, unlucky = reward.copy(), reward.copy()
    lucky[20] += 0.1
    unlucky[30] -= 0.1
    assert watch(FROZEN, LATER[:25], lucky[:25]).back_since is None
    assert watch(FROZEN, LATER, unlucky).back_since == LATER[25]
    again = unlucky.copy()
    again[31] -= 0.1
    assert watch(FROZEN, LATER[:32], again[:32]).back_since is None
    assert watch(FROZEN, LATER, again).back_since == LATER[32]


def test_a_run_above_its_forecast_raises_nothing() -> None:
    reward = np.minimum(sigmoid(LATER, 0.61, 1.9, 2500, 0.2) + 0.1, 1)
    assert watch(FROZEN, LATER, reward).level is None


def test_more_noise_in_the_new_evaluations_weakens_the_evidence() -> None:
    reward = sigmoid(LATER, 0.57, 1.9, 2500, 0.2)
    usual = watch(FROZEN, LATER, reward)
    noisy = watch(FROZEN, LATER, reward, variance=np.full(len(LATER), 1e-3))
    assert noisy.e_value < usual.e_value


@pytest.mark.parametrize(
    ("compute", "reward", "match"),
    [
        ([3000.0], [0.5], "must increase from 4000"),
        ([5000.0, 4500.0], [0.5, 0.5], "in order"),
        ([5000.0], [float("nan")], "finite"),
        ([], [], "at least one"),
        ([5000.0], [0.5, 0.6], "one per compute"),
        ([5000.0, 6000.0], [40.0, 45.0], r"rewards must lie in \[0, 1\], got 40 at evaluation 1"),
        ([5000.0], [-3.0], r"rewards must lie in \[0, 1\]"),
        (["a"], [0.4], "compute: numbers are needed"),
        ([5000.0], ["a"], "reward: numbers are needed"),
        ([[5000.0, 6000.0]], [[0.4, 0.4]], "one row of numbers"),
        ([5000.0, [6000.0]], [0.4, 0.4], "compute: numbers are needed"),
        ([1e300], [0.5], "another unit"),
    ],
)
def test_evaluations_that_do_not_follow_the_freeze_are_refused(
    compute: list[float], reward: list[float], match: str
) -> None:
    with pytest.raises(FrozenError, match=match):
        watch(FROZEN, compute, reward)


@pytest.mark.parametrize("bad", [-1.0, 2.0, 1e-300])
def test_a_variance_that_cannot_be_is_refused(bad: float) -> None:
    with pytest.raises(FrozenError, match=r"^variance: ") as caught:
        watch(FROZEN, [5000.0, 5200.0], [0.5, 0.5], variance=[1e-5, bad])
    assert (caught.value.field, caught.value.value) == ("variance", bad)


@pytest.mark.parametrize("unknown", [0.0, float("nan")])
def test_a_variance_that_is_not_known_is_that_of_the_last_evaluation(unknown: float) -> None:
    later = watch(FROZEN, [5000.0, 5200.0], [0.5, 0.5], variance=[FROZEN.last_variance, unknown])
    np.testing.assert_allclose(later.z, watch(FROZEN, [5000.0, 5200.0], [0.5, 0.5]).z)


# --- what a verdict says ---


def test_a_verdict_is_plain_json_one_line_and_a_figure() -> None:
    pytest.importorskip("plotly")
    reward = sigmoid(LATER, 0.61, 1.9, 2500, 0.2)
    reward[30:] -= 0.1
    verdict = watch(FROZEN, LATER, reward)
    body = json.loads(json.dumps(verdict.to_dict(), allow_nan=False))
    assert (body["level"], body["unit"]) == ("ALERT", "GPU-hours")
    assert body["predicted"]["lower"] > body["actual"]
    assert {len(column) for column in body["evaluations"].values()} == {75}
    assert repr(verdict).startswith("Watch('run 0': ALERT since ")
    assert [trace.name for trace in verdict.plot().data] == ["90 % of one evaluation", "frozen forecast", "evaluations"]


# --- slow, legitimate revisions ---


def test_a_run_that_bends_earlier_is_a_revision_and_no_anomaly() -> None:
    """Its ceiling lies in the lowest part of what the frozen forecast thought possible."""
    past = FIT.curve
    budget = 16_000.0
    low = float(np.quantile(FIT.all_draws.reward_at(budget)[0], 0.02))
    at = int(np.abs(FIT.all_draws.reward_at(budget)[0] - low).argmin())
    draws = FIT.all_draws
    reward = sigmoid(LATER, draws.A[at], draws.B[at], draws.C_mid[at], draws.R0[at])
    reward = reward + np.random.default_rng(5).normal(0, 0.003, len(LATER))
    assert watch(FROZEN, LATER, reward).level is None
    whole = fit(type(past)([*past.compute, *LATER], [*past.reward, *reward], prompts=1000, samples=16))
    found = revision(FROZEN, whole, budget)
    assert found is not None
    assert found.direction == "down"
    assert found.after.median < found.before.lower
    assert "revised from 0." in found.sentence
    assert found.sentence.endswith("slow, legitimate.")
    json.dumps(found.to_dict(), allow_nan=False)


def test_a_forecast_that_holds_is_not_revised() -> None:
    curve = noisy_curve(0, last=16000, points=98)
    assert revision(freeze(fit(curve.until(8000))), fit(curve.until(12000)), 16_000) is None


def test_a_fallen_run_has_no_updated_forecast_to_revise_to() -> None:
    curve = noisy_curve(0, last=8000, points=50)
    reward = curve.reward.copy()
    reward[-15:] = 0.1
    fallen = fit(type(curve)(curve.compute, reward, prompts=1000, samples=16))
    assert fallen.misfit == "collapse"
    assert revision(FROZEN, fallen, 16_000) is None


# --- a fall that does not surprise, because the run was known to be noisy ---


def test_a_smooth_run_that_is_no_sigmoid_is_warned_of_at_most() -> None:
    """It saturates as an exponential does: what was forecast by a sigmoid it never reaches, without having fallen."""
    x = np.linspace(0, 8000, 101)
    rng = np.random.default_rng(1)
    reward = 0.62 - 0.42 * np.exp(-((x / 2000) ** 1.4)) + rng.normal(0, 0.0035, len(x))
    frozen = freeze(fit(Curve(x[:26], reward[:26], prompts=1000, samples=16)))
    alone = watch(frozen, x[26:], reward[26:])
    informed = watch(frozen, x[26:], reward[26:], fit=fit(Curve(x, reward, prompts=1000, samples=16)))
    assert (alone.level, informed.level) == ("ALERT", "WARN")
    assert "bends otherwise than a sigmoid" in informed.sentence
    assert informed.to_dict()["doubt"] == informed.doubt is not None
    assert alone.to_dict()["doubt"] is None
    fallen = np.where(x > 6000, reward - 0.05, reward)
    still = watch(frozen, x[26:], fallen[26:], fit=fit(Curve(x, fallen, prompts=1000, samples=16)))
    assert still.level == "ALERT"


@pytest.mark.parametrize(
    "drop", [pytest.param(0.0, marks=pytest.mark.slow), 0.02, pytest.param(0.1, marks=pytest.mark.slow)]
)
def test_what_was_judged_is_not_judged_anew_when_evaluations_come(drop: float) -> None:
    """So the evidence is one e-process over all looks, and a level once reached stays."""
    rng = np.random.default_rng(3)
    reward = (
        sigmoid(LATER, 0.61, 1.9, 2500.0, 0.2) - drop * (np.median(LATER) < LATER) + 0.004 * rng.normal(size=len(LATER))
    )
    whole = watch(FROZEN, LATER, reward)
    looks = [watch(FROZEN, LATER[:count], reward[:count]) for count in range(1, len(LATER) + 1)]
    for count, look in enumerate(looks, start=1):
        np.testing.assert_allclose(look.z, whole.z[:count], rtol=1e-6, atol=1e-9)
    assert (np.diff(np.log([look.e_value for look in looks])) >= -1e-9).all()
