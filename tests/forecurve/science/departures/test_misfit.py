"""Curves that are not one sigmoid are named; curves that are, are not."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve.science import Curve, advise, fit, predict_mean
from forecurve.science.curves.wandering import Whitener

from ..synthetic import noisy_curve, sigmoid

X = np.linspace(0, 300, 31)


def _curve(mean: np.ndarray, seed: int = 0, sd: float = 0.01) -> Curve:
    noise = np.random.default_rng(seed).normal(0, sd, len(X))
    return Curve(X, np.clip(mean + noise, 0, 1), prompts=512, samples=2, unit="steps")


def test_healthy_runs_are_hardly_ever_called_a_misfit() -> None:
    verdicts = [fit(noisy_curve(seed, last=last, points=30)).misfit for seed in range(25) for last in (2000, 8000)]
    assert sum(verdict is not None for verdict in verdicts) <= 1


@pytest.mark.parametrize("seed", range(4))
def test_a_decline_is_named_dated_and_sized(seed: int) -> None:
    healthy = sigmoid(X, 0.7, 1.6, 30, 0.2)
    result = fit(_curve(healthy - np.maximum(X - 180, 0) * 0.0015, seed))
    assert result.misfit == "decline"
    detail = result.misfit_detail
    assert detail is not None
    assert detail.since == pytest.approx(180, abs=50)
    assert detail.size == pytest.approx(0.16, abs=0.06)
    advice = advise(result, budget=600)
    assert advice.action == "undecided"
    assert "fell" in advice.reason
    assert "checkpoint before it" in advice.reason
    assert "no ceiling can be read" in result.sentence()


@pytest.mark.parametrize("seed", range(3))
def test_the_date_of_a_decline_stays_as_the_run_goes_on(seed: int) -> None:
    """It is looked for at every evaluation: a few places on the whole run would lie elsewhere with every one."""
    whole = noisy_curve(seed, last=8000, points=100)
    fell = Curve(
        whole.compute, whole.reward - 0.3 * np.maximum(whole.compute - 4000, 0) / 4000, prompts=1000, samples=16
    )
    dates = [fit(fell.part(slice(0, size))).misfit_detail.since for size in range(66, 102, 7)]  # type: ignore[union-attr]
    assert dates == pytest.approx([4000] * len(dates), abs=2 * 80)  # two evaluations


@pytest.mark.parametrize("gap", [3, 12.5, 25, 64, 1e20])
def test_a_run_that_falls_from_its_first_evaluation_on_is_not_sent_to_a_checkpoint_before_it(gap: float) -> None:
    noise = np.random.default_rng(1).normal(0, 0.004, 25)
    result = fit(Curve(gap * np.arange(1, 26), 0.5 - 0.01 * np.arange(25) + noise, prompts=1000, samples=16))
    assert result.misfit_detail is not None
    assert result.misfit_detail.since == gap
    assert "Look at how its first evaluation was made" in advise(result, budget=60 * gap).reason


@pytest.mark.parametrize("seed", range(4))
def test_a_sudden_loss_is_a_collapse(seed: int) -> None:
    healthy = sigmoid(X, 0.7, 1.6, 30, 0.2)
    result = fit(_curve(np.where(X > 200, 0.1, healthy), seed))
    detail = result.misfit_detail
    assert detail is not None
    assert (detail.name, detail.fallen, detail.withheld) == ("collapse", True, True)
    assert detail.size > 0.4
    assert detail.since == pytest.approx(200, abs=15)
    assert "collapsed by 0." in detail.sentence
    assert advise(result, budget=600).action == "undecided"


@pytest.mark.parametrize("seed", range(4))
def test_two_phase_growth_is_named(seed: int) -> None:
    shoulder = sigmoid(X, 0.45, 2.5, 15, 0.1) + 0.3 / (1 + np.exp(-(X - 170) / 12))
    result = fit(_curve(shoulder, seed))
    assert result.misfit == "two-phase"
    assert result.misfit_detail is not None
    assert result.misfit_detail.withheld
    assert advise(result, budget=600).action == "undecided"


@pytest.mark.parametrize("jump", [0.1, -0.08])
@pytest.mark.parametrize("seed", range(3))
def test_a_jump_of_the_level_is_a_break_with_its_date_and_direction(seed: int, jump: float) -> None:
    """A curriculum change: harder or easier prompts from one evaluation on, while the run goes on growing."""
    growing = sigmoid(X, 0.8, 1.2, 120, 0.2)
    result = fit(_curve(growing + jump * (X > 150), seed))
    detail = result.misfit_detail
    assert detail is not None
    assert detail.name == "break" or (jump < 0 and detail.name == "decline")
    assert detail.withheld
    assert detail.since == pytest.approx(150, abs=25)
    if detail.name == "break":
        assert detail.size * jump > 0
        assert ("jumps up" if jump > 0 else "down") in detail.sentence
        assert advise(result, budget=600).action == "undecided"


def test_a_run_that_goes_on_otherwise_after_a_restart_is_a_break_there() -> None:
    """The wandering part may begin anew at a restart, so that a small shift there is none."""
    growing = sigmoid(X, 0.8, 1.2, 120, 0.2)
    found = []
    for seed in range(4):
        noise = np.random.default_rng(seed).normal(0, 0.01, len(X))
        resumed = {"prompts": 512, "samples": 2, "restarts": (165.0,)}
        assert fit(Curve(X, growing + noise, **resumed)).misfit is None
        found.append(fit(Curve(X, growing + 0.1 * (X > 165) + noise, **resumed)).misfit_detail)
    named = [detail for detail in found if detail is not None]
    assert len(named) >= 3
    assert {detail.name for detail in named} == {"break"}
    assert all(detail.since == pytest.approx(165, abs=15) for detail in named)


def test_a_bend_at_one_point_is_a_break_or_no_sigmoid_at_least() -> None:
    """A learning rate that is cut to nothing: growth stops at once, which an exponential's end is nearly like."""
    growing = sigmoid(X, 0.9, 1.0, 150, 0.1)
    bent = np.where(X > 150, sigmoid(np.array([150.0]), 0.9, 1.0, 150, 0.1)[0], growing)
    names = [fit(_curve(bent, seed, sd=0.004)).misfit for seed in range(8)]
    assert set(names) == {"break", "shape"}


def test_curves_without_a_shape_are_named_and_still_fitted() -> None:
    zero = fit(Curve([1, 2, 3, 4], [0, 0, 0, 0], prompts=100, samples=4))
    assert zero.misfit == "pinned"
    assert zero.A.upper > 0.5
    assert advise(zero, budget=100).action == "undecided"
    one = fit(Curve([1, 2, 3, 4], [1, 1, 1, 1], prompts=100, samples=4))
    assert one.misfit == "pinned"
    assert advise(one, budget=100).action == "stop"
    flat = fit(Curve([1, 2, 3, 4], [0.4] * 4))
    assert flat.misfit == "constant"
    assert np.isfinite([flat.A.lower, flat.A.upper, flat.B.median, flat.C_mid.median]).all()


@pytest.mark.parametrize("reward", [[0.0] * 12, [1.0] * 12, [0.4] * 12])
def test_a_curve_without_a_shape_has_its_forecast_withheld(reward: list[float]) -> None:
    detail = fit(Curve(range(1, 13), reward, prompts=100, samples=4)).misfit_detail
    assert detail is not None
    assert detail.withheld
    assert detail.widening is None


def test_a_regular_wave_is_no_misfit_and_its_end_is_within_what_is_said() -> None:
    """Of three cycles, eight times as high as the noise: too smooth for any wandering part."""
    x = np.linspace(0, 300, 101)
    for seed in range(8):
        rng = np.random.default_rng(seed)
        wave = 0.008 * np.sin(x / 150 * 3 * 2 * np.pi + rng.uniform(0, 2 * np.pi))
        reward = sigmoid(x, 0.7, 1.6, 30, 0.2) + wave + rng.normal(0, 0.001, 101)
        found = fit(Curve(x[:51], reward[:51], prompts=512, samples=2))
        assert found.misfit is None
        end = predict_mean(found, x[-10:])
        assert end.lower <= reward[-10:].mean() <= end.upper


def test_a_wandering_run_is_no_misfit_for_the_noise_model_explains_it() -> None:
    verdicts = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        wander = [rng.normal(0, 0.006)]
        for _ in range(30):
            wander.append(0.7 * wander[-1] + rng.normal(0, 0.006 * np.sqrt(1 - 0.49)))
        verdicts.append(fit(_curve(sigmoid(X, 0.7, 1.6, 30, 0.2) + np.array(wander), seed, sd=0.0035)).misfit)
    assert sum(verdict is not None for verdict in verdicts) <= 1


def test_a_fall_that_is_only_noise_is_no_decline() -> None:
    verdicts = [fit(_curve(sigmoid(X, 0.7, 1.6, 30, 0.2), seed, sd=0.02)).misfit for seed in range(20)]
    assert verdicts.count("decline") + verdicts.count("collapse") <= 1


LATE = np.linspace(8000 / 30, 8000, 30)  # the first evaluation lies a step into the run: no start was measured
AT = LATE[18]


def _late(change: np.ndarray | float, seed: int, slower: float = 1.0) -> Curve:
    healthy = sigmoid(LATE, 0.6, 1.9, 2400 * slower, 0.2)
    noise = np.random.default_rng(seed).normal(0, 0.0035, len(LATE))
    return Curve(LATE, np.clip(healthy + change + noise, 0, 1), prompts=1000, samples=16)


@pytest.mark.parametrize(
    ("change", "names"),
    [
        (-0.3 * (LATE >= AT), {"collapse"}),
        (-0.3 * np.maximum(LATE - AT, 0) / (8000 - AT), {"decline"}),
        (-0.1 * np.maximum(LATE - AT, 0) / (8000 - AT), {"decline"}),
        (-0.03 * (LATE >= AT), {"decline", "break"}),
        (0.1 * (LATE >= AT), {"break"}),
    ],
    ids=["collapse", "decline", "slight decline", "drop", "jump"],
)
def test_a_run_without_a_measured_start_is_judged_as_one_with(change: np.ndarray, names: set[str]) -> None:
    details = [fit(_late(change, seed)).misfit_detail for seed in range(4)]
    assert {detail.name if detail else None for detail in details} <= names
    assert all(detail is not None and detail.withheld for detail in details)


def test_healthy_runs_without_a_measured_start_are_hardly_ever_called_a_misfit() -> None:
    verdicts = [fit(_late(0.0, seed, slower)).misfit for seed in range(15) for slower in (0.5, 1.0, 3.0)]
    assert sum(verdict is not None for verdict in verdicts) <= 1


def test_a_run_that_peaks_and_falls_has_no_ceiling_below_its_peak() -> None:
    """The forecast is withheld in place of a ceiling in the middle between the peak and where the run is now."""
    x = np.linspace(16_000 / 60, 16_000, 60)
    fallen = sigmoid(x, 0.6, 1.9, 2400, 0.2) - 0.2 * np.clip((x - 9000) / 7000, 0, 1)
    reward = fallen + np.random.default_rng(1).normal(0, 0.004, 60)
    for curve in (Curve(x, reward), Curve(x, reward, prompts=1000, samples=16)):
        result = fit(curve)
        assert result.misfit == "decline"
        assert result.to_dict(budget=32_000)["at_budget"] is None
        assert advise(result, budget=32_000).action != "continue"


def test_a_smooth_second_rise_is_named_without_a_measured_start() -> None:
    growing = sigmoid(LATE, 0.45, 2.5, 800, 0.2) + 0.2 / (1 + (AT / LATE) ** 6)
    noise = [np.random.default_rng(seed).normal(0, 0.0035, len(LATE)) for seed in range(4)]
    assert {fit(Curve(LATE, growing + one, prompts=1000, samples=16)).misfit for one in noise} == {"two-phase"}


@pytest.mark.parametrize("points", [25, 100])
@pytest.mark.parametrize("seed", range(3))
def test_a_steep_second_rise_while_the_first_phase_still_grows_is_named(points: int, seed: int) -> None:
    """There is no dip between them. It was `shape`, and its interval seldom held the end of a long one."""
    compute = np.linspace(8000 / points, 8000, points)
    growing = sigmoid(compute, 0.6, 1.2, 1500, 0.2) + 0.2 / (1 + (5500 / compute) ** 6)
    noise = np.random.default_rng(seed).normal(0, 0.0035, points)
    detail = fit(Curve(compute, growing + noise, prompts=1000, samples=16)).misfit_detail
    assert detail is not None
    assert (detail.name, detail.withheld) == ("two-phase", True)
    assert detail.since == pytest.approx(5500, rel=0.25)
    assert 0.1 < detail.size < 0.45


def _squares(whitener: Whitener, columns: np.ndarray) -> np.ndarray:
    return np.einsum("nk,nk->k", columns, whitener.solve(columns))


def test_the_best_sigmoid_is_one_where_the_evaluations_do_not_tell_its_start() -> None:
    """With its midpoint far before the first evaluation g is 1 to the last digit and free least squares is 0 / 0."""
    from forecurve.science.departures.extension import NullModel

    problem = fit(_late(-0.3 * (LATE >= AT), seed=0)).problem
    nodes = np.log([[6.5, 10.0, 2.0, 0.3, 1.9], [13.0, 29.0, 20.0, 14.0, 2400.0]])
    found = NullModel(problem, nodes, cell=np.zeros(2))
    assert ((found.R0 >= 0) & (found.R0 <= found.A) & (found.A <= 1)).all()
    unit = problem.setting.unit_variance
    for h, whitener in enumerate(problem.whiteners):
        residuals = problem.reward[:, None] - (found.R0[h] + (found.A[h] - found.R0[h]) * found.g)
        np.testing.assert_allclose(found.least[h], _squares(whitener, residuals) / unit, rtol=1e-6)
        levels = np.linspace(0.2, 0.6, 401)[:, None]  # no level does better than the best sigmoid
        least = min(_squares(whitener, problem.reward[:, None] - level)[0] / unit for level in levels)
        assert (found.least[h] <= least).all()


@pytest.mark.parametrize("seed", range(3))
def test_closed_form_and_numerical_least_squares_agree_on_an_extension(seed: int) -> None:
    """At one node, under white noise: numpy's lstsq on the same columns."""
    from forecurve.science.departures.changes import steps
    from forecurve.science.departures.extension import NullModel, _Terms
    from forecurve.science.posterior.sigmoid import rise

    problem = fit(_curve(np.where(X > 200, 0.4, sigmoid(X, 0.7, 1.6, 30, 0.2)), seed)).problem
    node = np.log([[1.6], [30.0]])
    columns = steps(len(X), np.array([21]))
    null = NullModel(problem, node, cell=np.zeros(2))
    white = np.array([0])  # the first hypothesis: no wandering part, no early regime
    found = null._extend(_Terms.of(problem, columns, np.array([-1.0]), white, null.top))
    g = rise(problem.log_c, node[0], node[1])
    design = np.concatenate([1 - g, g, columns], axis=1)
    scale = 1 / np.sqrt(problem.shares)
    solution = np.linalg.lstsq(design * scale[:, None], problem.reward * scale, rcond=None)[0]
    assert found.delta == pytest.approx(solution[2], rel=1e-6)
    np.testing.assert_allclose(found.values, design @ solution, atol=1e-9)


@pytest.mark.parametrize("first", [0, 200])
def test_noise_of_which_nothing_is_told_is_no_fall(first: float) -> None:
    """A start that came out high is no level that a flat run has lost."""
    found = [
        fit(Curve(first + 200 * np.arange(20), np.clip(0.5 + 0.1 * np.random.default_rng(seed).normal(size=20), 0, 1)))
        for seed in range(60)
    ]
    assert sum(one.withheld for one in found) <= 2


@pytest.mark.parametrize("size", [7, 8, 10, 14])
def test_a_curve_and_a_fall_that_describe_a_few_noisy_evaluations_by_themselves_say_nothing(size: int) -> None:
    """15 of 100 of the shortest were a fall."""
    found = [
        fit(Curve(range(1, size + 1), np.clip(0.5 + 0.1 * np.random.default_rng([size, seed]).normal(size=size), 0, 1)))
        for seed in range(60)
    ]
    assert sum(one.withheld for one in found) <= 4


def test_a_run_that_fell_is_expected_to_stay_as_long_as_it_has_and_may_come_back() -> None:
    """What came after the fall is a curve of its own; the longer it has lasted, the surer it is to last."""
    healthy = sigmoid(X, 0.7, 1.6, 30, 0.2)
    fallen = np.where(X > 90, 0.05, healthy)
    early, late = fit(_curve(fallen).until(150.0)), fit(_curve(fallen).until(290.0))
    assert (early.misfit, late.misfit) == ("collapse", "collapse")
    soon, sure = predict_mean(early, [300.0]), predict_mean(late, [300.0])
    assert soon.upper > 0.4  # it may recover yet
    assert soon.lower < 0.1
    assert sure.lower < 0.05 < sure.upper
    assert sure.upper < 0.35
    assert abs(sure.median - 0.05) < 0.02


@pytest.mark.parametrize("points", [12, 20, 75, 200])
@pytest.mark.parametrize(("A", "B", "C_mid", "R0"), [(0.61, 1.9, 3_000.0, 0.2), (0.62, 1.0, 8_000.0, 0.0)])
def test_a_computed_curve_without_noise_is_no_misfit(points: int, A: float, B: float, C_mid: float, R0: float) -> None:
    compute = np.linspace(100.0, 16_000.0, points)
    exact = fit(Curve(compute, R0 + (A - R0) / (1 + (C_mid / compute) ** B)))
    assert exact.misfit is None
    assert exact.widening == 1
    assert exact.A.lower < A < exact.A.upper


def test_there_is_nothing_to_wait_for_where_the_moment_to_decide_has_passed() -> None:
    compute = np.arange(1.0, 41.0)
    reward = 0.2 + 0.4 / (1 + (8.0 / compute) ** 1.9) + np.random.default_rng(5).normal(0, 0.004, 40)
    reward[22:] -= 0.25
    found = fit(Curve(compute, reward))
    assert found.misfit == "collapse"
    for budget in (40.5, 42.0, 60.0, 400.0):
        when = advise(found, budget=budget).numbers["decide_at"]
        assert when is None or 40 < when < budget


def test_a_fall_at_the_least_compute_that_is_taken_is_advised_on() -> None:
    compute = np.linspace(1e-30, 2e-30, 40)
    reward = 0.2 + 0.4 / (1 + (1.4e-30 / compute) ** 1.9) + np.random.default_rng(0).normal(0, 0.005, 40)
    reward[25:] -= 0.2
    found = fit(Curve(compute, reward))
    assert found.to_dict(budget=1e-29)["advice"]["action"] in {"stop", "undecided"}


def test_a_late_start_is_a_break_at_every_evaluation() -> None:
    """What was found among a few places of a change is not lost when it is looked for about the best of them."""
    rewards = [0.0] * 12 + [0.0025, 0.0595, 0.126, 0.2035, 0.2575, 0.3055, 0.3485, 0.382, 0.4305, 0.4435, 0.442]
    rewards += [0.4665, 0.4725, 0.5035, 0.5175, 0.517]
    compute = np.arange(len(rewards)) * 400.0
    for points in range(20, len(rewards) + 1):
        found = fit(Curve(compute[:points], rewards[:points], prompts=500, samples=4))
        assert found.misfit == "break", points
