"""Lines and cells as loggers, spreadsheets and SQL engines write them: cut off, with odd names, as decimals."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from forecurve.curve_cells import CurveFileError
from forecurve.importers import read


def _file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def _points(rows: list[dict[str, Any]]) -> list[tuple[str, float, float]]:
    return [(row["series"], row["compute"], row["reward"]) for row in rows]


def _steps(rows: list[dict[str, Any]]) -> list[float]:
    return [row["step"] for row in rows]


def test_a_line_that_a_killed_logger_left_is_told(tmp_path: Path) -> None:
    text = '{"step": 1, "eval/acc": 0.1}\n{"step": 2, "eval/acc": 0.2}\n{"step": 3, "eval/a'
    found = read(_file(tmp_path, "a.jsonl", text))
    assert len(found.rows) == 2
    assert "a.jsonl: its last line is unfinished and left out" in found.notes
    broken = '{"step": 1, "eval/acc": 0.1}\n{"step": 2, \n{"step": 3, "eval/acc": 0.1}\n'
    with pytest.raises(CurveFileError, match=r"a.jsonl, line 2: not JSON"):
        read(_file(tmp_path, "a.jsonl", broken))


@pytest.mark.parametrize(
    ("end", "steps"),
    [
        ("40,0.", [10, 20, 30]),
        ("40,-", [10, 20, 30]),
        ("40,4e", [10, 20, 30]),
        ("40,4.5e-", [10, 20, 30]),
        ("4", [10, 20, 30]),
        ("40,0.4", [10, 20, 30, 40]),
        ("40,0.\n", [10, 20, 30, 40]),
        ("40,0.\n ", [10, 20, 30, 40]),
    ],
)
def test_a_last_line_of_csv_that_was_cut_off_is_told(tmp_path: Path, end: str, steps: list[int]) -> None:
    found = read(_file(tmp_path, "a.csv", f"step,eval/acc\n10,.1\n20,.2\n30,.3\n{end}"))
    assert _steps(found.rows) == steps
    assert ("a.csv: its last line is unfinished and left out" in found.notes) == (len(steps) == 3)


def test_a_quote_that_is_not_closed_is_told_unless_the_cell_may_be_on_its_way(tmp_path: Path) -> None:
    path = _file(tmp_path, "a.csv", 'step,eval/acc,note\n10,.1,"two\nlines"\n20,.2,"5 inch\n30,.3,\n')
    with pytest.raises(CurveFileError, match=r"a\.csv, line 4: a quote opens a cell"):
        read(path)
    assert _steps(read(path, growing=True).rows) == [10, 20]


def test_a_last_cell_that_is_a_word_is_not_cut_off(tmp_path: Path) -> None:
    found = read(_file(tmp_path, "a.csv", "step,eval/acc,state\n10,.1,True\n20,.2,done\n30,.3,complete"))
    assert _steps(found.rows) == [10, 20, 30]


@pytest.mark.parametrize(
    ("name", "text", "cut"),
    [
        (
            "a.jsonl",
            '{"step": 1, "eval/acc": 0.1, "note": "é"}\n{"step": 2, "eval/acc": 0.2}\n',
            '{"step": 3, "note": "é',
        ),
        ("a.csv", "step,eval/acc,note\r\n1,.1,é\r\n2,.2,\r\n", "3,.3,é"),
    ],
)
def test_a_last_line_that_ends_within_a_character_is_left_out(tmp_path: Path, name: str, text: str, cut: str) -> None:
    path = tmp_path / name
    path.write_bytes((text + cut).encode()[:-1])
    found = read(path)
    assert _steps(found.rows) == [1, 2]
    assert f"{name}: its last line is unfinished and left out" in found.notes
    path.write_bytes((text + cut).encode()[:-1] + b"\n")
    with pytest.raises(CurveFileError, match="it is no text in UTF-8"):
        read(path)


@pytest.mark.parametrize(
    "text",
    [
        "step;eval/acc;train, mean\n10;0.1;5\n20;0.2;6\n",
        "step\teval/acc\ttrain, mean\n10\t0.1\t5\n20\t0.2\t6\n",
        'step,eval/acc,"train; mean"\n10,0.1,"5;6"\n20,0.2,"6;7"\n',
        '"step","eval/acc","train; mean"\n"10","0.1",\n"20","0.2",\n',
        "sep=;\r\nstep;eval/acc;train, mean\r\n10;0.1;5\r\n20;0.2;6\r\n",
        "sep=|\nstep|eval/acc|train; mean\n10|0.1|5\n20|0.2|6\n",
        "\n\r\nstep;eval/acc;train, mean\n10;0.1;5\n20;0.2;6\n",
    ],
)
def test_a_name_of_a_column_may_have_what_parts_others(tmp_path: Path, text: str) -> None:
    assert _points(read(_file(tmp_path, "a.csv", text)).rows) == [("a", 10, 0.1), ("a", 20, 0.2)]


def test_decimals_of_parquet_are_numbers(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    steps = arrow.array([Decimal(0), Decimal(10)], arrow.decimal128(18, 0))
    rates = arrow.array([Decimal("0.10"), Decimal("0.25")], arrow.decimal128(4, 2))
    names = arrow.array([Decimal(7), Decimal(7)], arrow.decimal128(4, 0))
    table = arrow.table({"run_id": names, "step": steps, "eval/pass_rate": rates})
    parquet.write_table(table, tmp_path / "a.parquet")
    assert _points(read(tmp_path / "a.parquet").rows) == [("7", 0, 0.1), ("7", 10, 0.25)]
