"""Expected errors against the same with runs left out one by one, and what the lattice makes of clear cases."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve.science.past.analogues import Course, expected_errors


@pytest.mark.parametrize("apart", [0.0, 0.3])
def test_an_error_left_out_is_that_of_a_new_run(apart: float) -> None:
    """In closed form for all past runs at once, or by forgetting each in turn: the same, sd included."""
    rng = np.random.default_rng(3)
    errors, sds, paths = 0.05 * rng.normal(size=12), rng.uniform(0.01, 0.1, 13), rng.uniform(0.2, 0.3, (13, 6))
    medians = 0.6 + apart * np.repeat([-1.0, -0.5, 0.0, 0.5, 1.0], [2, 2, 5, 2, 2])[rng.permutation(13)]
    assert np.median(medians[:-1]) == 0.6  # the usual one does not depend on who is left out
    found = expected_errors(errors, medians, sds, paths).left_out
    for at in range(12):
        order = [*(other for other in range(12) if other != at), at]
        alone = expected_errors(errors[order[:-1]], medians[order], sds[order], paths[order]).new
        assert (found[0][at], found[1][at]) == (pytest.approx(alone[0]), pytest.approx(alone[1]))


def test_forecasts_that_overstate_how_runs_differ_are_drawn_together() -> None:
    rng = np.random.default_rng(4)
    medians = rng.uniform(0.3, 0.9, 31)
    errors = -0.5 * (medians - 0.6) + 0.01 * rng.normal(size=31)
    mean, sd = expected_errors(errors[:-1], medians, np.full(31, 0.03), None).new
    assert mean == pytest.approx(-0.5 * (medians[-1] - 0.6), abs=0.02)
    assert sd < 0.03


def test_noise_of_unlike_runs_is_left_alone() -> None:
    rng = np.random.default_rng(5)
    shifts = [
        expected_errors(
            0.05 * rng.normal(size=12), np.full(13, 0.6), np.full(13, 0.05), rng.uniform(0, 1, (13, 6))
        ).new[0]
        for _ in range(50)
    ]
    assert np.std(shifts) < 0.02


def test_the_path_of_a_run_stops_where_the_new_run_is() -> None:
    compute = np.array([0.0, 2.0, 4.0, 6.0, 8.0, 10.0, 12.0, 14.0])
    reward = np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 9.0])
    assert Course(compute, reward).path(12.0).tolist() == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    short = Course(compute[:2], reward[:2]).path(12.0)
    assert short.tolist() == pytest.approx([0.1] * 6)


def test_a_path_is_the_same_however_many_were_asked_before() -> None:
    compute, reward = np.linspace(0, 40, 21), np.linspace(0.1, 0.7, 21)
    course, places = Course(compute, reward), [*range(1, 41), *range(1, 41)]
    asked = [course.path(float(until)).tolist() for until in places]
    assert asked == [Course(compute, reward).path(float(until)).tolist() for until in places]


def _told_by_ends(new_path: float) -> tuple[float, float]:
    """Expected error of a forecast of .9 where past ones said anything and all ended at .6, after a path at .3."""
    rng = np.random.default_rng(6)
    medians, ends = np.append(rng.uniform(0.4, 0.95, 12), 0.9), 0.6 + 0.01 * rng.normal(size=12)
    paths = np.vstack([0.3 + 0.02 * rng.normal(size=(12, 6)), np.full(6, new_path)])
    return expected_errors(ends - medians[:-1], medians, np.full(13, 0.2), paths).new


def test_where_past_forecasts_said_nothing_past_ends_tell_the_end() -> None:
    mean, sd = _told_by_ends(0.3)
    assert mean == pytest.approx(0.6 - 0.9, abs=0.03)
    assert sd < 0.1


def test_of_a_stranger_past_ends_tell_less_and_with_doubt() -> None:
    near, far = _told_by_ends(0.3), _told_by_ends(0.6)
    assert far[0] > near[0] + 0.02
    assert far[1] > 5 * near[1]
