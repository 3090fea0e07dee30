"""Curves from files: three formats, one meaning; every fault named with its place, value and way out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from forecurve.curve_cells import CurveFileError
from forecurve.curve_files import read_curves

HEADER = "series,compute,reward,prompts,samples,seed\n"
ROWS = [("a", 0, 0.2), ("a", 1, 0.3), ("b", 1, 0.1), ("a", 2, 0.4), ("b", 2, 0.2), ("b", 3, 0.3)]


def _csv(folder: Path, text: str) -> Path:
    path = folder / "curves.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_csv_gives_each_series_in_the_order_of_its_first_row(tmp_path: Path) -> None:
    path = _csv(tmp_path, HEADER + "".join(f"{s},{c},{r},512,2,7\n" for s, c, r in ROWS))
    a, b = read_curves(path, unit="steps")
    assert (a.name, b.name) == ("a", "b")
    assert a.compute.tolist() == [0, 1, 2]
    assert b.reward.tolist() == [0.1, 0.2, 0.3]
    assert a.prompts is not None
    assert a.prompts.tolist() == [512] * 3
    assert a.unit == "steps"


def test_csv_jsonl_and_parquet_mean_the_same(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    import pyarrow.parquet as parquet

    rows = [{"series": s, "compute": c, "reward": r, "prompts": 10, "samples": None, "seed": 1} for s, c, r in ROWS]
    (tmp_path / "c.jsonl").write_text("\n".join(json.dumps(row) for row in rows) + "\n\n")
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "c.parquet")
    csv = _csv(tmp_path, HEADER + "".join(f"{s},{c},{r},10,,1\n" for s, c, r in ROWS))
    seen = [
        [(c.name, c.compute.tolist(), c.reward.tolist(), c.noise.variance.tolist()) for c in read_curves(path)]
        for path in (csv, tmp_path / "c.jsonl", tmp_path / "c.parquet")
    ]
    assert seen[0] == seen[1] == seen[2]


def test_a_long_csv_means_the_same_read_at_once_and_row_by_row_and_a_late_fault_is_named(tmp_path: Path) -> None:
    lines = [f"{'ab'[k % 2]},{k},0.{k % 10},{256 if k % 3 else ''},4,{k % 4 // 2}\n" for k in range(3000)]
    whole = read_curves(_csv(tmp_path, HEADER + "".join(lines)))
    in_steps = read_curves(_csv(tmp_path, HEADER + "".join([*lines[:1700], "\n, ,,\n", *lines[1700:]])))  # a blank row
    assert [(c.name, c.points, c.seed) for c in whole][:2] == [("a (seed 0)", 750, 0), ("a (seed 1)", 750, 1)]
    for one, other in zip(whole, in_steps, strict=True):
        assert (one.name, one.compute.tolist(), one.reward.tolist()) == (
            other.name,
            other.compute.tolist(),
            other.reward.tolist(),
        )
        assert one.noise.variance.tolist() == other.noise.variance.tolist()
    with pytest.raises(CurveFileError, match=r"reward at line 2902: a number is needed, got 'none yet'"):
        read_curves(_csv(tmp_path, HEADER + "".join([*lines[:2900], "a,2900,none yet,256,4,0\n"])))


def test_extra_columns_blank_cells_and_a_byte_order_mark_are_no_trouble(tmp_path: Path) -> None:
    path = _csv(tmp_path, "\ufeffseries,note,compute,reward,prompts\na,x,1,0.1,\na,y,2,0.2,100\na,,3,0.3,\n")
    (curve,) = read_curves(path)
    assert curve.points == 3
    assert curve.noise.source == "binomial"


def test_headers_in_capitals_and_blank_lines_are_no_trouble(tmp_path: Path) -> None:
    rows = "".join(f"a,{at},0.{at + 1},64,1\n  \n,,,,\n,,,,,\n" for at in range(3))
    found = read_curves(_csv(tmp_path, "Series, COMPUTE,Reward,Prompts,Seed\n" + rows))
    assert [(curve.points, curve.seed) for curve in found] == [(3, 1)]
    assert found[0].prompts is not None
    lines = [{"Series": "a", "Compute": at, "Reward": 0.1, "PROMPTS": 64, "seed": 1} for at in range(3)]
    (tmp_path / "runs.jsonl").write_text("\n".join(map(json.dumps, lines)))
    arrow = pytest.importorskip("pyarrow")
    pytest.importorskip("pyarrow.parquet").write_table(arrow.Table.from_pylist(lines), tmp_path / "runs.parquet")
    for name in ("runs.jsonl", "runs.parquet"):
        (other,) = read_curves(tmp_path / name)
        assert (other.points, other.seed, other.prompts is not None) == (3, 1, True)
    with pytest.raises(CurveFileError, match="seed: this column is needed once"):
        read_curves(_csv(tmp_path, "series,compute,reward,seed,Seed\na,1,0.1,1,2\n"))


@pytest.mark.parametrize(("before", "sign"), [("\n", ";"), ("\r\n\r\n", "\t"), ("  \n", ","), (",,\n", ",")])
def test_blank_lines_before_the_header_are_no_trouble(tmp_path: Path, before: str, sign: str) -> None:
    rows = "series,compute,reward\na,1,0.1\na,2,0.2\na,3,0.3\n".replace(",", sign)
    assert [curve.name for curve in read_curves(_csv(tmp_path, before + rows))] == ["a"]


@pytest.mark.parametrize("sign", [",", ";", "|", "\t"])
@pytest.mark.parametrize("line", ["sep={}\n", "\ufeffSEP={}\r\n", '"sep={}"\n'])
def test_a_first_line_may_name_what_stands_between_cells(tmp_path: Path, line: str, sign: str) -> None:
    rows = "series,compute,reward\na,1,0.1\na,2,0.2\na,3,0.3\n".replace(",", sign)
    (curve,) = read_curves(_csv(tmp_path, line.format(sign) + rows))
    assert (curve.name, curve.reward.tolist()) == ("a", [0.1, 0.2, 0.3])
    with pytest.raises(CurveFileError, match="compute at line 6: a number is needed, got 'x'"):
        read_curves(_csv(tmp_path, line.format(sign) + rows + sign.join(["a", "x", "0.4"])))


@pytest.mark.parametrize("sign", [";", "\t"])
def test_cells_may_stand_between_semicolons_or_tabs(tmp_path: Path, sign: str) -> None:
    text = '\ufeff"Series",note,compute,reward,prompts\n"a, lr=1e-4",x,1,0.1,\n"a, lr=1e-4",,2,0.2,64\n'
    rows = (text + '"a, lr=1e-4",,3,0.3,\n').replace('"a, lr=1e-4"', "NAME").replace(",", sign)
    for name in ("c.csv", "c.tsv"):
        (tmp_path / name).write_text(rows.replace("NAME", "a, lr=1e-4"), encoding="utf-8")
        (curve,) = read_curves(tmp_path / name)
        assert (curve.name, curve.compute.tolist(), curve.reward.tolist()) == ("a, lr=1e-4", [1, 2, 3], [0.1, 0.2, 0.3])
    with pytest.raises(CurveFileError, match="compute at line 5: a number is needed, got 'x'"):
        read_curves(_csv(tmp_path, rows + sign.join(["a", "", "x", "0.4", ""])))


def test_several_seeds_of_a_series_become_several_curves(tmp_path: Path) -> None:
    rows = "".join(f"a,{c},{0.1 * c},,,{seed}\n" for seed in (1, 2) for c in (1, 2, 3))
    assert [c.name for c in read_curves(_csv(tmp_path, HEADER + rows))] == ["a (seed 1)", "a (seed 2)"]


def test_seeds_of_64_bits_are_told_apart(tmp_path: Path) -> None:
    """As torch draws them: floats have not all their digits."""
    arrow = pytest.importorskip("pyarrow")
    names = [f"a (seed {seed})" for seed in (2**63 + 1, 2**63 + 3)]
    rows = [{"series": "a", "compute": c, "reward": 0.1 * c, "seed": 2**63 + s} for s in (1, 3) for c in (1, 2, 3)]
    (tmp_path / "c.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    seeds = arrow.array([row["seed"] for row in rows], arrow.uint64())
    table = arrow.Table.from_pylist([{**row, "seed": 0} for row in rows]).set_column(3, "seed", seeds)
    pytest.importorskip("pyarrow.parquet").write_table(table, tmp_path / "c.parquet")
    csv = _csv(
        tmp_path,
        "series,compute,reward,seed\n" + "".join("{series},{compute},{reward},{seed}\n".format(**row) for row in rows),
    )
    for path in (csv, tmp_path / "c.jsonl", tmp_path / "c.parquet"):
        assert [curve.name for curve in read_curves(path)] == names


def test_the_unit_comes_from_the_file_unless_it_is_given(tmp_path: Path) -> None:
    path = _csv(tmp_path, "series,compute,reward,unit\na,1,0.1,hours\na,2,0.2,hours\na,3,0.3,\n")
    assert read_curves(path)[0].unit == "hours"
    assert read_curves(path, unit="days")[0].unit == "days"


@pytest.mark.parametrize("form", ["csv", "semicolons.csv", "jsonl", "json", "parquet"])
def test_without_a_column_of_names_all_rows_are_of_one_run_called_as_the_file_is(form: str, tmp_path: Path) -> None:
    rows = [{"compute": c, "reward": r, "prompts": 10, "note": "x"} for c, r in ((1.0, 0.1), (2.0, 0.25), (4.0, 0.3))]
    path = tmp_path / f"grpo.{form}"
    if form == "parquet":
        arrow = pytest.importorskip("pyarrow")
        pytest.importorskip("pyarrow.parquet").write_table(arrow.Table.from_pylist(rows), path)
    elif form == "json":
        path.write_text(json.dumps(rows))
    elif form == "jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        sign = ";" if form.startswith("semicolons") else ","
        path.write_text("\n".join([sign.join(rows[0]), *(sign.join(map(str, row.values())) for row in rows)]))
    [curve] = read_curves(path)
    assert curve.name == path.stem
    assert (curve.compute.tolist(), curve.reward.tolist()) == ([1, 2, 4], [0.1, 0.25, 0.3])
    assert curve.prompts is not None
    assert curve.prompts.tolist() == [10] * 3
    assert [one.name for one in read_curves(path, series=[path.stem])] == [path.stem]
    with pytest.raises(CurveFileError, match=f"has no such series, got other; it is of one run, {path.stem}$"):
        read_curves(path, series=["other"])


def test_seeds_of_a_run_that_no_column_names_are_curves_of_their_own(tmp_path: Path) -> None:
    path = _csv(tmp_path, "compute,reward,seed\n" + "".join(f"{c},0.{c},{s}\n" for c in (1, 2, 3) for s in (0, 1)))
    assert [curve.name for curve in read_curves(path)] == ["curves (seed 0)", "curves (seed 1)"]


@pytest.mark.parametrize("column", ["run", "run_id", "Run_Name"])
def test_a_column_that_names_runs_under_another_name_is_pointed_at(column: str, tmp_path: Path) -> None:
    path = _csv(tmp_path, f"{column},compute,reward\na,1,0.1\n")
    with pytest.raises(CurveFileError, match=f"^series: .* missing.*; {column} seems to be the first of them$"):
        read_curves(path)


def test_runs_one_below_the_other_without_names_are_not_taken_for_one(tmp_path: Path) -> None:
    path = _csv(tmp_path, "compute,reward\n" + "1,0.1\n2,0.2\n3,0.3\n" * 2)
    with pytest.raises(CurveFileError, match=r"from 3, got 1 .*\(line 5\).*, or name each run in a column `series`"):
        read_curves(path)


@pytest.mark.parametrize("named", [0, 1])
def test_either_all_rows_name_their_run_or_none(named: int, tmp_path: Path) -> None:
    rows = [{"compute": k, "reward": 0.1 * k} | ({"series": "a"} if k % 2 == named else {}) for k in (1, 2, 3)]
    (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(CurveFileError, match="series at line 2: only some rows have this column"):
        read_curves(tmp_path / "c.jsonl")


def test_only_the_chosen_series_need_to_be_curves(tmp_path: Path) -> None:
    path = _csv(tmp_path, HEADER + "a,1,0.1,,,\na,2,0.2,,,\na,3,0.3,,,\nshort,1,0.1,,,\n")
    assert [c.name for c in read_curves(path, series=["a"])] == ["a"]
    with pytest.raises(CurveFileError, match="'short'"):
        read_curves(path)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ["compute: this column is missing, got no columns; name the columns series,compute,reward"]),
        ("series,compute\na,1\n", ["reward", "got series, compute; name the columns series,compute,reward"]),
        ("Step,grpo - acc\n1,0.1\n", ["got Step, grpo - acc; name the columns", "or let `forecurve convert` make"]),
        ("\n,,\n" + HEADER + "a,1,x,,,\n", ["reward at line 4", "'x'"]),
        ("PK\x03\x1b[31m" + "x" * 5000 + ",y\n", ["series", "column is missing", "xxx...;"]),
        ("PK\x03\x1b[31m,y\n", ["series", "column is missing", "got PK\ufffd\ufffd[31m, y;"]),
        (HEADER, ["no evaluations"]),
        (HEADER + "a,1,0.1,,,\na,x,0.2,,,\n", ["compute at line 3", "'x'", "a number is needed"]),
        (HEADER + "a,1,,,,\n", ["reward at line 2", "a number is needed"]),
        (HEADER + ",1,0.1,,,\n", ["series at line 2", "name every series"]),
        (HEADER + "a,1,0.1,,,,9\n", ["line 2", "more cells than columns"]),
        (HEADER + "a,1,0.1,,,\na,2,0.2,,,\n", ["series 'a', compute", "at least 3", "2 evaluations"]),
        (HEADER + "a,1,0.1,,,\na,3,0.2,,,\na,2,0.2,,,\n", ["goes backwards", "2 at evaluation 3 (line 4);"]),
        (HEADER + "a,1,0.1,,,\na,2,nan,,,\na,3,0.2,,,\n", ["series 'a', reward", "nan at evaluation 2 (line 3);"]),
        (HEADER + "a,1,0.1,,,\na,2,12,,,\na,3,0.2,,,\n", ["series 'a'", "12 at evaluation 2 (line 3);", "[0, 1]"]),
        (HEADER + "a,1,0.1,,,x\n", ["seed at line 2", "'x'"]),
        (HEADER + "a,1,0.1,,,1.5\n", ["seed at line 2", "'1.5'", "whole number"]),
        (HEADER + "a,1,0.1,,,inf\n", ["seed at line 2", "whole number"]),
        (HEADER + "a,0,0.1,,,\na,0,0.2,,,\na,1,0.3,,,\n", ["is repeated", "0 at evaluation 2 (line 3);"]),
        (HEADER + "a,-1,0.1,,,\na,0,0.2,,,\na,1,0.3,,,\n", ["'a', compute", "-1.0 (line 2);", "be negative"]),
        (HEADER + "a,1,0.1,0,,\na,2,0.2,0,,\na,3,0.3,0,,\n", ["series 'a', prompts", "0.0 (line 2);"]),
        ("series,compute,reward,reward\na,1,0.1,0.2\n", ["reward", "needed once", "2 of them", "leave one out"]),
        (HEADER + "a,1\n", ["reward at line 2", "got nothing"]),
        (HEADER + f"a,{'1' * 400}x,0.1,,,\n", ["compute at line 2", "11..."]),
        ("series,compute,reward,unit\na,1,0.1,h\na,2,0.2,d\n", ["unit at line 3", "got d", "began with h"]),
        ("series,compute,reward,unit\na,1,0.1,\x1b[31mh\n", ["unit at line 2", r"got '\x1b[31mh'", "rename the unit"]),
        (HEADER + 'a,"1,000",0.1,,,\n', ["compute at line 2", "'1,000'", "nothing between thousands"]),
        (HEADER + 'a,1,"0,1",,,\n', ["reward at line 2", "'0,1'", "a point before decimals"]),
        (HEADER + "a,1,61.5%,,,\n", ["reward at line 2", "'61.5%'", "state the range"]),
    ],
)
def test_a_bad_file_is_refused_with_place_value_and_way_out(tmp_path: Path, text: str, parts: list[str]) -> None:
    with pytest.raises(CurveFileError) as caught:
        read_curves(_csv(tmp_path, text))
    for part in parts:
        assert part in str(caught.value)
    assert str(caught.value).count("got") == 1
    assert len(str(caught.value)) < 250
    assert caught.value.way_out in str(caught.value)


@pytest.mark.parametrize(
    ("name", "text", "place"),
    [
        ("a.csv", HEADER + "b,1,0,,,\n\na,1,0,,,1\na,2,0,,,2\na,1,0,,,1\na,2,0,,,1\n", "evaluation 2 (line 6)"),
        (
            "a.jsonl",
            "\n\n" + "".join(f'{{"series": "a", "compute": {at}, "reward": 0.1}}\n\n' for at in (1, 2, 2)),
            "evaluation 3 (line 7)",
        ),
        (
            "a.json",
            json.dumps([{"series": name, "compute": 5, "reward": 0.1} for name in "ababab"]),
            "evaluation 2 (item 3)",
        ),
    ],
)
def test_a_fault_of_a_series_names_its_row_among_those_of_others(
    tmp_path: Path, name: str, text: str, place: str
) -> None:
    file = tmp_path / name
    file.write_text(text)
    with pytest.raises(CurveFileError, match="series 'a") as caught:
        read_curves(file, series=["a"])
    assert f" at {place};" in str(caught.value)
    assert str(caught.value.value).endswith(place)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CurveFileError, match="no such file"):
        read_curves(tmp_path / "none.csv")
    with pytest.raises(CurveFileError, match=r"must end in one of .*; save it as CSV"):
        read_curves(tmp_path / "curves.xlsx")
    with pytest.raises(CurveFileError, match=r"must end in one of .*; unpack it, or pipe it"):
        read_curves(tmp_path / "curves.csv.gz")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00series")
    with pytest.raises(CurveFileError, match="not CSV in UTF-8"):
        read_curves(tmp_path / "bytes.csv")
    (tmp_path / "lines.jsonl").write_text('{"series": "a", "compute": 1, "reward": 0.1}\n[1]\n')
    with pytest.raises(CurveFileError, match="line 2"):
        read_curves(tmp_path / "lines.jsonl")
    (tmp_path / "lines.jsonl").write_text("{broken\n")
    with pytest.raises(CurveFileError, match="line 1: not JSON"):
        read_curves(tmp_path / "lines.jsonl")
    for text, words in [("{}", "a list of evaluations"), ("[1]", "item 1"), ("[", "file: not JSON"), ("[]", "no eval")]:
        (tmp_path / "list.json").write_text(text)
        with pytest.raises(CurveFileError, match=words):
            read_curves(tmp_path / "list.json")
    pytest.importorskip("pyarrow")
    (tmp_path / "no.parquet").write_text("not parquet")
    with pytest.raises(CurveFileError, match="not Parquet"):
        read_curves(tmp_path / "no.parquet")


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ('{"series": "a", "compute": 1, "reward": null}', ["reward at line 1", "a number is needed", "got nothing"]),
        ('{"series": {"x": 1}, "compute": 1, "reward": 0.1}', ["series at line 1", "text is needed", "{'x': 1}"]),
        ('{"series": true, "compute": 1, "reward": 0.1}', ["series at line 1", "text is needed", "True"]),
        ('{"series": "a", "compute": 1, "reward": 0.1, "unit": []}', ["unit at line 1", "text is needed", "[]"]),
        ('{"series": "a", "compute": 1, "reward": 0.1, "reward": 0.2}', ["reward at line 1", "needed once"]),
        ('{"series": "a", "compute": 1}', ["reward at line 1", "this column is missing", "series, compute"]),
        (f'{{"series": "a", "compute": 1{"0" * 400}, "reward": 0.1}}', ["compute at line 1", "00..."]),
        (f'{{"series": "a", "compute": 1{"0" * 5000}, "reward": 0.1}}', ["line 1", "cannot be taken"]),
        ("[" * 100_000, ["line 1", "cannot be taken"]),
    ],
)
def test_a_bad_line_of_json_is_refused_with_place_value_and_way_out(
    tmp_path: Path, line: str, parts: list[str]
) -> None:
    (tmp_path / "lines.jsonl").write_text(line + "\n")
    with pytest.raises(CurveFileError) as caught:
        read_curves(tmp_path / "lines.jsonl")
    for part in [*parts, caught.value.way_out]:
        assert part in str(caught.value)
    assert len(str(caught.value)) < 250


def test_a_byte_order_mark_blanks_in_a_header_and_names_that_are_numbers_are_no_trouble(tmp_path: Path) -> None:
    rows = "".join(f'{{"series": 7, "compute": {at}, "reward": 0.{at}}}\n' for at in (1, 2, 3))
    (tmp_path / "lines.jsonl").write_text("\ufeff" + rows, encoding="utf-8")
    (from_json,) = read_curves(tmp_path / "lines.jsonl")
    (from_csv,) = read_curves(_csv(tmp_path, "series , compute,reward \n7,1,0.1\n7,2,0.2\n7,3,0.3\n"))
    assert from_json.name == from_csv.name == "7"
    assert from_json.reward.tolist() == from_csv.reward.tolist()


def test_columns_that_are_not_read_may_be_there_twice(tmp_path: Path) -> None:
    (curve,) = read_curves(_csv(tmp_path, "series,compute,reward,note,note\na,1,0.1,x,y\na,2,0.2,,\na,3,0.3,,\n"))
    assert curve.points == 3


def test_a_range_of_rewards_is_that_of_every_curve(tmp_path: Path) -> None:
    path = _csv(tmp_path, "series,compute,reward\na,1,10\na,2,20\na,3,30\n")
    with pytest.raises(CurveFileError, match=r"bounds=\(low, high\)"):
        read_curves(path)
    (curve,) = read_curves(path, bounds=(0, 100))
    assert curve.bounds == (0.0, 100.0)


def test_a_seed_column_with_one_seed_leaves_the_series_its_name(tmp_path: Path) -> None:
    (curve,) = read_curves(_csv(tmp_path, HEADER + "a,1,0.1,,,3\na,2,0.2,,,3\na,3,0.3,,,3\n"))
    assert (curve.name, curve.seed) == ("a", 3)


@pytest.mark.parametrize("cell", ["nan", "NaN", ""])
def test_a_seed_that_is_nan_is_none(tmp_path: Path, cell: str) -> None:
    rows = "".join(f"a,{at},0.{at},,,{cell}\n" for at in (1, 2, 3)) + "".join(
        f"a,{at},0.{at},,,7\n" for at in (1, 2, 3)
    )
    curves = read_curves(_csv(tmp_path, HEADER + rows))
    assert [(curve.name, curve.seed) for curve in curves] == [("a (seed none)", None), ("a (seed 7)", 7)]


def test_what_a_spreadsheet_calls_unicode_text_is_told_how_to_save_it(tmp_path: Path) -> None:
    path = tmp_path / "c.csv"
    path.write_text("series\tcompute\treward\na\t1\t0.1\n", encoding="utf-16")
    with pytest.raises(CurveFileError, match=r"it is not CSV in UTF-8 .*; save it as CSV UTF-8"):
        read_curves(path)


def test_numbers_of_json_that_are_none_are_refused(tmp_path: Path) -> None:
    for value in ("true", "[1]", "{}", f"1{'0' * 400}"):
        (tmp_path / "lines.jsonl").write_text(f'{{"series": "a", "compute": {value}, "reward": 0.1}}\n')
        with pytest.raises(CurveFileError, match="compute at line 1"):
            read_curves(tmp_path / "lines.jsonl")


def test_more_evaluations_than_a_curve_may_have_are_refused_while_reading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("forecurve.science.checks.MAX_POINTS", 5)
    text = HEADER + "".join(f"a,{at},0.1,,,\n" for at in range(1, 9))
    with pytest.raises(CurveFileError, match="series 'a': at most 5 evaluations are taken, got more by line 7"):
        read_curves(_csv(tmp_path, text))


def test_an_unknown_series_is_named(tmp_path: Path) -> None:
    path = _csv(tmp_path, HEADER + "a,1,0.1,,,\na,2,0.2,,,\na,3,0.3,,,\n")
    with pytest.raises(CurveFileError, match=r"series: curves.csv has no such series, got b; it has 'a'$"):
        read_curves(path, series=["b"])
    assert read_curves(path, series=[" a "])[0].name == "a"
    path = _csv(tmp_path, HEADER + "".join(f"s{name},{at},0.1,,,\n" for name in range(9) for at in (1, 2, 3)))
    with pytest.raises(CurveFileError, match=r"it has 's0', 's1', 's2', 's3', 's4' and 4 more$"):
        read_curves(path, series=["b"])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(alphabet='series,compute,reward\n"0123456789.-ab\r\x00', max_size=120))
def test_any_text_is_either_read_or_refused_by_name(tmp_path: Path, text: str) -> None:
    try:
        curves = read_curves(_csv(tmp_path, "series,compute,reward\n" + text))
    except CurveFileError:
        return
    assert all(curve.points >= 3 for curve in curves)


def test_a_series_named_as_another_ones_seed_is_refused(tmp_path: Path) -> None:
    rows = [f"{name},{c},{c / 10},{seed}" for name, seed in (("a", 1), ("a", 2), ("a (seed 1)", 1)) for c in (1, 2, 3)]
    with pytest.raises(CurveFileError, match=r"'a \(seed 1\)'; rename"):
        read_curves(_csv(tmp_path, "series,compute,reward,seed\n" + "\n".join(rows)))


def test_a_name_that_a_terminal_would_obey_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CurveFileError, match=r"'a\\x1b\]0;owned\\x07'"):
        read_curves(_csv(tmp_path, HEADER + "".join(f"a\x1b]0;owned\x07,{c},0.{c},,,\n" for c in (1, 2, 3))))
    (tmp_path / "folder.csv").mkdir()
    for folder in (tmp_path, tmp_path / "folder.csv"):
        with pytest.raises(CurveFileError, match="it is a folder"):
            read_curves(folder)
