"""W&B's export of a chart: runs and metrics apart, whatever is in their names."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecurve.curve_cells import CurveFileError
from forecurve.importers import metrics, read

CHART = """"Step","grpo - lr 1e-6 - eval/pass_rate","grpo - lr 1e-6 - eval/pass_rate__MIN","grpo - lr 1e-6 - eval/pass_rate__MAX","dapo - eval/pass_rate","dapo - eval/pass_rate__MIN","dapo - eval/pass_rate__MAX"
"0","0.1","0.1","0.1","","",""
"20","0.2","0.2","0.2","0.15","0.15","0.15"
"40","","","","NaN","NaN","NaN"
"60","0.3","0.3","0.3","0.35","0.35","0.35"
"""  # noqa: E501 - a header of W&B is one line

OVER_TIME = """"Relative Time (Process)","a - _step","a - _step__MIN","a - _step__MAX","a - val/acc","a - val/acc__MIN","a - val/acc__MAX"
"12.5","1","1","1","0.1","0.1","0.1"
"20.25","2","2","3","0.2","0.2","0.2"
"""  # noqa: E501


def _file(folder: Path, text: str, name: str = "wandb_export.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_every_run_has_its_cells_that_are_not_empty(tmp_path: Path) -> None:
    found = read(_file(tmp_path, CHART))
    assert [(row["series"], row["compute"], row["reward"]) for row in found.rows] == [
        ("grpo - lr 1e-6", 0, 0.1),
        ("grpo - lr 1e-6", 20, 0.2),
        ("grpo - lr 1e-6", 60, 0.3),
        ("dapo", 20, 0.15),
        ("dapo", 60, 0.35),
    ]
    assert {row["unit"] for row in found.rows} == {"steps"}
    assert found.metric == "eval/pass_rate"
    assert found.summary == "2 runs, 5 evaluations of eval/pass_rate; left out: 1 not finite (NaN)"


def test_the_x_axis_is_the_compute(tmp_path: Path) -> None:
    found = read(_file(tmp_path, OVER_TIME), unit="seconds of a node")
    assert [row["compute"] for row in found.rows] == [12.5, 20.25]
    assert found.rows[0]["unit"] == "seconds of a node"
    assert read(_file(tmp_path, OVER_TIME)).rows[0]["unit"] == "seconds"
    over_steps = read(_file(tmp_path, OVER_TIME), compute="_step")
    assert [row["compute"] for row in over_steps.rows] == [1, 2]


def test_a_date_is_no_compute(tmp_path: Path) -> None:
    path = _file(tmp_path, OVER_TIME.replace("Relative Time (Process)", "Wall Time"))
    with pytest.raises(CurveFileError, match="it is a date and no compute, got Wall Time"):
        read(path)


def test_a_chart_of_groups_is_told(tmp_path: Path) -> None:
    found = read(_file(tmp_path, CHART.replace('"0.15","0.15","0.15"', '"0.15","0.1","0.2"')))
    assert any("in 1 line a value stands for several" in note for note in found.notes)
    assert not any("stands for" in note for note in read(_file(tmp_path, OVER_TIME)).notes)  # of steps nobody asks


def test_a_metric_with_a_dash_is_told_from_the_run_by_what_is_asked(tmp_path: Path) -> None:
    path = _file(tmp_path, '"Step","a - b - c","d - b - c"\n1,0.5,0.6\n2,0.6,0.7\n')
    assert {row["series"] for row in read(path, metric="b - c").rows} == {"a", "d"}
    assert {row["series"] for row in read(path, metric="c").rows} == {"a - b", "d - b"}


def test_charts_of_the_same_runs_are_taken_together(tmp_path: Path) -> None:
    """Pass rate and GPU-hours are two charts on the page."""
    spent = _file(tmp_path, '"Step","dapo - perf/gpu_hours"\n10,5\n20,10.5\n60,30\n', "spent.csv")
    found = read([_file(tmp_path, CHART), spent], compute="perf/gpu_hours")
    assert [(row["compute"], row["reward"], row["unit"]) for row in found.rows] == [
        (10.5, 0.15, "GPU-hours"),
        (30, 0.35, "GPU-hours"),
    ]
    assert "dapo is in 2 files, which are taken together" in found.notes
    assert "left out: a run that has no perf/gpu_hours: grpo - lr 1e-6" in found.notes


def test_runs_of_the_same_name_stay_two(tmp_path: Path) -> None:
    path = _file(tmp_path, '"Step","a - eval/acc","a - eval/acc"\n1,0.1,0.5\n2,0.2,0.6\n')
    found = read(path)
    assert [(row["series"], row["reward"]) for row in found.rows] == [
        ("a", 0.1),
        ("a", 0.2),
        ("a (2)", 0.5),
        ("a (2)", 0.6),
    ]
    assert any("several runs a: the second is a (2) here" in note for note in found.notes)


def test_a_chart_of_one_run_without_its_name_is_called_as_the_file(tmp_path: Path) -> None:
    path = _file(tmp_path, "Step,eval/acc,eval/acc__MIN,eval/acc__MAX\n1,.1,.1,.1\n2,.2,.2,.2\n", "my-run.csv")
    assert {row["series"] for row in read(path).rows} == {"my-run"}
    assert metrics(path) == {"eval/acc": 2}


NAMES = st.text(  # white space around a name is not read
    st.characters(min_codepoint=33, max_codepoint=0x2FF, exclude_characters="\x7f", exclude_categories=["C", "Z"]),
    min_size=1,
    max_size=8,
)
VALUES = st.one_of(st.none(), st.floats(0, 1))


@given(
    runs=st.lists(NAMES, min_size=1, max_size=4, unique=True),
    points=st.lists(st.lists(VALUES, min_size=4, max_size=4), min_size=1, max_size=8),
)
def test_what_was_drawn_comes_back(
    tmp_path_factory: pytest.TempPathFactory, runs: list[str], points: list[list[float | None]]
) -> None:
    path = tmp_path_factory.mktemp("chart") / "chart.csv"
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream, quoting=csv.QUOTE_ALL)
        writer.writerow(["Step", *(f"{run} - eval/x{end}" for run in runs for end in ("", "__MIN", "__MAX"))])
        for step, values in enumerate(points):
            writer.writerow(
                [step, *("" if value is None else value for value in values[: len(runs)] for _ in range(3))]
            )
    drawn = [
        (run, step, values[at])
        for at, run in enumerate(runs)
        for step, values in enumerate(points)
        if values[at] is not None
    ]
    if not drawn:
        with pytest.raises(CurveFileError):
            read(path, metric="eval/x")
        return
    found = read(path, metric="eval/x")
    assert [(row["series"], row["compute"], row["reward"]) for row in found.rows] == drawn
