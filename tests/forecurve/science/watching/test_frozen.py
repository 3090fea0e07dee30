"""A frozen forecast: what its fit said, the same after a trip through JSON, and refused where it cannot be."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from forecurve.science import Curve, FrozenError, FrozenForecast, fit, freeze, revision, watch

from ..synthetic import noisy_curve, sigmoid

FIT = fit(noisy_curve(0, last=4000, points=25))
FROZEN = freeze(FIT)
LATER = np.linspace(4160, 16000, 75)


def test_the_frozen_forecast_agrees_with_the_fit_it_was_frozen_from() -> None:
    found = fit(noisy_curve(0, last=4000, points=25), prior="paper")  # a flat one's evaluations may leave their curve
    frozen = freeze(found)
    mean, sd = frozen.mixture(LATER, np.full(len(LATER), frozen.last_variance), frozen.clock(LATER)).moments()
    band = found.predict_evaluation(LATER)
    np.testing.assert_allclose(mean, band.median, atol=0.004)
    np.testing.assert_allclose(sd, (band.upper90 - band.lower90) / 2 / 1.645, rtol=0.15)
    assert frozen.at(16_000).median == pytest.approx(found.predict(16_000).median[0], abs=0.003)
    assert FROZEN.at(16_000).median == pytest.approx(FIT.predict(16_000).median[0], abs=0.003)


def test_the_forecast_of_a_piece_has_the_covariance_of_its_draws_and_of_the_noise() -> None:
    """As docs/science/watch.md writes it, over uneven gaps and a restart."""
    later = np.sort(np.random.default_rng(8).uniform(4100, 16_000, 30))
    clock, shares = FROZEN.clock(later, (later[20],)), np.linspace(0.5, 2, 30)
    forecast, pieces = FROZEN.mixture(later, shares * FROZEN.nominal, clock), FROZEN._pieces
    curve = np.stack([sigmoid(later, *one) for one in zip(FROZEN.A, FROZEN.B, FROZEN.C_mid, FROZEN.R0, strict=True)])
    rho = np.array([FROZEN.hypotheses[index][1] for index in FROZEN.hypothesis])
    curve = curve + FROZEN.state[:, None] * rho[:, None] ** clock
    assert len(pieces.draws) > 1
    for number, (draws, there) in enumerate(zip(pieces.draws, pieces.there, strict=True)):
        mine = draws[there]
        expected = np.cov(curve[mine].T, bias=True)
        for one in mine:
            (eta, rho_of), scale = FROZEN.hypotheses[FROZEN.hypothesis[one]], FROZEN.scale[one] / len(mine)
            expected += scale * np.diag(shares)
            if eta > 0:
                faded = rho_of ** (clock[:, None] + clock)
                apart = rho_of ** np.abs(clock[:, None] - clock)
                unknown = FROZEN.state_variance[FROZEN.hypothesis[one]]
                expected += scale * (eta * (apart - faded) + unknown * faded)
        parts, found = forecast.start[number], np.diag(forecast.sampling[:, number])
        for s in range(30):
            parts = parts * forecast.carried[s] ** 2 + forecast.fresh[s, number]
            for t in range(s, 30):
                carried = forecast.carried[s + 1 : t + 1].prod(axis=0)
                shared = (parts * carried * forecast.loading[s, number] * forecast.loading[t, number]).sum()
                found[s, t] += shared
                found[t, s] = found[s, t]
        known = FROZEN._pieces.dof / (FROZEN._pieces.dof - 2)
        np.testing.assert_allclose(known * found, expected, rtol=1e-6, atol=1e-12 * expected.max())
        np.testing.assert_allclose(np.diag(found), forecast.variance[:, number], rtol=1e-9)
        np.testing.assert_allclose(forecast.mean[:, number], curve[mine].mean(axis=0))


def test_a_frozen_forecast_survives_json() -> None:
    again = FrozenForecast.from_dict(json.loads(json.dumps(FROZEN.to_dict(), allow_nan=False)))
    reward = sigmoid(LATER, 0.59, 1.9, 2500, 0.2)
    one, two = watch(FROZEN, LATER, reward), watch(again, LATER, reward)
    np.testing.assert_allclose(one.z, two.z, atol=1e-3)
    assert one.level == two.level
    assert again.to_dict() == FROZEN.to_dict()


def test_a_forecast_that_is_withheld_is_not_frozen() -> None:
    curve = noisy_curve(3, last=16_000, points=60)
    fell = Curve(
        curve.compute, np.where(curve.compute > 9000, curve.reward - 0.3, curve.reward), prompts=1000, samples=16
    )
    with pytest.raises(FrozenError, match=r"fit: .*got collapse; freeze one without a misfit"):
        freeze(fit(fell))


def test_a_frozen_forecast_is_one_line_to_look_at() -> None:
    assert repr(FROZEN).startswith("FrozenForecast('run ")
    assert len(repr(FROZEN)) < 160


def test_a_broken_store_is_refused_with_the_way_out() -> None:
    stored = FROZEN.to_dict()
    with pytest.raises(FrozenError, match="freeze the run again"):
        FrozenForecast.from_dict({**stored, "version": 99})
    del stored["draws"]
    with pytest.raises(FrozenError, match="freeze the run again"):
        FrozenForecast.from_dict(stored)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("usual_gap", 0.0),
        ("usual_gap", float("nan")),
        ("nominal", -1.0),
        ("usual_gap", 1e-320),
        ("horizon", 0),
        ("horizon", 10**400),
        ("points", -5),
        ("at_compute", -1.0),
        ("at_compute", 1e300),
        ("hypotheses", [[3.0, 0.0]] * len(FROZEN.hypotheses)),
        ("hypothesis", []),
        ("state_variance", [0.1]),
        ("state_variance", [-1e9] * len(FROZEN.hypotheses)),
        ("hypotheses", [[1.0, 2.0]] * len(FROZEN.hypotheses)),
    ],
)
def test_a_damaged_store_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(FrozenError, match=r"damaged.*freeze the run again"):
        FrozenForecast.from_dict({**FROZEN.to_dict(), name: value})


@pytest.mark.parametrize(
    "stored",
    [
        None,
        "forecast",
        [],
        *(
            {**FROZEN.to_dict(), name: value}
            for name, value in (
                ("bounds", [0]),
                ("bounds", [float("nan"), 1.0]),
                ("horizon", float("inf")),
                ("horizon", 80.5),
                ("points", "20"),
                ("hypothesis", 3),
                ("hypothesis", [[0]] * len(FROZEN.hypothesis)),
                ("hypothesis", [0.5] * len(FROZEN.hypothesis)),
                ("unit", None),
                ("source", 3),
                ("restarts", [-1.0]),
                ("draws", {**FROZEN.to_dict()["draws"], "C_mid": [0.0] * len(FROZEN.A)}),
            )
        ),
    ],
)
def test_what_is_no_frozen_forecast_is_refused_with_the_way_out(stored: Any) -> None:
    with pytest.raises(FrozenError, match=r"freeze the run again|pass what FrozenForecast.to_dict gave"):
        FrozenForecast.from_dict(stored)


@pytest.mark.parametrize(
    "compute", [float("nan"), -5.0, float("inf"), "far", np.array([1.0, 2.0]), np.array([1.0]), None]
)
def test_a_place_that_is_none_is_refused(compute: Any) -> None:
    with pytest.raises(FrozenError, match=r"^compute: a finite compute of at least 0 is needed"):
        FROZEN.at(compute)
    with pytest.raises(FrozenError, match=r"^compute: a finite compute"):
        revision(FROZEN, FIT, compute)


@pytest.mark.parametrize(("name", "values"), [("A", [0.5]), ("scale", None)])
def test_draws_that_are_missing_or_no_numbers_are_refused(name: str, values: list[float] | None) -> None:
    stored = FROZEN.to_dict()
    stored["draws"][name] = values or [float("nan"), *stored["draws"][name][1:]]
    with pytest.raises(FrozenError, match=f"^{name}: it is damaged"):
        FrozenForecast.from_dict(stored)
    with pytest.raises(FrozenError, match=r"^hypothesis: it is damaged"):
        FrozenForecast.from_dict({**FROZEN.to_dict(), "hypothesis": [99] * len(FROZEN.hypothesis)})
