"""Tables on narrow terminals: nothing is folded letter by letter, no id is cut, and what is left out is said."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from rich.cells import cell_len
from sqlalchemy.orm import Session, sessionmaker

from forecurve.cli.showing.table_layout import fold, lay_out

from .conftest import Forecurve
from .seeded import seeded_advice, seeded_alert, seeded_run

ID = "run_01jx7m4k9q2v8b5n3t6w0y1zaa"
NAME = "scalerl-qwen3-8b-math-lr3e-4-bs512-seed0"
COLUMNS = ["run", "name", "state", "why"]
ROW = [ID, NAME, "running", "the learner was lost during a step, and its machine does not answer"]


@pytest.fixture
def at_width(monkeypatch: pytest.MonkeyPatch):
    """Makes stdout a terminal of so many columns."""

    def set_width(columns: int) -> None:
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("LINES", "40")  # without it a dumb terminal is taken to have 80 columns
        monkeypatch.setenv("TERM", "dumb")

    return set_width


def test_where_there_is_room_a_row_is_a_line() -> None:
    for width in (None, 200):
        laid = lay_out(COLUMNS, [ROW], width=width)
        assert laid.lines[1].split("  ") == ROW
        assert (laid.header, laid.left_out) == (1, [])


def test_long_text_is_folded_first_and_only_at_its_seams() -> None:
    laid = lay_out(COLUMNS, [ROW], width=100)
    assert laid.left_out == []
    assert laid.lines[1].startswith(f"{ID}  ")
    parts = fold(NAME, 18)
    assert "".join(parts) == NAME
    assert all(part.endswith("-") for part in parts[:-1])


def test_then_columns_that_can_be_spared_go_and_then_every_row_is_a_block() -> None:
    laid = lay_out(COLUMNS, [ROW], width=60, spare=["why"])
    assert laid.lines[0].split() == ["run", "name", "state"]
    assert laid.left_out == ["why"]
    blocks = lay_out(COLUMNS, [ROW, ROW], width=40, spare=["why"])
    assert blocks.lines[0] == ID
    assert "  state  running" in blocks.lines
    assert "why" in " ".join(blocks.lines)
    assert blocks.lines.count("") == 1
    assert blocks.left_out == []


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal_and_no_id_is_cut(width: int) -> None:
    rows = [ROW, [ID, "実験の名前がとても長いので四十文字くらいにはなります", "failed", "–"]]
    laid = lay_out(COLUMNS, rows, width=width)
    assert all(cell_len(line) <= width for line in laid.lines)
    assert sum(ID in line for line in laid.lines) == 2


def test_an_id_stays_whole_where_it_finds_no_room() -> None:
    assert fold(ID, 10) == [ID]
    laid = lay_out(["alert", "a name of a column", "run"], [[ID, "x", ID]], width=30)
    assert sum(ID in line for line in laid.lines) == 2


def test_an_id_within_a_text_stays_whole_too() -> None:
    text = f"superseded by {ID}: of the same name"
    for width in (16, 20, 40):
        assert sum(ID in part for part in fold(text, width)) == 1
    laid = lay_out(["when", "why"], [["10:00:00", text]], width=44)
    assert laid.lines[1] == "10:00:00  superseded by"
    assert all(cell_len(line) <= 44 for line in laid.lines)
    assert sum(ID in line for line in laid.lines) == 1


def test_names_that_leave_no_room_beside_them_stand_above_what_they_name() -> None:
    laid = lay_out(["series", "GPU-hours to 0.6 (90 %)"], [["a" * 40, "4100 (3900 to 4400)"]], width=40)
    assert laid.lines == ["a" * 40, "  GPU-hours to 0.6 (90 %)", "    4100 (3900 to 4400)"]


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_every_list_of_runs_has_whole_ids_at_any_width(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session], at_width, width: int
) -> None:
    run_id = seeded_run(sessions, NAME)
    made = [run_id, seeded_advice(sessions, run_id), seeded_alert(sessions, run_id)]
    at_width(width)
    for command, wanted in ((("run", "list"), made[:1]), (("advice", "list"), made[:2]), (("alerts",), made[::2])):
        shown = forecurve(*command)
        assert all(one in shown.out for one in wanted)
        assert not [line for line in shown.out.splitlines() if cell_len(line) > width]
        assert not re.search(r"^\s*\w\w?$", shown.out, re.MULTILINE), "nothing is folded letter by letter"


def test_what_is_left_out_is_said_on_stderr(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session], at_width
) -> None:
    seeded_run(sessions, NAME)
    at_width(80)
    shown = forecurve("run", "list")
    assert "ceiling" not in shown.out
    expected = (
        "Not shown for want of room: ceiling (90 %), advice, compute, updated; a wider terminal has them, and --json."
    )
    assert shown.err.strip() == expected


def test_a_forecast_on_a_narrow_terminal_is_a_block(forecurve: Forecurve, at_width) -> None:
    example = Path(__file__).parents[3] / "docs/science/example.csv"
    at_width(50)
    shown = forecurve("fit", example, "--series", "control", "--budget", "16000")
    lines = shown.out.splitlines()
    assert lines[0] == "control (seed 1)"
    assert "  ceiling (90 %)              0.62 (0.60 to 0.63)" in lines
