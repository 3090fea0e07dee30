"""Files that are small and say much, or have no end of a line: refused by what they are, before memory is full."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from forecurve import curve_formats, parquet_files
from forecurve.cli.failures import describe
from forecurve.curve_cells import CurveFileError
from forecurve.curve_files import read_curves
from forecurve.importers import read, tables

MEMORY = 3 << 30
MEGABYTE = "x" * (1 << 20)


def endless(path: Path, begins: str) -> Path:
    """A line of four gigabytes, of which the file system keeps none."""
    path.write_text(begins)
    with path.open("r+b") as file:
        file.truncate(4 << 30)
    return path


def long_text(path: Path) -> Path:
    """Two thousand names of a megabyte, the same ones all over, in some hundred kilobytes."""
    name = arrow.chunked_array([arrow.array([MEGABYTE])] * 2000)
    numbers = arrow.array([1.0] * 2000)
    table = arrow.table({"series": name, "compute": numbers, "reward": numbers})
    parquet.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)
    return path


def often(path: Path, column: str, encoding: str = "RLE_DICTIONARY") -> Path:
    """Four thousand rows with the same text of a megabyte, which stands in the file once, in some kilobytes."""
    rows = 4000
    text = arrow.array([MEGABYTE])
    numbers = arrow.array([float(at) for at in range(1, rows + 1)])
    columns = {"series": arrow.array(["a"] * rows), "compute": numbers, "reward": arrow.array([0.5] * rows)}
    if encoding == "RLE_DICTIONARY":
        table = arrow.table(columns | {column: arrow.DictionaryArray.from_arrays(arrow.array([0] * rows), text)})
        told: dict[str, Any] = {"use_dictionary": True}
    else:
        table = arrow.table(columns | {column: arrow.chunked_array([text] * rows)})
        told = {"use_dictionary": False, "column_encoding": {column: encoding}, "data_page_size": 1 << 30}
    parquet.write_table(table, path, compression="zstd", write_statistics=False, store_schema=False, **told)
    assert path.stat().st_size < 100_000
    return path


def peak(code: str, file: Path) -> int:
    """Megabytes that a process takes at most which reads a file."""
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "file = Path(sys.argv[1])\n"
        f"resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))\n"
        f"{code}\n"
        "print(Path('/proc/self/status').read_text().partition('VmHWM:')[2].split()[0])"  # getrusage knows the parent's
    )
    done = subprocess.run([sys.executable, "-c", code, file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return int(done.stdout) >> 10


FIT = "from forecurve.curve_files import read_curves; assert len(read_curves(file)[0].compute) == 4000"
BY_ROWS = "from forecurve.curve_formats import rows_of; assert sum(1 for _ in rows_of(file)) == 4000"
CONVERT = "from forecurve.importers.tables import parquet_rows; assert len(parquet_rows(file)) == 4000"


@pytest.mark.parametrize("code", [FIT, BY_ROWS, CONVERT], ids=["columns", "rows", "table"])
@pytest.mark.parametrize("column", ["series", "unit", "note"])
def test_a_text_that_all_rows_have_takes_its_room_once(code: str, column: str, tmp_path: Path) -> None:
    assert peak(code, often(tmp_path / "a.parquet", column)) < 400


@pytest.mark.parametrize(
    "code",
    [FIT, pytest.param(BY_ROWS, marks=pytest.mark.slow), pytest.param(CONVERT, marks=pytest.mark.slow)],
    ids=["columns", "rows", "table"],
)
def test_texts_that_are_told_by_what_they_share_are_read_few_at_once(code: str, tmp_path: Path) -> None:
    assert peak(code, often(tmp_path / "a.parquet", "series", "DELTA_BYTE_ARRAY")) < 900


def test_texts_inside_an_object_share_their_room_too(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    rows = [{"step": at, "data": {"text": "same" * 100, "acc": at / 4} if at else None} for at in range(4)]
    parquet.write_table(arrow.Table.from_pylist(rows), file)
    found = [row.cells for row in tables.parquet_rows(file)]
    assert found == [{"step": 0}, *({"step": at, "text": "same" * 100, "acc": at / 4} for at in range(1, 4))]
    assert len({id(cells["text"]) for cells in found[1:]}) == 1


@pytest.mark.parametrize("cell", [[0.5] * (1 << 19), ["0.5"] * (1 << 19)], ids=["numbers", "texts"])
def test_a_row_that_is_a_list_without_end_is_refused_or_left_out(
    cell: list[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet_files, "MOST_IN_A_CHUNK", 3 << 20)
    file = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"series": ["a"], "compute": [1.0], "reward": [cell]}), file)
    with pytest.raises(CurveFileError, match=r"reward\.list\.element in a\.parquet: at most 3 MB of a column"):
        read_curves(file)
    assert [row.cells for row in tables.parquet_rows(file)] == [{"series": "a", "compute": 1.0}]


def test_a_file_of_lists_only_is_called_so(tmp_path: Path) -> None:
    file = tmp_path / "a.parquet"
    parquet.write_table(arrow.table({"tokens": [[1]] * 3}), file)
    with pytest.raises(CurveFileError, match="it has lists only"):
        tables.parquet_rows(file)


def test_a_column_of_all_groups_of_rows_together_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet_files, "MOST_IN_A_CHUNK", 3 << 20)
    file = tmp_path / "a.parquet"
    texts = [sign * (1 << 20) for sign in "abcd"]
    parquet.write_table(arrow.table({"acc": [1.0] * 4, "note": texts}), file, row_group_size=1)
    with pytest.raises(CurveFileError, match=r"note in a\.parquet: at most 3 MB of a column .* 3 MB; leave the"):
        tables.parquet_rows(file)


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda folder: endless(folder / "a.csv", "series,compute,reward\na,1,0.5\n"), "line 3: this is too long"),
        (lambda folder: endless(folder / "b.csv", "series,compute,reward,"), "line 1: this is too long"),
        (lambda folder: endless(folder / "a.jsonl", '{"series": "'), "line 1: this is too long"),
        (lambda folder: endless(folder / "a.json", '[{"series": "'), "JSON of more than 256 MB is not taken"),
        (lambda folder: long_text(folder / "a.parquet"), "at most 1,024 MB of a column are taken at once"),
        (lambda folder: often(folder / "a.parquet", "reward"), "reward at row 1: a number is needed"),
    ],
)
def test_a_file_that_would_fill_the_memory_is_refused(make: Callable[[Path], Path], says: str, tmp_path: Path) -> None:
    code = (
        f"import resource, sys; resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))\n"
        "from forecurve.cli import main\n"
        "sys.exit(main(['fit', sys.argv[1]]))"
    )
    done = subprocess.run([sys.executable, "-c", code, make(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert says in done.stderr
    assert len(done.stderr) < 500


def test_a_line_that_is_long_but_an_evaluation_is_taken(tmp_path: Path) -> None:
    row = '{"series": "a", "compute": %d, "reward": 0.5, "note": "' + "x" * 1_000_000 + '"}\n'
    file = tmp_path / "a.jsonl"
    file.write_text("".join(row % compute for compute in range(3)))
    assert len(read_curves(file)) == 1


def test_a_table_of_more_cells_than_memory_holds_is_refused_unread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MOST_CELLS", 99)
    file = tmp_path / "a.parquet"
    for rows in (49, 50):
        parquet.write_table(arrow.table({"step": [1] * rows, "reward": [0.5] * rows}), file)
        if rows == 49:
            assert len(tables.parquet_rows(file)) == 49
    with pytest.raises(CurveFileError, match="more than 99 cells are not taken, got 50 rows of 2 columns; write the"):
        tables.parquet_rows(file)


@pytest.mark.parametrize(("name", "place"), [("a.csv", "line 51"), ("a.jsonl", "line 50"), ("a.json", "item 50")])
def test_a_text_of_more_cells_than_memory_holds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, place: str
) -> None:
    monkeypatch.setattr(tables, "MOST_CELLS", 99)
    file = tmp_path / name
    for rows in (49, 50):
        each = [{"step": step, "val/acc": 0.5} for step in range(1, rows + 1)]
        texts = {
            "a.csv": "step,val/acc\n" + "".join(f"{one['step']},0.5\n" for one in each),
            "a.jsonl": "".join(json.dumps(one) + "\n" for one in each),
            "a.json": json.dumps(each),
        }
        file.write_text(texts[name])
        if rows == 49:
            assert len(read(file).rows) == 49
    with pytest.raises(CurveFileError, match=f"more than 99 cells are not taken, got {name} up to {place}; write the"):
        read(file)


def test_rows_of_json_share_the_names_of_their_numbers(tmp_path: Path) -> None:
    lines = "".join(json.dumps({"step": step, "train/loss": 0.5}) + "\n" for step in range(3))
    document, _ = tables.json_of(tmp_path / "a.jsonl", lines)
    rows = tables.json_rows(tmp_path / "a.jsonl", document)
    assert len({id(name) for row in rows for name in row.cells}) == 2


def test_a_command_without_memory_says_so() -> None:
    failure = describe(MemoryError())
    assert failure is not None
    assert failure[:2] == ("there is not enough memory for this; give it less at once", 1)


def test_both_ways_of_reading_know_the_same_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(curve_formats, "MOST_IN_A_LINE", 30)
    file = tmp_path / "a.csv"
    file.write_text("series,compute,reward\n" + "".join(f"a,{at},0.{'5' * 20}\n" for at in range(10, 13)))
    assert len(read_curves(file)) == 1
    file.write_text(file.read_text() + f"a,13,0.{'5' * 26}\n")
    with pytest.raises(CurveFileError, match="line 5: this is too long for an evaluation, got more than 30 characters"):
        read_curves(file)
