"""Figures say what the values say: nothing beyond a misfit, early and odd evaluations marked, nothing cut off."""

from __future__ import annotations

import numpy as np
import pytest

from forecurve.science import Advice, Curve, Estimate, advise, fit, predict_ending
from forecurve.science.attribution.compare import compare
from forecurve.science.backtesting.backtest import backtest
from forecurve.science.wording import gain_text, level_text

from .synthetic import noisy_curve, sigmoid

pytest.importorskip("plotly")

COMPUTE = np.linspace(0, 8_000, 51)[1:]


def _curve(moved: np.ndarray | float, seed: int = 0) -> Curve:
    reward = sigmoid(COMPUTE, 0.61, 1.9, 2500, 0.2) + np.random.default_rng(seed).normal(0, 0.0035, 50) + moved
    return Curve(COMPUTE, reward, prompts=1000, samples=16)


def test_a_figure_of_a_withheld_forecast_shows_no_curve_and_no_ceiling() -> None:
    figure = fit(_curve(-0.25 * (COMPUTE > 5_000))).plot(budget=16_000)
    assert [trace.name for trace in figure.data] == ["evaluations"]
    assert [note.text for note in figure.layout.annotations] == ["collapse"]
    assert not any(shape.type == "path" for shape in figure.layout.shapes)


@pytest.mark.parametrize(
    ("reward", "bounds", "shown"),
    [
        (0.0, (0.0, 1.0), (0, 0.1)),
        (1.0, (0.0, 1.0), (0.9, 1)),
        (0.5, (0.0, 1.0), (0.45, 0.55)),
        (0, (-1, 1), (-0.1, 0.1)),
    ],
)
def test_rewards_that_are_all_the_same_have_an_axis_of_rewards(
    reward: float, bounds: tuple[float, float], shown: tuple[float, float]
) -> None:
    figure = fit(Curve([1, 2, 3, 4], [reward] * 4, bounds=bounds)).plot()
    assert figure.layout.yaxis.range == pytest.approx(shown)
    assert fit(Curve([1, 2, 3, 4], [0.1, 0.2, 0.3, 0.3])).plot().layout.yaxis.range is None


def test_the_forecast_begins_where_the_fit_ends_and_reaches_past_the_budget() -> None:
    figure = fit(noisy_curve(0)).plot(budget=16_000)
    traces = {trace.name: trace for trace in figure.data}
    assert traces["fit"].x[-1] == traces["forecast"].x[0] == 8_000
    assert traces["forecast"].x[-1] > 16_000
    assert traces["forecast"].line.dash != traces["fit"].line.dash


def test_the_interval_at_the_budget_is_written_at_it() -> None:
    found = fit(noisy_curve(0))
    notes = [note.text for note in found.plot(budget=16_000).layout.annotations]
    assert f"expected at 16,000: {level_text(predict_ending(found, 16_000))}" in notes
    assert not any("expected" in note.text for note in found.plot(budget=4_000).layout.annotations)  # it is spent


def test_the_violin_stands_where_the_ceiling_is() -> None:
    found = fit(noisy_curve(0))
    path = next(shape.path for shape in found.plot().layout.shapes if shape.type == "path")
    places = [float(corner.split(",")[1].split()[0]) for corner in path.removesuffix(" Z").split(" L ")]
    assert min(places) <= found.A.lower < found.A.upper <= max(places)


def test_evaluations_of_an_early_regime_are_grey_and_outliers_hollow() -> None:
    odd = 0.12 * np.maximum(1 - COMPUTE / 900, 0)
    odd[30] -= 0.2
    found = fit(_curve(odd))
    assert found.cutoff is not None
    drawn = {trace.name: trace for trace in found.plot().data if trace.mode == "markers"}
    usual, early, outliers = drawn["evaluations"], drawn["early regime"], drawn["outliers"]
    np.testing.assert_array_equal(early.x, COMPUTE[found.cutoff.compute > COMPUTE])
    np.testing.assert_array_equal(outliers.x, COMPUTE[[30]])
    assert sum(len(trace.x) for trace in drawn.values()) == len(COMPUTE)
    assert outliers.marker.color == "white"
    assert outliers.marker.line.color == usual.marker.color != early.marker.color
    assert [trace.showlegend for trace in drawn.values()] == [True, False, False]


def test_a_long_run_has_no_list_of_colours() -> None:
    """Plotly looks at each of them: 1,000,000 evaluations with outliers had taken 14 s."""
    odd = np.zeros(50)
    odd[30] -= 0.2
    drawn = [trace for trace in fit(_curve(odd)).plot().data if trace.mode == "markers"]
    assert len(drawn) > 1
    assert all(isinstance(colour, str) for one in drawn for colour in (one.marker.color, one.marker.line.color))


def test_a_long_sentence_is_wrapped_and_whole() -> None:
    found = fit(noisy_curve(0))
    title = found.plot(budget=16_000).layout.title.text
    assert title.replace("<br>", " ") == found.sentence(budget=16_000)
    assert max(len(line) for line in title.split("<br>")) <= 84


def test_advice_shows_the_gain_that_its_numbers_state_between_delta_and_the_price() -> None:
    advice = advise(fit(noisy_curve(0)), budget=16_000, delta=0.02, price=5e-6)
    figure = advice.plot()
    traces = {trace.name: trace for trace in figure.data}
    gain = advice.numbers["gain"]
    at_end = [np.interp(16_000, traces["gain"].x, traces["gain"].y)]
    half = len(traces["90 %"].x) // 2
    upper, lower = traces["90 %"].y[:half], traces["90 %"].y[half:][::-1]
    at_end += [np.interp(16_000, traces["gain"].x, side) for side in (lower, upper)]
    assert at_end == pytest.approx([gain["median"], gain["lower"], gain["upper"]], abs=1e-3)
    assert traces["gain"].y[0] == 0.0
    assert list(traces["least gain that matters, 0.02"].y) == [0.02, 0.02]
    price = traces["price, 5e-06 a unit of GPU-hours"]
    assert (price.y[1] - price.y[0]) / (price.x[1] - price.x[0]) == pytest.approx(5e-6)
    assert figure.layout.title.text.replace("<br>", " ") == advice.reason
    assert f"at 16,000: {gain_text(Estimate(**gain))}" in [note.text for note in figure.layout.annotations]


def test_advice_tells_a_budget_with_the_digits_that_were_given() -> None:
    found = fit(noisy_curve(0))
    (note,) = advise(found, budget=16_384).plot().layout.annotations
    assert note.text.startswith("at 16,384: ")


def test_advice_on_a_withheld_forecast_shows_no_gain() -> None:
    advice = advise(fit(_curve(-0.25 * (COMPUTE > 5_000))), budget=16_000)
    assert [trace.name for trace in advice.plot().data] == ["least gain that matters, 0.01"]


def test_advice_without_a_forecast_behind_it_cannot_be_drawn() -> None:
    with pytest.raises(ValueError, match=r"fit: .*advise\(fit\)"):
        Advice("stop", "as written").plot()


def test_the_axes_of_a_comparison_hold_every_interval() -> None:
    curves = {name: noisy_curve(seed, A=A) for name, seed, A in (("base", 1, 0.61), ("up", 2, 0.75))}
    compared = compare(curves, "base")
    figure = compared.plot()
    arm = compared.arms[0]
    assert arm.simultaneous is not None
    low, high = figure.layout.xaxis.range
    assert low < arm.simultaneous[0] < arm.simultaneous[1] < high


def test_a_backtest_of_one_run_is_told_in_the_singular_and_its_share_as_it_was_given() -> None:
    title = backtest([noisy_curve(0, points=24)], fractions=(0.125,)).plot().layout.title.text
    assert title.startswith("1 run forecast from 12.5 % of its compute, ")


def test_a_backtest_shows_the_interval_before_and_after_scaling() -> None:
    family = [noisy_curve(seed, A=0.5 + 0.02 * (seed % 5), points=20) for seed in range(10)]
    found = backtest(family, fractions=(0.5,), prior="siblings")
    own, scaled = found.plot().data
    assert {row.calibration for row in found.rows} == {"conformal (9 past runs)"}
    for at, row in enumerate(found.rows):
        assert row.raw is not None
        assert own.error_y.array[at] == pytest.approx(row.raw.upper - row.raw.median)
        assert scaled.error_y.array[at] + scaled.y[at] == pytest.approx(row.upper - row.actual)
