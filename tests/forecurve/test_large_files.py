"""Files that are small and say much, or have no end of a line: refused by what they are, before memory is full."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

from forecurve import curve_formats
from forecurve.cli.failures import describe
from forecurve.curve_cells import CurveFileError
from forecurve.curve_files import read_curves
from forecurve.importers import tables

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


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda folder: endless(folder / "a.csv", "series,compute,reward\na,1,0.5\n"), "line 3: this is too long"),
        (lambda folder: endless(folder / "b.csv", "series,compute,reward,"), "line 1: this is too long"),
        (lambda folder: endless(folder / "a.jsonl", '{"series": "'), "line 1: this is too long"),
        (lambda folder: endless(folder / "a.json", '[{"series": "'), "JSON of more than 256 MB is not taken"),
        (lambda folder: long_text(folder / "a.parquet"), "at most 1,024 MB of a column are taken at once"),
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
