"""How numbers and times are written."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import escape

from web import formats

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("lower", "upper", "written"),
    [
        (0.62, 0.97, "0.62 to 0.97"),
        (0.77049, 0.80051, "0.77 to 0.80"),
        (0.7751, 0.7852, "0.775 to 0.785"),
        (1020.4, 1304.2, "1,020 to 1,304"),
    ],
)
def test_an_interval_has_the_digits_that_it_supports(lower: float, upper: float, written: str) -> None:
    estimate = {"median": (lower + upper) / 2, "lower": lower, "upper": upper}
    assert formats.interval(estimate) == written
    assert len(formats.median(estimate)) == len(written.split()[0])


@given(st.floats(0, 1), st.floats(0, 1))
def test_an_interval_that_is_not_empty_never_reads_as_one_number(one: float, other: float) -> None:
    lower, upper = sorted((one, other))
    if upper - lower < 0.0002:
        return
    left, right = formats.interval({"median": lower, "lower": lower, "upper": upper}).split(" to ")
    assert float(left) < float(right)
    assert abs(float(left) - lower) <= 0.0051
    assert abs(float(right) - upper) <= 0.0051


@pytest.mark.parametrize(
    ("lower", "upper", "written"),
    [(8.514, 9.49, "8.51 to 9.49"), (12.0, None, "from 12.0"), (None, 3.0, "up to 3.00"), (None, None, "no bound")],
)
def test_an_infinite_end_is_said_in_words(lower: float | None, upper: float | None, written: str) -> None:
    assert formats.interval3({"median": 9.0, "lower": lower, "upper": upper}) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0, "0"),
        (41.237, "41.2"),
        (0.0123, "0.0123"),
        (1234.5, "1,234"),
        (123456, "123,456"),
        (3e-7, "3e-7"),
        (1.72e-7, "1.72e-7"),
        (140_000_000_000, "1.4e+11"),
        (None, "–"),
    ],
)
def test_figures_have_three_significant_digits(value: float | None, written: str) -> None:
    assert formats.significant(value) == written


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (40.0, "40"),
        (40.04, "40.0"),
        (1300, "1,300"),
        (12345.0, "12,345"),
        (0.003, "0.003"),
        (0.1 + 0.2, "0.3"),
        (2.5, "2.5"),
        (0.00301, "0.00301"),
        (123.4, "123"),
        (0.0, "0"),
        (None, "–"),
    ],
)
def test_an_amount_of_compute_has_no_more_digits_than_were_typed(value: float | None, written: str) -> None:
    assert formats.amount(value) == written


@pytest.mark.parametrize(
    ("rate", "error", "written"),
    [
        (0.66771, 0.0149, "0.67 ± 0.015"),
        (0.66771, 0.0021, "0.668 ± 0.0021"),
        (0.66771, 0.00021, "0.6677 ± 0.00021"),
        (41.3, 2.2, "41.3 ± 2.20"),
    ],
)
def test_a_measured_rate_has_the_digits_that_its_standard_error_supports(
    rate: float, error: float, written: str
) -> None:
    assert f"{formats.evaluated(rate, error)} {formats.standard_error(error)}" == written


@pytest.mark.parametrize("unknown", [None, 0.0])
def test_a_rate_whose_error_nobody_knows_is_written_all_the_same(unknown: float | None) -> None:
    assert [formats.evaluated(rate, unknown) for rate in (0.5, None)] == ["0.500", "–"]


def test_an_estimate_of_compute_has_no_more_than_three_digits() -> None:
    assert formats.estimated(30_915_536.2, "steps") == "30,900,000 steps"
    estimate = {"median": 3e7, "lower": 11_577_597.0, "upper": 52_971_252.0}
    assert formats.interval3(estimate) == "11,600,000 to 53,000,000"


@given(st.floats(1e-4, 1e8))
def test_a_written_figure_is_within_half_a_percent(value: float) -> None:
    assert float(formats.significant(value).replace(",", "")) == pytest.approx(value, rel=0.005)


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (-5, "now"),
        (0.4, "now"),
        (59, "59 s ago"),
        (60, "1 min ago"),
        (7300, "2 h ago"),
        (90000, "1 d ago"),
        (-60, "in 1 min"),
        (-270_000, "in 3 d"),
        (-30 * 86400 + 5, "in 30 d"),
        (-3599, "in 1 h"),
        (3599, "59 min ago"),
    ],
)
def test_times_are_relative(seconds: float, written: str) -> None:
    assert formats.ago(NOW - timedelta(seconds=seconds), NOW) == written


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        (-5, "any moment"),
        (0.5, "any moment"),
        (40, "40 s left"),
        (119.7, "2 min left"),
        (5400, "90 min left"),
        (40 * 3600, "40 h left"),
        (50 * 3600, "2 d left"),
    ],
)
def test_how_long_is_left_is_written_in_the_nearest_unit(seconds: float, written: str) -> None:
    assert formats.left(NOW + timedelta(seconds=seconds), NOW) == written


def test_numbers_of_any_kind_are_written_alike() -> None:
    given = (10_000, 10_000.0, 140_000_000_000, 1.4e11, 2e-6, 5, True)
    assert [formats.number(value) for value in given] == ["10,000", "10,000", "1.4e+11", "1.4e+11", "2e-6", "5", "true"]
    assert [formats.setting(value) for value in (2e-6, 10_000, [1, 2])] == ["2e-6", "10000", "[1, 2]"]


def test_sizes_and_changes_read_as_a_person_would_write_them() -> None:
    assert formats.size(427_113) == "427 kB"
    assert formats.size(12) == "12 B"
    changes = {"algorithm.loss": "dapo", "batch.prompts_per_step": 8}
    assert formats.difference(changes) == "algorithm.loss = dapo, batch.prompts_per_step = 8"
    assert formats.short_difference(changes) == "algorithm.loss = dapo, prompts_per_step = 8"
    many = changes | {"budget.compute": 130.0, "optimizer.milestones": [1], "seed": 3}
    told = "algorithm.loss = dapo, prompts_per_step = 8, budget.compute = 130 and 2 more"
    assert formats.short_difference(many, 3) == told
    assert formats.short_difference(many).endswith("milestones = [1], seed = 3")


@pytest.mark.parametrize("path", ["budget.unit", "budget.compute", "evaluation.samples", "checkpoint.every_steps"])
def test_a_field_is_shortened_only_where_its_last_word_tells_which_it_is(path: str) -> None:
    assert formats.short_difference({path: 8}) == f"{path} = 8"
    assert formats.short_difference({"optimizer.learning_rate": 8}) == "learning_rate = 8"


@given(st.text())
def test_text_with_backticks_is_escaped_whatever_it_holds(text: str) -> None:
    written = str(formats.ticks(text))
    assert written.replace("<code>", "`").replace("</code>", "`") == str(escape(text))


def test_a_time_within_a_text_is_one_that_a_browser_can_write_anew() -> None:
    written = str(formats.ticks("waits since 2026-11-27 10:47 UTC."))
    assert 'datetime="2026-11-27T10:47:00Z"' in written
    assert written.startswith("waits since <time ")
    assert written.endswith(">2026-11-27 10:47 UTC</time>.")


def test_backticks_set_off_names() -> None:
    assert str(formats.ticks("`a<b>` fell")) == "<code>a&lt;b&gt;</code> fell"


@pytest.mark.parametrize(
    ("left", "said"),
    [
        ((0.08, 0.05, 0.11), "+0.08 +0.05 to +0.11"),
        ((0.001, 0.0002, 0.008), "+0.001 0.000 to +0.008"),
    ],
)
def test_headroom_has_the_digits_of_its_interval_and_is_said_of_known_ceilings(
    left: tuple[float, ...], said: str
) -> None:
    ends = dict(zip(("median", "lower", "upper"), left, strict=True))
    run = SimpleNamespace(ceiling={"median": 0.78}, withheld=False, ceiling_known=True, headroom=ends)
    found = formats.headroom(run)
    assert (
        " ".join(formats.gain(found[name], found) for name in ("median", "lower"))
        + " to "
        + formats.gain(found["upper"], found)
        == said
    )
    for unknown in ({"ceiling_known": False}, {"withheld": True}, {"ceiling": None}):
        assert formats.headroom(SimpleNamespace(**(vars(run) | unknown))) is None


def test_ranges_of_what_was_spent_are_read_as_such() -> None:
    said = [formats.spent_range(*ends) for ends in ((0.0, 0.175), (0.175, 0.375), (0.75, None))]
    assert said == ["up to 18 %", "18 to 38 %", "from 75 %"]
