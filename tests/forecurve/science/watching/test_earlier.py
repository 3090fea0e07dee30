"""A run that is judged after every evaluation: as if all were judged at once, at the cost of one."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forecurve.science import Curve, FrozenError, FrozenForecast, Watch, fit, freeze, watch
from forecurve.science.arrays import FloatArray
from forecurve.science.watching.surprise import Known

from ..synthetic import noisy_curve, sigmoid

FROZEN = freeze(fit(noisy_curve(0, last=4000, points=25)))
MANY = np.linspace(4010, 16_000, 1000)


def _rewards(compute: FloatArray, seed: int = 0) -> FloatArray:
    return sigmoid(compute, 0.61, 1.9, 2500, 0.2) + 0.0035 * np.random.default_rng(seed).normal(size=len(compute))


def _assert_same(one: Watch, two: Watch) -> None:
    assert (one.level, one.since_compute, one.back_since) == (two.level, two.since_compute, two.back_since)
    assert (one.fall, one.doubt, one.sentence) == (two.fall, two.doubt, two.sentence)
    for name in ("e_value", "e_value_robust", "e_value_others"):
        assert getattr(one, name) == pytest.approx(getattr(two, name), rel=1e-9)
    for name in ("compute", "reward", "z", "expected", "lower", "upper"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), rtol=1e-9, atol=1e-9)


def _looks(frozen: FrozenForecast, compute: FloatArray, reward: FloatArray, **given: Any) -> Iterator[Watch]:
    """After every evaluation, each from the one before."""
    verdict = None
    for count in range(1, len(compute) + 1):
        verdict = watch(frozen, compute[:count], reward[:count], earlier=verdict, **given)
        yield verdict


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Rows that were judged, by how many were known before each."""
    rows: list[int] = []
    judge = Known.then

    def counted(known: Known, *given: Any) -> tuple[Known, FloatArray]:
        rows.append(known.seen)
        return judge(known, *given)

    monkeypatch.setattr(Known, "then", counted)
    return rows


# --- the same figures ---


@pytest.mark.parametrize("change", ["none", "a fall", "an outlier", "one that comes back", "a restart"])
def test_one_by_one_says_at_every_look_what_all_at_once_does(change: str) -> None:
    compute = MANY[:480:8]
    reward, resumed = _rewards(compute), None
    if change == "a fall":
        reward[40:] -= 0.03
    if change == "an outlier":
        reward[30] = 0.0
    if change == "one that comes back":
        reward[10:25] -= 0.1
    if change == "a restart":
        resumed = [compute[40]]
        reward[41:] -= 0.008
    for count, look in enumerate(_looks(FROZEN, compute, reward, restarts=resumed), start=1):
        _assert_same(look, watch(FROZEN, compute[:count], reward[:count], restarts=resumed))


@pytest.mark.slow  # 5 s
def test_beyond_400_evaluations_too_where_they_are_judged_as_means() -> None:
    compute = MANY[:810]
    reward = _rewards(compute)
    reward[650:] -= 0.02
    for count, look in enumerate(_looks(FROZEN, compute, reward), start=1):
        if count % 97 == 0 or count in (400, 401, 402, 600, 601, 603, 604, 800, 801, 810):
            _assert_same(look, watch(FROZEN, compute[:count], reward[:count]))
    assert look.level == "ALERT"


COLUMNS = ("compute", "reward", "variance")
Run = dict[str, FloatArray]


def _changed(run: Run, kind: str, at: float, seed: int) -> Run:
    """One of the things that happen to a run, at a share of its evaluations."""
    rng, place = np.random.default_rng(seed), int(at * (len(run["compute"]) - 1))
    if kind == "more":
        size = int(rng.integers(1, 150))
        compute = run["compute"][-1] + np.cumsum(rng.uniform(5, 300, size))
        reward = np.clip(_rewards(compute, seed) - 0.03 * (seed % 3 == 0), 0, 1)
        new = {"compute": compute, "reward": reward, "variance": np.full(size, np.nan)}
        return {name: np.concatenate([run[name], new[name]]) for name in COLUMNS}
    if kind == "late":
        between = (FROZEN.at_compute if place == 0 else run["compute"][place - 1], run["compute"][place])
        late = (np.mean(between), float(rng.uniform()), np.nan)
        return {name: np.insert(run[name], place, value) for name, value in zip(COLUMNS, late, strict=True)}
    after = {name: run[name].copy() for name in COLUMNS}
    if kind == "another value":
        after["reward"][place] = rng.uniform()
    if kind == "sizes known":
        after["variance"][place:] = FROZEN.last_variance * rng.uniform(0.5, 2)
    if kind == "resumed":  # evaluations after the checkpoint are replaced by fewer new ones
        after = {name: run[name][: place + 1] for name in COLUMNS}
    return after


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    kinds=st.lists(
        st.tuples(
            st.sampled_from(["more", "late", "another value", "sizes known", "resumed"]),
            st.floats(0, 1),
            st.integers(0, 99),
        ),
        min_size=2,
        max_size=8,
    ),
    restarts=st.lists(st.floats(4000, 30_000), max_size=2),
)
def test_whatever_comes_the_verdict_before_changes_nothing_in_the_next(
    kinds: list[tuple[str, float, int]], restarts: list[float]
) -> None:
    """Late evaluations, ones that replace others, sizes and restarts that become known, many at once."""
    compute = np.array([4160.0, 4320.0])
    run: Run = {"compute": compute, "reward": _rewards(compute), "variance": np.full(2, np.nan)}
    verdict: Watch | None = None
    for number, (kind, at, seed) in enumerate([("more", 1.0, 50), *kinds]):
        run, resumed = _changed(run, kind, at, seed), restarts[:number]
        verdict = watch(FROZEN, **run, restarts=resumed, earlier=verdict)
        _assert_same(verdict, watch(FROZEN, **run, restarts=resumed))


def test_with_fits_that_come_to_know_the_sizes() -> None:
    compute = np.arange(1, 81) * 100.0
    reward = sigmoid(compute, 0.6, 1.6, 2500, 0.2) + 0.003 * np.random.default_rng(1).normal(size=80)
    reward[60:] -= 0.2
    frozen, verdict = freeze(fit(Curve(compute[:40], reward[:40]))), None
    for count in range(41, 81, 3):
        sizes = [None] * 40 + [1000] * (count - 40) if count > 55 else None
        whole = fit(Curve(compute[:count], reward[:count], prompts=sizes, samples=None if sizes is None else 16))
        later = (compute[40:count], reward[40:count])
        verdict = watch(frozen, *later, fit=whole, earlier=verdict)
        _assert_same(verdict, watch(frozen, *later, fit=whole))


def test_a_forecast_that_was_read_again_is_the_same_and_another_one_is_not(judged: list[int]) -> None:
    compute, reward = MANY[:60:2], _rewards(MANY[:60:2])
    stored = json.dumps(FROZEN.to_dict())
    one, two = (FrozenForecast.from_dict(json.loads(stored)) for _ in range(2))
    earlier = watch(one, compute[:29], reward[:29])
    judged.clear()
    again = watch(two, compute, reward, earlier=earlier)
    assert judged == [29]
    _assert_same(again, watch(two, compute, reward))
    other = freeze(fit(noisy_curve(1, last=4000, points=25)))
    _assert_same(watch(other, compute, reward, earlier=earlier), watch(other, compute, reward))


def test_a_verdict_is_a_value_that_two_runs_may_go_on_from() -> None:
    compute, reward = MANY[:60:2], _rewards(MANY[:60:2])
    before = watch(FROZEN, compute[:20], reward[:20])
    said = before.to_dict()
    fallen = np.where(np.arange(30) < 20, reward, 0.1)
    kept = pickle.loads(pickle.dumps(before))
    for rewards in (reward, fallen, reward):
        for earlier in (before, kept):
            _assert_same(watch(FROZEN, compute, rewards, earlier=earlier), watch(FROZEN, compute, rewards))
    assert before.to_dict() == said


def test_what_is_no_verdict_is_refused() -> None:
    with pytest.raises(FrozenError, match=r"^earlier: .*pass what watch\(\.\.\.\) gave"):
        watch(FROZEN, [5000.0], [0.5], earlier={"level": None})  # type: ignore[arg-type]


# --- the cost of one ---


def test_each_evaluation_is_judged_once(judged: list[int]) -> None:
    for _ in _looks(FROZEN, MANY[:300], _rewards(MANY[:300])):
        pass
    assert judged == list(range(300))


def test_one_more_of_very_many_is_one_row_more_and_the_last_one_by_itself(judged: list[int]) -> None:
    reward, verdict = _rewards(MANY), watch(FROZEN, MANY[:900], _rewards(MANY)[:900])
    judged.clear()
    for count in range(901, 1001):
        verdict = watch(FROZEN, MANY[:count], reward[:count], earlier=verdict)
    assert len(judged) == 25 + 75  # means of 4, and what is shown until one is whole


def test_an_evaluation_that_comes_late_sends_it_back_a_little_and_not_to_the_start(judged: list[int]) -> None:
    compute, reward = MANY[:300], _rewards(MANY[:300])
    without = np.delete(np.arange(300), 290)
    earlier = watch(FROZEN, compute[without], reward[without])
    judged.clear()
    late = watch(FROZEN, compute, reward, earlier=earlier)
    assert 10 <= len(judged) <= 10 + 64
    judged.clear()
    watch(FROZEN, compute[:295], reward[:295], earlier=late)
    assert len(judged) <= 64
    _assert_same(late, watch(FROZEN, compute, reward))


def test_nothing_is_worked_out_again_of_a_run_without_a_new_evaluation(judged: list[int]) -> None:
    compute, reward = MANY[:50], _rewards(MANY[:50])
    earlier = watch(FROZEN, compute, reward)
    judged.clear()
    _assert_same(watch(FROZEN, compute, reward, earlier=earlier), earlier)
    assert judged == []
