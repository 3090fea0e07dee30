"""One table in four formats is one set of curves, or one fault; and read at once it means what it means row by row."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from forecurve import curve_files
from forecurve.curve_cells import CurveFileError
from forecurve.curve_files import read_arms
from forecurve.science import Curve

COLUMNS = ("series", "compute", "reward", "prompts", "samples", "seed", "unit")
Row = dict[str, Any]
by_hand = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def _csv(path: Path, rows: Sequence[Row]) -> None:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(COLUMNS)
        writer.writerows([["" if row[name] is None else row[name] for name in COLUMNS] for row in rows])


def _jsonl(path: Path, rows: Sequence[Row]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _json(path: Path, rows: Sequence[Row]) -> None:
    path.write_text(json.dumps({"items": rows}))


def _parquet(path: Path, rows: Sequence[Row]) -> None:
    arrow = pytest.importorskip("pyarrow")
    kinds = dict.fromkeys(COLUMNS, arrow.float64()) | {"series": arrow.string(), "unit": arrow.string()}
    kinds["seed"] = arrow.int64()
    columns = {name: arrow.array([row[name] for row in rows], kinds[name]) for name in COLUMNS}
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table(columns), path, row_group_size=7)


WRITERS: dict[str, Callable[[Path, Sequence[Row]], None]] = {
    "c.csv": _csv,
    "c.jsonl": _jsonl,
    "c.json": _json,
    "c.parquet": _parquet,
}


def outcome(path: Path, series: Sequence[str] | None = None) -> Any:
    """The curves of a file, with all that was read of them; or the fault."""
    try:
        arms = read_arms(path, series=series)
    except CurveFileError as error:
        return str(error)
    return [
        (name, curve.name, curve.seed, curve.unit, curve.compute.tolist(), curve.reward.tolist(), *_sizes(curve))
        for name, curves in arms.items()
        for curve in curves
    ]


def _sizes(curve: Curve) -> list[str]:
    """Prompts and samples as text, in which NaN is like NaN."""
    return ["none" if column is None else str(column.tolist()) for column in (curve.prompts, curve.samples)]


def placed(found: Any, first: int) -> Any:
    """A fault as it reads where rows are counted from 1, and where an empty cell is nothing."""
    if not isinstance(found, str):
        return found
    place = re.compile(r"\b(line|item|row) (\d+)")
    return place.sub(lambda at: f"row {int(at[2]) - first + 1}", found.replace("got ''", "got nothing"))


def tables() -> st.SearchStrategy[list[Row]]:
    """Rows as they come from a trainer, and some that cannot be right."""
    usual = st.fixed_dictionaries(
        {
            "series": st.sampled_from(["a", "b", "a ", "lr=1e-4, ü", "7"]),
            "compute": st.just(0.0),
            "reward": st.floats(0, 1, allow_subnormal=False),
            "prompts": st.none() | st.sampled_from([64.0, 512.0, 1000.5]),
            "samples": st.sampled_from([4.0, None]),
            "seed": st.sampled_from([1, 1, 2, None]),
            "unit": st.sampled_from(["GPU-hours", "GPU-hours ", "", None]),
        }
    )
    slip = st.sampled_from(
        [
            {"series": None},
            {"series": ""},
            {"series": "a\u2028b"},
            {"compute": None},
            {"compute": float("nan")},
            {"compute": 0.0},
            {"reward": None},
            {"reward": float("inf")},
            {"reward": -0.5},
            {"prompts": 0.0},
            {"samples": float("nan")},
            {"unit": "days"},
        ]
    )

    def table(rows: list[Row], slips: list[tuple[int, Row]]) -> list[Row]:
        numbered = [row | {"compute": float(at)} for at, row in enumerate(rows, start=1)]
        for at, wrong in slips:
            numbered[at % len(numbered)] |= wrong
        return numbered

    slips = st.lists(st.tuples(st.integers(0, 99), slip), max_size=2)
    return st.builds(table, st.lists(usual, min_size=1, max_size=40), slips)


@by_hand
@given(rows=tables(), chosen=st.sampled_from([None, None, ["a"], ["b", "none"]]))
def test_four_formats_mean_the_same(tmp_path: Path, rows: list[Row], chosen: list[str] | None) -> None:
    found = {}
    for name, write in WRITERS.items():
        write(tmp_path / name, rows)
        seen = outcome(tmp_path / name, chosen)
        seen = seen.replace(name, "the file") if isinstance(seen, str) else seen
        found[name] = placed(seen, first=2 if name == "c.csv" else 1)
    assert found["c.csv"] == found["c.jsonl"] == found["c.json"] == found["c.parquet"]


CELLS = st.sampled_from([1, 3.5, 0.25, "0.5", " 7 ", "", None, True, "x", "1_0", [1], {"seed": 1, "Seed": 2}, 10**400])
NAMES = st.sampled_from(["a", "a ", "1", 1, 1.0, -0.0, 0, None, True, "b\n"])
ODD = st.fixed_dictionaries(
    {"series": NAMES, "compute": CELLS, "reward": CELLS},
    optional={"prompts": CELLS, "samples": CELLS, "seed": CELLS, "unit": st.sampled_from(["h", 1, True]), "x": CELLS},
)
USUAL = st.fixed_dictionaries({"series": st.sampled_from("ab"), "compute": st.just(0), "reward": st.just(0.5)})


def _row_by_row(path: Path) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(curve_files, "faultless", lambda *_: None)
        return outcome(path)


@by_hand
@given(rows=st.lists(ODD | USUAL, max_size=30), capital=st.booleans())
@example(rows=[{"series": "a", "compute": 0, "reward": 0.5}] * 5, capital=True)
def test_json_read_at_once_means_what_it_means_row_by_row(tmp_path: Path, rows: list[Row], capital: bool) -> None:
    told = [row | ({"compute": at} if row["compute"] == 0 else {}) for at, row in enumerate(rows, start=1)]
    for row in told[-1:]:
        if capital:
            row["Reward"] = row.pop("reward")
    for name, write in (("c.jsonl", _jsonl), ("c.json", _json)):
        write(tmp_path / name, told)
        assert outcome(tmp_path / name) == _row_by_row(tmp_path / name)


@by_hand
@given(
    cells=st.lists(
        st.tuples(
            st.sampled_from(["a", "a ", " a", "b", ""]),
            st.sampled_from(["", "", "", "x", "nan", " 9"]),
            st.sampled_from(["0.5", ".5 ", "5e-1", "1_0", "", "half"]) | st.just("0.5"),
            st.sampled_from(["1", "01", "1.0", "", " ", "1.5", "2"]),
        ),
        max_size=30,
    )
)
@example(cells=[("a", "1", "0.5", ""), ("a ", "3", "0.5", ""), ("a", "2", "0.5", "")])
@example(cells=[("a", "1", "0.5", "1"), ("a", "2", "0.5", "01"), ("a", "3", "0.5", "1")])
def test_csv_read_at_once_means_what_it_means_row_by_row(tmp_path: Path, cells: list[tuple[str, ...]]) -> None:
    lines = [",".join([name, at or str(k), *rest]) for k, (name, at, *rest) in enumerate(cells, start=1)]
    (tmp_path / "c.csv").write_text("\n".join(["series,compute,reward,seed", *lines]))
    assert outcome(tmp_path / "c.csv") == _row_by_row(tmp_path / "c.csv")


@pytest.mark.parametrize("ends", ["", '"b"'])
def test_a_quote_that_is_not_closed_does_not_swallow_the_evaluations_behind_it(tmp_path: Path, ends: str) -> None:
    """To the end of the file, or to the next quote: these evaluations were left out, and nobody was told."""
    path = tmp_path / "c.csv"
    notes = {4: '"5 inch', 9: ends}
    lines = [f"a,{at},{at / 20},{notes.get(at, '')}" for at in range(1, 13)]
    path.write_text("series,compute,reward,note\n" + "\n".join(lines) + "\n")
    with pytest.raises(CurveFileError, match="line 5: a quote opens a cell"):
        read_arms(path)


def test_cells_with_quotes_and_lines_in_them_are_read(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    notes = {2: '5" wide', 3: '"two\nlines, ""quoted"""', 4: '"b"c', 5: '"b" '}
    lines = [f"a,{at},{at / 20},{notes.get(at, '')}\n" for at in range(1, 8)]
    path.write_text("series,compute,reward,note\n\n" + "".join(lines))
    assert read_arms(path)["a"][0].compute.tolist() == [1, 2, 3, 4, 5, 6, 7]


def test_a_damaged_parquet_file_is_refused_by_name(tmp_path: Path) -> None:
    path = tmp_path / "c.parquet"
    numbers = [float(at) for at in range(1, 4000)]
    table = {"series": ["a"] * len(numbers), "compute": numbers, "reward": [at / 4000 for at in numbers]}
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table(table), path)
    whole = path.read_bytes()
    for damaged in (whole[:100] + b"\x55" * 20_000 + whole[20_100:], whole[:-300], b"PAR1" + whole[4:8]):
        path.write_bytes(damaged)
        assert _is_told_damaged(outcome(path))


def _is_told_damaged(fault: Any) -> bool:
    told = r"file: it is not Parquet, or is damaged \(.*\), got c.parquet; save it again, or save it as CSV"
    return re.fullmatch(told, fault) is not None


def test_wherever_a_byte_of_a_parquet_file_is_damaged_it_is_read_or_refused(tmp_path: Path) -> None:
    """In a page, in what says how long it is, in a name: pyarrow tells each of them in another way."""
    path, numbers = tmp_path / "c.parquet", [0.25, 0.5, 0.75]
    table = {"series": ["a", "b", "a"], "compute": numbers, "reward": numbers}
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(arrow.table(table), path, compression="none")
    whole = path.read_bytes()
    refused = 0
    for at in range(4, len(whole) - 8):
        path.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
        seen = outcome(path)
        refused += isinstance(seen, str) and _is_told_damaged(seen)
    assert refused > 100


def test_columns_of_every_type_that_parquet_has_are_read_or_refused_by_name(tmp_path: Path) -> None:
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    from datetime import UTC, datetime
    from decimal import Decimal

    usual = {"series": ["a", "a", "a"], "compute": [1.0, 2.0, 3.0], "reward": [0.25, 0.5, 0.75]}

    def read(**columns: Any) -> Any:
        parquet.write_table(arrow.table(usual | columns), tmp_path / "c.parquet")
        seen = outcome(tmp_path / "c.parquet")
        assert seen == _row_by_row(tmp_path / "c.parquet")
        return seen

    plain = read()
    assert plain[0][:3] == ("a", "a", None)
    assert plain[0][4:6] == ([1, 2, 3], [0.25, 0.5, 0.75])
    same = {
        "compute": [
            arrow.array([1, 2, 3], kind)
            for kind in (arrow.int8(), arrow.uint64(), arrow.float32(), arrow.decimal128(5, 1), arrow.float16())
        ],
        "reward": [
            arrow.array([Decimal("0.25"), Decimal("0.5"), Decimal("0.75")]),
            arrow.array(["0.25", " .5", "75e-2"]),
        ],
        "series": [
            arrow.array(["a", "a", "a "]),
            arrow.array(["a"] * 3, arrow.large_string()),
            arrow.array(["b", "a", "a", "a"]).dictionary_encode().slice(1),
        ],
        "seed": [
            *(arrow.array([None] * 3, kind) for kind in (arrow.null(), arrow.int64(), arrow.string())),
            arrow.array([float("nan"), None, float("nan")], arrow.float64()),
        ],
        "prompts": [arrow.array([None, float("nan"), None], arrow.float64()), arrow.nulls(3)],
        "note": [arrow.array([[1], [], None]), arrow.array([{"seed": 1}] * 3)],
    }
    for column, arrays in same.items():
        for array in arrays:
            assert read(**{column: array}) == plain, (column, array.type)
    assert read(series=arrow.array([1, 1, 1]))[0][0] == "1"
    assert read(seed=arrow.array([3.0, 3.0, 3.0]))[0][2] == 3
    for column, array, said in [
        ("compute", arrow.array([1, None, 3]), "compute at row 2: a number is needed, got nothing"),
        ("compute", arrow.array([datetime(2026, 1, 1, tzinfo=UTC)] * 3), "compute at row 1: a number is needed"),
        ("reward", arrow.array([True, False, True]), "reward at row 1: a number is needed, got True"),
        ("reward", arrow.array([0.1, float("nan"), 0.2]), "numbers are needed, got nan at evaluation 2 (row 2);"),
        ("series", arrow.array(["a", None, "a"]), "series at row 2: a name is needed, got nothing"),
        ("series", arrow.array([[1]] * 3), "series at row 1: text is needed, got [1]"),
        ("seed", arrow.array([1.0, 1.5, 2.0]), "seed at row 2: a whole number is needed, got 1.5"),
        ("unit", arrow.array(["h", None, "d"]), "unit at row 3: the file began with h, got d"),
    ]:
        assert said in read(**{column: array})
