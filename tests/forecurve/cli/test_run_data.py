"""`forecurve run metrics`, `run export` and `sweep export` against the real API."""

from __future__ import annotations

import csv
import io
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import delete, insert, update
from sqlalchemy.orm import Session, sessionmaker

from forecurve.science import Curve, fit
from server.metrics.models import Evaluation, MetricPoint
from server.runs.models import Run
from tests.web import seeding

from .conftest import Forecurve, spawn
from .seeded import seeded_run


class _Piped(io.StringIO):
    """Standard input with bytes in it."""

    def __init__(self, text: str):
        super().__init__(text)
        self.buffer = io.BytesIO(text.encode())


def _points(sessions: sessionmaker[Session], run_id: str, metric: str, values: list[float]) -> None:
    row = {"run_id": run_id, "metric": metric, "attempt": 1, "time": datetime.now(UTC)}
    rows = [row | {"step": step, "compute": step / 10, "value": value} for step, value in enumerate(values)]
    with sessions.begin() as session:
        session.execute(insert(MetricPoint), rows)


@pytest.fixture
def run_id(sessions: sessionmaker[Session]) -> str:
    """Id of a run with two metrics, one of them longer than a page."""
    run_id = seeded_run(sessions)
    _points(sessions, run_id, "train/reward", [step / 20_000 for step in range(10_003)])
    _points(sessions, run_id, "train/loss", [0.5, float("nan"), float("inf")])
    return run_id


def test_metrics_are_named(forecurve: Forecurve, service: str, sessions: sessionmaker[Session], run_id: str) -> None:
    assert forecurve("run", "metrics", run_id).out.split() == ["train/loss", "train/reward"]
    assert forecurve("run", "metrics", run_id, "--json").json == {"metrics": ["train/loss", "train/reward"]}
    assert "No metrics yet." in forecurve("run", "metrics", seeded_run(sessions, "other")).out


def test_a_series_is_written_whole_however_long(forecurve: Forecurve, service: str, run_id: str) -> None:
    written = forecurve("run", "metrics", run_id, "--metric", "train/reward")

    rows = list(csv.DictReader(io.StringIO(written.out)))
    assert list(rows[0]) == ["metric", "step", "attempt", "compute", "value", "time"]
    assert [int(row["step"]) for row in rows] == list(range(10_003))
    assert float(rows[-1]["value"]) == 10_002 / 20_000


def test_numbers_that_are_none_are_named_in_every_format(forecurve: Forecurve, service: str, run_id: str) -> None:
    asked = "run", "metrics", run_id, "--metric", "train/loss"

    rows = csv.DictReader(io.StringIO(forecurve(*asked).out))
    lines = forecurve(*asked, "--format", "jsonl").out.splitlines()

    assert [row["value"] for row in rows] == ["0.5", "NaN", "Infinity"]
    assert [json.loads(line)["value"] for line in lines] == [0.5, "NaN", "Infinity"]
    assert forecurve(*asked, "--format", "json").json == forecurve(*asked, "--json").json
    assert [item["value"] for item in forecurve(*asked, "--json").json["items"]] == [0.5, "NaN", "Infinity"]


def test_series_go_into_a_file_in_the_form_of_its_name(
    forecurve: Forecurve, service: str, run_id: str, tmp_path: Path
) -> None:
    table, lines = tmp_path / "metrics.csv", tmp_path / "metrics.jsonl"

    told = forecurve("run", "metrics", run_id, "--all", "-o", table)
    as_json = forecurve("run", "metrics", run_id, "--metric", "train/loss", "-o", lines, "--json").json

    assert told.out.strip() == f"10006 rows in {table}"
    assert len(table.read_text().splitlines()) == 10_007
    assert as_json == {"file": str(lines), "format": "jsonl", "rows": 3}
    assert json.loads(lines.read_text().splitlines()[0])["metric"] == "train/loss"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["metrics.csv", "metrics.jsonl"]


def test_what_stops_half_way_leaves_the_file_as_it_was(
    forecurve: Forecurve, service: str, run_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from forecurve.client import ApiError
    from forecurve.client.api import Api

    def breaks(self: Api, run_id: str, metric: str) -> object:
        yield {"step": 0, "attempt": 1, "compute": 0.0, "value": 1.0, "time": "now"}
        raise ApiError("no answer", code="unreachable")

    file = tmp_path / "metrics.csv"
    file.write_text("of before")
    monkeypatch.setattr(Api, "metric_points", breaks)

    assert forecurve("run", "metrics", run_id, "--all", "-o", file).code == 1
    assert [path.read_text() for path in tmp_path.iterdir()] == ["of before"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--metric", "train/rewrd"], "has no metric 'train/rewrd'; did you mean `train/reward`?"),
        (["-o", "metrics.csv"], "--metric: no series is named"),
        (["--all", "-o", "nowhere/metrics.csv"], "--output: "),
        (["--all", "--format", "xml"], "--format"),
        (["--all", "-o", "metrics.parquet"], "--output: .parquet is none of .csv, .jsonl and .json"),
    ],
)
def test_what_cannot_be_written_is_bad_input(
    forecurve: Forecurve, service: str, run_id: str, arguments: list[str], words: str
) -> None:
    result = forecurve("run", "metrics", run_id, *arguments)
    assert result.code == 2
    assert words in result.err
    assert result.out == ""


def test_exported_runs_are_fitted_as_they_are_in_the_service(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = seeded_run(sessions, "one, two"), seeded_run(sessions, "control", until=20.0, seed=1)

    exported = forecurve("run", "export", first, second, first)
    monkeypatch.setattr(sys, "stdin", _Piped(exported.out))
    fitted = forecurve("fit", "-", "--budget", "60", "--json").json["series"]

    assert exported.out.splitlines()[0] == "series,compute,reward,prompts,samples,seed,unit"
    assert [(one["series"], one["points"]) for one in fitted] == [("one, two", 21), ("control", 11)]
    assert fitted[0]["A"] == pytest.approx(fit(_curve(sessions, first)).to_dict()["A"])


@pytest.mark.parametrize("form", ["jsonl", "json"])
def test_every_form_is_read_from_stdin_and_from_a_file(
    forecurve: Forecurve,
    service: str,
    sessions: sessionmaker[Session],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    form: str,
) -> None:
    run_id, file = seeded_run(sessions), tmp_path / f"curves.{form}"
    forecurve("run", "export", run_id, "-o", file)
    assert f"at 60 {seeding.UNIT} (90 %)" in forecurve("fit", file, "--budget", "60").out
    exported = forecurve("run", "export", run_id, "--format", form)
    monkeypatch.setattr(sys, "stdin", _Piped(exported.out))
    assert f"at 60 {seeding.UNIT} (90 %)" in forecurve("fit", "-", "--budget", "60").out
    monkeypatch.setattr(sys, "stdin", _Piped(""))
    assert forecurve("fit", "-").code == 2


def test_a_pipe_between_two_processes_is_read() -> None:
    rows = [f"control,{compute},{0.2 + 0.01 * compute},GPU-hours" for compute in range(1, 30)]
    ended = spawn("fit", "-", "--budget", "60", input="\n".join(["series,compute,reward,unit", *rows]))
    assert ended.returncode == 0
    assert "at 60 GPU-hours (90 %)" in ended.stdout


def test_units_that_differ_are_said_for_no_forecast_takes_them_together(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session]
) -> None:
    ours, other = seeded_run(sessions), seeded_run(sessions, "in steps")
    with sessions.begin() as session:
        session.get_one(Run, other).compute_unit = "steps"
    exported = forecurve("run", "export", ours, other)
    assert exported.err.strip() == "compute is in CPU-seconds and in steps; `forecurve fit` takes one unit a file"
    assert {row["unit"] for row in csv.DictReader(io.StringIO(exported.out))} == {"CPU-seconds", "steps"}


def test_runs_of_one_name_and_seed_stay_apart(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session]
) -> None:
    first, second, seed = seeded_run(sessions), seeded_run(sessions), seeded_run(sessions, seed=1)
    items = forecurve("run", "export", first, second, seed, "--json").json["items"]
    assert list(dict.fromkeys(item["series"] for item in items)) == [
        f"control ({first})",
        f"control ({second})",
        "control",
    ]


def test_a_metric_is_exported_in_place_of_the_evaluations(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, none = (seeded_run(sessions, name) for name in ("one", "two", "three"))
    _points(sessions, first, "eval/other", [float("nan"), *(20 + 5 * k**0.5 for k in range(20))])
    _points(sessions, second, "eval/other", [30.0, 40.0])
    with sessions.begin() as session:
        session.execute(update(MetricPoint).where(MetricPoint.run_id == second).values(compute=None))
        evaluated = session.query(Evaluation).filter_by(run_id=second).order_by(Evaluation.step)[:2]
        at_step_1 = evaluated[1].compute / evaluated[1].step

    exported = forecurve("run", "export", first, second, none, "--metric", "eval/other")
    told = csv.DictReader(io.StringIO(exported.out))
    rows = [(row["series"], float(row["compute"]), float(row["reward"])) for row in told]
    assert [row for row in rows if row[0] == "one"] == [("one", k / 10, 20 + 5 * (k - 1) ** 0.5) for k in range(1, 21)]
    assert [row for row in rows if row[0] == "two"] == [("two", 0.0, 30.0), ("two", pytest.approx(at_step_1), 40.0)]
    assert exported.err == f"three ({none}) is left out: it has no finite value of eval/other\n"
    monkeypatch.setattr(sys, "stdin", _Piped(forecurve("run", "export", first, "--metric", "eval/other").out))
    (fitted,) = forecurve("fit", "-", "--range", "0,100", "--json").json["series"]
    assert (fitted["points"], fitted["A"]["lower"] > 40) == (20, True)
    assert "none of these runs has logged 'eval/othr'; did you mean `eval/other`?" in (
        forecurve("run", "export", first, none, "--metric", "eval/othr").err
    )


def test_values_of_which_nobody_says_the_compute_are_told_of(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session]
) -> None:
    part, none = seeded_run(sessions, "part"), seeded_run(sessions, "none")
    for run_id in (part, none):
        _points(sessions, run_id, "eval/other", [0.1] * 5)
    with sessions.begin() as session:
        session.execute(update(MetricPoint).values(compute=None))
        session.execute(update(MetricPoint).where(MetricPoint.step > 2).values(step=MetricPoint.step + 10**6))
        session.execute(delete(Evaluation).where(Evaluation.run_id == none))
    exported = forecurve("run", "export", part, none, "--metric", "eval/other")
    assert len(exported.out.splitlines()) == 4
    first, second = exported.err.splitlines()
    assert first.startswith(f"part ({part}): 2 of 5 values of eval/other are left out, of which nobody says how much")
    assert second.startswith(f"none ({none}) is left out: of its values of eval/other nobody says how much compute")


def test_a_sweep_is_exported_with_its_arms_as_series(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    design = "{kind: leave_one_out, ingredients: [cispo], seeds: [0, 1]}"
    (tmp_path / "sweep.yaml").write_text(f"preset: scalerl\nchanges: {{budget.compute: 60}}\ndesign: {design}\n")
    sweep = forecurve("sweep", "submit", tmp_path / "sweep.yaml", "--json").json
    with sessions.begin() as session:
        for at, submitted in enumerate(sweep["runs"][:-1]):
            run = session.get_one(Run, submitted["id"])
            seeding.add_evaluations(session, run, seeding.Truth(), until=40.0, now=datetime.now(UTC), seed=at)
    last = sweep["runs"][-1]

    exported = forecurve("sweep", "export", sweep["id"])
    monkeypatch.setattr(sys, "stdin", _Piped(exported.out))
    compared = forecurve("compare", "-", "--control", "control", "--json")

    assert {(row["series"], row["seed"]) for row in csv.DictReader(io.StringIO(exported.out))} == {
        (run["arm"], str(run["seed"])) for run in sweep["runs"][:-1]
    }
    assert exported.err.strip() == f"{last['arm']} ({last['id']}) is left out: it has no evaluations yet"
    assert compared.json["control_seeds"] == 2
    assert [arm["arm"] for arm in compared.json["arms"]] == ["no-cispo"]
    unknown = forecurve("sweep", "export", "swp_nope")
    assert unknown.code == 2
    assert "`forecurve sweep list` lists them" in unknown.err


def _curve(sessions: sessionmaker[Session], run_id: str) -> Curve:
    from server.metrics.curve import validation_curve

    with sessions() as session:
        points = validation_curve(session, run_id)
    return Curve(
        [point.compute for point in points],
        [point.reward for point in points],
        unit=seeding.UNIT,
        prompts=[point.prompts for point in points],
        samples=[point.samples for point in points],
    )
