"""Tables of one run or of many, in every format that loggers write."""

from __future__ import annotations

import csv
import json
from cProfile import Profile
from pathlib import Path
from typing import Any

import pytest

from forecurve.curve_cells import CurveFileError
from forecurve.importers import metrics, read

# as W&B's run.history().to_csv() writes it, with pandas' index in front; transformers logs its own step
HISTORY = """,_step,_runtime,_timestamp,train/global_step,train/loss,eval/pass_rate
0,0,1.5,1700000000.5,0,,0.1
1,1,11.5,1700000010.5,5,0.9,
2,2,12.5,1700000011.5,10,,0.2
3,3,22.5,1700000021.5,15,0.8,
4,4,23.5,1700000022.5,20,,0.4
"""


def _file(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def _points(rows: list[dict[str, Any]]) -> list[tuple[str, float, float]]:
    return [(row["series"], row["compute"], row["reward"]) for row in rows]


def test_a_history_is_a_run_called_as_its_file(tmp_path: Path) -> None:
    found = read(_file(tmp_path, "grpo-a.csv", HISTORY))
    assert _points(found.rows) == [("grpo-a", 0, 0.1), ("grpo-a", 10, 0.2), ("grpo-a", 20, 0.4)]
    assert "compute: train/global_step, in steps" in found.notes  # W&B's own _step counts what was logged


def test_what_is_logged_apart_is_found_by_its_step(tmp_path: Path) -> None:
    path = _file(tmp_path, "a.csv", "step,eval/acc,gpu_hours\n10,,1\n10,.1,\n20,.2,\n25,,2.5\n30,.3,\n")
    with pytest.raises(
        CurveFileError, match=r"gpu_hours of run 'a' at a.csv, line 4: compute must increase and is rep"
    ):
        read(path, compute="gpu_hours")
    path = _file(tmp_path, "a.csv", "step,eval/acc,gpu_hours\n0,.05,\n10,,1\n10,.1,\n15,,2\n20,.2,\n30,.3,\n30,,4\n")
    found = read(path, compute="gpu_hours")
    assert _points(found.rows) == [("a", 1, 0.1), ("a", 2, 0.2), ("a", 4, 0.3)]
    assert found.left_out == {"before any compute was logged": 1}
    assert "1 evaluation with the compute that was logged last before" in found.notes


def test_every_format_says_the_same(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = [{"step": at, "eval/acc": at / 100 if at % 20 == 0 else None, "loss": 1.0} for at in range(0, 100, 10)]
    full = [{name: cell for name, cell in row.items() if cell is not None} for row in rows]
    (tmp_path / "run.jsonl").write_text("".join(json.dumps(row) + "\n" for row in full))
    (tmp_path / "run.json").write_text(json.dumps(rows))
    parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "run.parquet")
    for name, delimiter in (("run.csv", ","), ("run.tsv", "\t"), ("run.txt", ";")):
        with (tmp_path / name).open("w", newline="") as stream:
            writer = csv.DictWriter(stream, list(rows[0]), delimiter=delimiter)
            writer.writeheader()
            writer.writerows(rows)
    wanted = [("run", at, at / 100) for at in range(0, 100, 20)]
    for path in sorted(tmp_path.iterdir()):
        assert _points(read(path).rows) == wanted, path.name


def test_verls_file_logger(tmp_path: Path) -> None:
    """A line a step with everything inside `data`; the evaluation before training has no training/global_step."""
    metric = "val-core/gsm8k/acc/mean@1"
    lines = [{"step": 0, "data": {metric: 0.1, "val-aux/gsm8k/reward/mean@1": 0.2}}]
    lines += [
        {
            "step": at,
            "data": {
                "training/global_step": at,
                "critic/rewards/mean": 0.3,
                **({metric: at / 100} if at % 10 == 0 else {}),
            },
        }
        for at in range(1, 31)
    ]
    path = _file(tmp_path, "proj/dapo.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    found = read(path, per_step=0.5, unit="GPU-hours", prompts=1319, samples=1)
    assert _points(found.rows) == [("dapo", 0, 0.1), ("dapo", 5, 0.1), ("dapo", 10, 0.2), ("dapo", 15, 0.3)]
    assert found.metric == metric
    assert found.rows[0] == {
        "series": "dapo",
        "step": 0,
        "compute": 0,
        "reward": 0.1,
        "prompts": 1319,
        "samples": 1,
        "seed": None,
        "unit": "GPU-hours",
    }


def test_a_long_table_has_a_run_for_each_name(tmp_path: Path) -> None:
    text = "arm,update,held_out_accuracy\na,1,.1\nb,1,.2\na,2,.3\nb,2,.4\n"
    path = _file(tmp_path, "table.csv", text)
    found = read(path, series="arm", compute="update")
    assert _points(found.rows) == [("a", 1, 0.1), ("a", 2, 0.3), ("b", 1, 0.2), ("b", 2, 0.4)]
    with pytest.raises(CurveFileError, match=r"series: table\.csv has no such column, got arms; it has arm, update"):
        read(path, series="arms")
    with pytest.raises(CurveFileError, match="compute: run 'table' has no step"):
        read(path)


def test_trackios_table_names_its_runs_and_a_seed_column_is_heeded(tmp_path: Path) -> None:
    text = "run_name,step,seed,eval/acc\nx,1,7,.1\nx,1,8,.2\nx,2,7,.3\nx,2,8,.4\n"
    found = read(_file(tmp_path, "p.csv", text))
    assert [(row["series"], row["seed"], row["reward"]) for row in found.rows] == [
        ("x", 7, 0.1),
        ("x", 7, 0.3),
        ("x", 8, 0.2),
        ("x", 8, 0.4),
    ]
    assert "seed: seed, which is logged" in found.notes
    assert found.left_out == {}


def test_runs_of_one_name_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    """trackio makes an id at every init; rows of before it had ids have none."""
    rows = "r1,grpo,10,.1\nr1,grpo,20,.2\nr2,grpo,10,.5\nr2,grpo,20,.6\n,grpo,10,.7\nr4,grpo (2),10,.8\nr1,grpo,30,.3\n"
    path = _file(tmp_path, "p.csv", f"run_id,run_name,step,eval/acc\n{rows}")
    found = read(path)
    assert _points(found.rows) == [
        ("grpo", 10, 0.1),
        ("grpo", 20, 0.2),
        ("grpo", 30, 0.3),
        ("grpo (3)", 10, 0.5),
        ("grpo (3)", 20, 0.6),
        ("grpo (4)", 10, 0.7),
        ("grpo (2)", 10, 0.8),
    ]
    assert found.left_out == {}
    assert "p.csv has several runs grpo, by run_id: the second is grpo (3) here" in str(found.notes)
    assert read(path, series="run_name").runs == 2


def test_a_step_that_was_logged_twice_counts_once(tmp_path: Path) -> None:
    text = "step,eval/acc\n10,.1\n20,.2\n30,.3\n20,.25\n30,.35\n40,.4\n50,nan\n"
    found = read(_file(tmp_path, "a.csv", text))
    assert any(note.startswith("1 time the step went back, as after a resume") for note in found.notes)
    assert [(row["compute"], row["reward"]) for row in found.rows] == [(10, 0.1), (20, 0.25), (30, 0.35), (40, 0.4)]
    again = "of steps that were logged again later (the last report counts)"
    assert found.left_out == {"not finite (NaN)": 1, again: 2}
    assert found.summary == f"1 run, 4 evaluations of eval/acc; left out: 1 not finite (NaN), 2 {again}"


GONE = "of later steps than a resume went back to"


def _steps(rows: list[dict[str, Any]]) -> list[float]:
    return [row["step"] for row in rows]


def _log(steps: list[int]) -> str:
    return "step,eval/acc\n" + "".join(f"{step},{at / 100}\n" for at, step in enumerate(steps, start=1))


def test_what_a_resume_threw_away_is_left_out_and_counted(tmp_path: Path) -> None:
    found = read(_file(tmp_path, "a.csv", _log([0, 10, 20, 30, 40, 50, 35, 45, 55, 65, 60, 70])))
    assert _steps(found.rows) == [0, 10, 20, 30, 35, 45, 55, 60, 70]
    assert found.left_out == {GONE: 3}  # 40, 50 and 65
    assert any(note.startswith("2 times the step went back, as after a resume: what had") for note in found.notes)
    found = read(_file(tmp_path, "a.csv", _log([0, 10, 20, 5])))  # has only just gone on
    assert (_steps(found.rows), found.left_out) == ([0, 5], {GONE: 2})


@pytest.mark.parametrize(
    ("steps", "late"),
    [
        ([0, 10, 20, 40, 50, 30, 60], [30]),
        ([0, 10, 20, 50, 60, 40, 30, 70, 80], [30, 40]),
        ([0, 10, 20, 40, 30], [30]),  # the last to come
        ([0, 10, 20, 40, 30, 40, 50], []),  # 40 came again: done again from 20 on
        ([0, 10, 20, 30, 25, 40, 50], []),  # in no gap
        ([10, 20, 30, 0], []),  # begun anew
    ],
)
def test_an_evaluation_that_came_in_late_throws_nothing_away(tmp_path: Path, steps: list[int], late: list[int]) -> None:
    found = read(_file(tmp_path, "a.csv", _log(steps)))
    told = [note for note in found.notes if "came in late, as of an older checkpoint" in note]
    assert len(told) == bool(late)
    if late:
        assert told[0].startswith(f"{len(late)} evaluation")
        assert _steps(found.rows) == sorted(steps)
    else:
        assert len(found.rows) < len(steps)


def test_many_that_came_in_late_take_no_longer_each(tmp_path: Path) -> None:
    few, many = _calls_to_read(tmp_path, 200), _calls_to_read(tmp_path, 800)
    assert many < 6 * few


def _calls_to_read(folder: Path, late: int) -> int:
    in_time = [30 * at + rest for at in range(late) for rest in (0, 10)] + [30 * late]
    path = _file(folder, "a.csv", _log(in_time + [30 * at + 20 for at in range(late)]))
    profile = Profile()
    found = profile.runcall(read, path)
    assert _steps(found.rows) == [10 * at for at in range(3 * late + 1)]
    return sum(entry.callcount for entry in profile.getstats())


@pytest.mark.parametrize(
    ("steps", "kept"),
    [
        ([0, 10, 20, 40, 50, 30, 45, 60], [0, 10, 20, 30, 45, 60]),  # 45 is between two of before
        ([0, 10, 20, 60, 70, 35, 50, 65, 80], [0, 10, 20, 35, 50, 65, 80]),
        ([0, 10, 20, 60, 70, 50, 35, 55, 80], [0, 10, 20, 35, 55, 80]),  # 50 came late, the run was resumed at 35
        ([0, 10, 20, 60, 70, 35, 50, 80], [0, 10, 20, 35, 50, 60, 70, 80]),  # all in gaps: cannot be told
    ],
)
def test_what_falls_in_a_gap_on_the_way_of_a_resume_is_of_it(tmp_path: Path, steps: list[int], kept: list[int]) -> None:
    found = read(_file(tmp_path, "a.csv", _log(steps)))
    assert _steps(found.rows) == kept
    if len(kept) == len(steps):
        assert any("(where the run was resumed there, take out the rows" in note for note in found.notes)
    else:
        assert found.left_out == {GONE: len(steps) - len(kept)}


def _beside_training(rows: str) -> str:
    """Lines of training (step and hours) and of evaluations (step, rate and, where it is told, hours)."""
    return "step,hours,eval/acc\n" + "".join(f"{row}{',' * (2 - row.count(','))}\n" for row in rows.split())


def test_what_is_logged_beside_evaluations_tells_a_resume_from_a_late_one(tmp_path: Path) -> None:
    late = "10,1 10,,.1 15,1.5 20,2 20,,.2 25,2.5 15,2.6,.15 30,3 30,,.3 40,4 40,,.4 20,,.25 50,5 50,,.5"
    found = read(_file(tmp_path, "late.csv", _beside_training(late)), compute="hours")
    points = [(row["compute"], row["reward"]) for row in found.rows]
    assert points == [(1, 0.1), (1.5, 0.15), (2, 0.25), (3, 0.3), (4, 0.4), (5, 0.5)]
    by_then = _beside_training("10,1,.1 20,2,.2 40,4,.4 30,4.2,.3 50,5,.5")
    found = read(_file(tmp_path, "by_then.csv", by_then), compute="hours")
    assert (_steps(found.rows), [*found.left_out.values()]) == ([10, 20, 40, 50], [1])
    resumed = "10,1 10,,.1 20,2 20,,.2 40,4 40,,.4 30,,.3 31,3.1 50,5 50,,.5"
    found = read(_file(tmp_path, "resumed.csv", _beside_training(resumed)))
    assert _steps(found.rows) == [10, 20, 30, 50]


def test_compute_of_a_branch_that_was_thrown_away_counts_no_more(tmp_path: Path) -> None:
    """Resumed from step 15 after 30, and evaluated where the first branch had logged its compute as well."""
    first = "10,.1,1\n15,,1.5\n20,.2,2\n25,,2.5\n30,.3,3\n"
    found = read(
        _file(tmp_path, "a.csv", f"step,eval/acc,hours\n{first}16,,1.6\n20,.25,\n28,,2.8\n32,.4,\n"), compute="hours"
    )
    assert [(row["step"], row["compute"]) for row in found.rows] == [(10, 1), (20, 1.6), (32, 2.8)]


@pytest.mark.parametrize("steps", [[60, 50, 40, 30, 20, 10], [30, 10, 60, 20, 50, 40, 10]])
def test_rows_that_are_in_no_order_are_all_kept(tmp_path: Path, steps: list[int]) -> None:
    found = read(_file(tmp_path, "a.csv", _log(steps)))
    assert _steps(found.rows) == sorted(set(steps))
    assert "1 log with its rows in no order of steps: all are kept" in found.notes
    assert GONE not in found.left_out


def test_files_that_are_given_together_may_be_so_in_any_order(tmp_path: Path) -> None:
    files = [
        _file(tmp_path, name, "run,step,eval/acc\n" + "".join(f"x,{step},{step / 100}\n" for step in steps))
        for name, steps in (("late.csv", (30, 40, 50)), ("early.csv", (0, 10, 20)))
    ]
    found = read(files)
    assert _steps(found.rows) == [0, 10, 20, 30, 40, 50]
    assert found.left_out == {}


def test_seeds_that_are_nan_are_none(tmp_path: Path) -> None:
    text = "step,seed,eval/acc\n1,7.0,.1\n2,7.0,.2\n1,8.0,.3\n2,8.0,.4\n1,nan,.5\n2,nan,.6\n"
    found = read(_file(tmp_path, "a.csv", text))
    assert list(dict.fromkeys(row["seed"] for row in found.rows)) == [7, 8, None]


def test_files_of_one_name_are_called_by_their_folders(tmp_path: Path) -> None:
    for folder in ("a/x", "b/x", "c/y"):
        _file(tmp_path, f"{folder}/metrics.csv", "step,eval/acc\n1,.1\n2,.2\n")
    found = read([tmp_path / folder / "metrics.csv" for folder in ("a/x", "b/x", "c/y")])
    assert list(dict.fromkeys(row["series"] for row in found.rows)) == ["a/x/metrics", "b/x/metrics", "y/metrics"]


def test_seeds_at_the_end_of_names(tmp_path: Path) -> None:
    names = ("grpo-lr3_seed1", "grpo-lr3_seed2", "dapo/s3", "runs3")
    files = [_file(tmp_path, f"{name}.csv", "step,eval/acc\n1,.1\n2,.2\n") for name in names]
    found = read(files, seeds_in_names=True)
    assert list(dict.fromkeys((row["series"], row["seed"]) for row in found.rows)) == [
        ("grpo-lr3", 1),
        ("grpo-lr3", 2),
        ("dapo", 3),
        ("runs3", None),
    ]
    assert "no seed at the end of the name: runs3" in found.notes
    other = _file(tmp_path, "grpo-lr3-s1.csv", "step,eval/acc\n1,.1\n")
    with pytest.raises(CurveFileError, match="seed: 'grpo-lr3_seed1' and 'grpo-lr3-s1' are both called so"):
        read([*files, other], seeds_in_names=True)


def test_a_cell_that_is_no_number_is_told_with_its_line(tmp_path: Path) -> None:
    path = _file(tmp_path, "a.csv", "step,eval/acc\n1,.1\n2,soon\n3,.3\n")
    with pytest.raises(CurveFileError, match=r"eval/acc at a.csv, line 3: a number is needed, got 'soon'"):
        read(path)
    path = _file(tmp_path, "a.csv", "step,eval/acc\n1,10%\n2,20%\n")
    with pytest.raises(CurveFileError, match=r"line 2: a number is needed, got '10%'; write the number alone"):
        read(path, metric="eval/acc")


@pytest.mark.parametrize("text", ["series,compute,reward,note\na,1,.1,x\n", "compute,reward,prompts\n1,.1,9\n"])
def test_a_curve_file_needs_no_converting(text: str, tmp_path: Path) -> None:
    with pytest.raises(CurveFileError, match="it is a curve file already"):
        read(_file(tmp_path, "a.csv", text))


def test_a_table_with_more_than_a_curve_may_call_its_columns_as_a_curve_file_does(tmp_path: Path) -> None:
    table = _file(tmp_path, "a.csv", "compute,reward,val/acc\n1,5,.1\n2,6,.2\n3,7,.3\n")
    found = read(table, metric="val/acc", compute="compute")
    assert [(row["compute"], row["reward"]) for row in found.rows] == [(1, 0.1), (2, 0.2), (3, 0.3)]


def test_what_is_logged_is_listed_with_the_likely_first(tmp_path: Path) -> None:
    assert list(metrics(_file(tmp_path, "a.csv", HISTORY)).items()) == [("eval/pass_rate", 3), ("train/loss", 2)]


def test_a_seed_that_only_some_rows_tell(tmp_path: Path) -> None:
    text = "step,seed,eval/acc,loss\n1,7,,2\n2,,.1,\n3,,.2,\n"
    assert {row["seed"] for row in read(_file(tmp_path, "a.csv", text)).rows} == {7}
    text = "step,rank,eval/acc,loss\n1,0,.1,\n1,1,.2,\n2,0,.3,\n2,1,.4,\n2,,,9\n"
    found = read(_file(tmp_path, "a.csv", text), seed="rank")
    assert [(row["seed"], row["reward"]) for row in found.rows] == [(0, 0.1), (0, 0.3), (1, 0.2), (1, 0.4)]


def test_percentages_are_told_what_fit_needs(tmp_path: Path) -> None:
    found = read(_file(tmp_path, "a.csv", "step,eval/acc\n1,10\n2,20.5\n"))
    assert "rewards lie in 10 to 20.5: `forecurve fit` needs their range (--range LOW,HIGH)" in found.notes


def test_runs_that_count_differently_are_not_put_together(tmp_path: Path) -> None:
    steps = _file(tmp_path, "a.csv", "step,eval/acc\n1,.1\n")
    other = _file(tmp_path, "b.csv", "Relative Time (Wall),b - eval/acc\n1,.1\n")
    with pytest.raises(CurveFileError, match="runs are counted in different units, got step, Relative Time"):
        read([steps, other])
    assert read([steps, other], unit="anything").runs == 2
