"""What is written as CSV may be opened in a spreadsheet, and computes nothing there; read again it is what it was."""

from __future__ import annotations

import csv
import doctest
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from forecurve import spreadsheets
from forecurve.cli.showing.curve_rows import CURVE_COLUMNS
from forecurve.cli.showing.rows_out import rows_answer
from forecurve.curve_files import read_curves
from forecurve.curve_formats import rows_of
from forecurve.spreadsheets import guarded, unguarded

NAMES = ['=HYPERLINK("http://x","look")', "+kl", "-entropy", "@team", "'=quoted", "''@twice", "'tis", "-0.5", "a - b"]
REWARDS = [-0.25, -0.125, 0.5]


def written(directory: Path) -> Path:
    file = directory / "curves.csv"
    known = {"prompts": None, "samples": None, "seed": 1, "unit": "@GPU-hours"}
    rows = [
        {"series": name, "compute": 1.0 + at, "reward": reward, **known}
        for name in NAMES
        for at, reward in enumerate(REWARDS)
    ]
    rows_answer(CURVE_COLUMNS, rows, None, file)
    return file


def test_no_cell_of_an_export_is_a_formula_and_numbers_stay_numbers(tmp_path: Path) -> None:
    header, *rows = csv.reader(written(tmp_path).open())
    assert header == CURVE_COLUMNS
    assert [float(row[2]) for row in rows] == REWARDS * len(NAMES)
    texts = {cell for row in rows for cell in (row[0], row[6])}
    assert {text for text in texts if text[0] in "=+-@"} == {"-0.5"}


def test_curves_are_read_back_by_the_names_that_they_had(tmp_path: Path) -> None:
    file = written(tmp_path)
    curves = read_curves(file, bounds=(-1, 1))
    assert [curve.name for curve in curves] == NAMES
    assert {curve.unit for curve in curves} == {"@GPU-hours"}
    assert list(curves[0].reward) == REWARDS
    one_by_one = [(row["series"], row["unit"]) for _, row in rows_of(file)]
    assert one_by_one[:: len(REWARDS)] == [(name, "@GPU-hours") for name in NAMES]


@given(st.text(st.sampled_from("'=+-@\t\r1e. a"), max_size=8))
def test_whatever_a_text_begins_with_it_comes_back(text: str) -> None:
    cell = guarded(text)
    assert unguarded(cell) == text
    assert cell[:1] not in tuple("=+-@\t\r") or float(cell) == float(text)


def test_examples() -> None:
    assert doctest.testmod(spreadsheets).failed == 0
