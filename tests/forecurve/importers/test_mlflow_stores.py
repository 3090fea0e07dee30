"""MLflow's stores: databases that `mlflow` 3.17.2 and 2.9.2 wrote of the same runs, and folders as both write them."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecurve.curve_cells import CurveFileError
from forecurve.importers import Imported, metrics, mlflow_stores, read
from tests.forecurve.importers.stores import stored

VERSIONS = ["3.17.2", "2.9.2"]


def database(path: Path, version: str = "3.17.2") -> Path:
    return stored(path, f"mlflow-{version}")


def folder(
    store: Path,
    run: str,
    numbers: dict[str, Sequence[tuple[int, float, int]]],
    *,
    name: str = "grpo",
    experiment: str = "gsm8k",
    seed: str | None = None,
    start: int = 0,
    stage: str = "active",
) -> Path:
    """A run as MLflow's file store keeps it: numbers by their names, each with time and step."""
    place = store / experiment / run
    (place / "metrics").mkdir(parents=True)
    (place.parent / "meta.yaml").write_text(f"experiment_id: '1'\nlifecycle_stage: active\nname: {experiment}\n")
    meta = f"lifecycle_stage: {stage}\nrun_id: {run}\nrun_name: {name}\nstart_time: {start}\nstatus: 3\ntags: []\n"
    (place / "meta.yaml").write_text(meta)
    for metric, values in numbers.items():
        file = place / "metrics" / metric
        file.parent.mkdir(exist_ok=True)
        file.write_text("".join(f"{time} {value!r} {step}\n" for time, value, step in values))
    if seed is not None:
        (place / "params").mkdir()
        (place / "params" / "seed").write_text(seed)
    return place


def points(found: Imported, series: str, seed: int | None = None) -> list[tuple[float, float]]:
    rows = (row for row in found.rows if (row["series"], row["seed"]) == (series, seed))
    return [(row["compute"], row["reward"]) for row in rows]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_database_of_mlflow_is_read_run_by_run(tmp_path: Path, version: str) -> None:
    found = read(database(tmp_path / "mlflow.db", version), metric="val/acc")
    assert (
        points(found, "gsm8k/grpo", 3) == points(found, "gsm8k/grpo", 4) == [(0, 0.2), (10, 0.2 + 10 / 100), (20, 0.4)]
    )
    assert points(found, "cispo") == [(0, 0.2), (10, 0.2 + 10 / 100), (20, 0.4)]
    assert points(found, "gsm8k/grpo (2)", 4) == points(found, "cispo")  # its name and its seed are another's
    assert found.runs == 4  # one that was deleted is not there
    assert "mlflow.db: 1 run without a number" in found.notes
    assert "mlflow.db: 1 called as an earlier run of that seed: `name (2)` and so on here" in found.notes
    assert found.left_out == {"not finite (NaN)": 4}


@pytest.mark.parametrize("version", VERSIONS)
def test_what_a_database_has_is_counted_by_name_and_may_be_the_compute(tmp_path: Path, version: str) -> None:
    path = database(tmp_path / "mlflow.db", version)
    assert metrics(path) == {"val/acc": 16, "tokens": 12, "train/loss": 16}
    found = read(path, metric="val/acc", compute="tokens", unit="tokens", runs=["cispo"])
    assert points(found, "cispo") == [(1000, 0.2), (11_000, 0.2 + 10 / 100), (21_000, 0.4)]


def test_a_folder_of_runs_is_read_as_its_database_would_be(tmp_path: Path) -> None:
    store = tmp_path / "mlruns"
    curve = {"val/acc": [(5, 0.2, 0), (9, 0.5, 10), (12, math.nan, 20)], "loss": [(5, 1.0, 0), (9, 0.5, 10)]}
    first = folder(store, "a1b2c3d4e5", curve, seed="3", start=2)
    folder(store, "ffffffffff", curve, seed="3", start=1)
    folder(store, "0123456789", curve, name="cispo", experiment="Default")
    folder(store, "9876543210", curve, name="gone", stage="deleted")
    folder(store / ".trash", "5555555555", curve, name="of a deleted experiment")
    found = read(store)
    assert {row["series"] for row in found.rows} == {"gsm8k/grpo", "gsm8k/grpo (2)", "cispo"}
    assert points(found, "gsm8k/grpo", 3) == points(found, "cispo") == [(0, 0.2), (10, 0.5)]
    assert found.metric == "val/acc"
    alone = read(first)
    assert points(alone, "gsm8k/grpo", 3) == [(0, 0.2), (10, 0.5)]


def test_a_resume_throws_away_what_came_after_its_checkpoint(tmp_path: Path) -> None:
    before = [(at, 0.1 + at / 100, at) for at in range(0, 50, 10)]
    after = [(100 + at, 0.2 + at / 100, at) for at in range(20, 60, 20)]
    folder(tmp_path, "a", {"val/acc": [*before, *after]}, experiment="Default")
    assert points(read(tmp_path), "grpo") == [(0, 0.1), (10, 0.2), (20, 0.4), (40, 0.2 + 40 / 100)]


def test_what_was_logged_apart_has_the_compute_of_its_step(tmp_path: Path) -> None:
    numbers = {"val/acc": [(6, 0.2, 10), (11, 0.5, 20)], "tokens": [(5, 70.0, 10), (10, 150.0, 20)]}
    folder(tmp_path, "a", numbers, experiment="Default")
    assert points(read(tmp_path, compute="tokens"), "grpo") == [(70, 0.2), (150, 0.5)]


def test_numbers_without_a_step_have_no_step_0(tmp_path: Path) -> None:
    numbers = {"val/acc": [(5, 0.2, 0), (9, 0.5, 0)], "tokens": [(5, 70.0, 0), (9, 150.0, 0)]}
    folder(tmp_path, "a", numbers, experiment="Default")
    with pytest.raises(CurveFileError, match="has no step where it has val/acc"):
        read(tmp_path, metric="val/acc")
    assert points(read(tmp_path, metric="val/acc", compute="tokens"), "grpo") == [(70, 0.2), (150, 0.5)]


def test_what_mlflow_measures_of_the_machine_leaves_steps_alone(tmp_path: Path) -> None:
    of_machine = {"system/cpu_utilization_percentage": [(at, 50.0, at) for at in range(1, 12)]}
    late = {"val/acc": [(2, 0.2, 0), (4, 0.3, 10), (6, 0.4, 20), (8, 0.35, 15), (10, 0.5, 30)]}
    stepless = {"val/acc": [(5, 0.2, 0), (9, 0.5, 0)], "tokens": [(5, 70.0, 0), (9, 150.0, 0)]}
    for name, numbers in (("late", late), ("stepless", stepless)):
        folder(tmp_path / "with", name, numbers | of_machine, name=name)
        folder(tmp_path / "without", name, numbers, name=name)
    for run, asked in (("gsm8k/late", None), ("gsm8k/stepless", "tokens")):
        both = [read(tmp_path / store, metric="val/acc", compute=asked, runs=[run]) for store in ("with", "without")]
        assert points(both[0], run) == points(both[1], run)
        assert both[0].rows
    assert "system/cpu_utilization_percentage" not in metrics(tmp_path / "with")


def test_while_a_database_is_read_mlflow_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = database(tmp_path / "mlflow.db")
    numbers = mlflow_stores._numbers

    def meanwhile(reading: sqlite3.Connection, run_id: str) -> object:
        with closing(sqlite3.connect(path, timeout=0)) as writing:
            writing.execute("INSERT INTO metrics VALUES ('late', 0.5, 1, ?, 1, 0)", (run_id,))
            writing.commit()
        return numbers(reading, run_id)

    monkeypatch.setattr(mlflow_stores, "_numbers", meanwhile)
    assert read(path, metric="val/acc").runs == 4


def test_runs_are_called_alike_from_wherever_their_folders_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = folder(tmp_path, "a1", {"val/acc": [(5, 0.2, 0), (9, 0.5, 10)]})
    monkeypatch.chdir(place)
    assert points(read("."), "gsm8k/grpo") == points(read(tmp_path), "gsm8k/grpo") == [(0, 0.2), (10, 0.5)]


def test_stores_beside_one_another_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    for store in ("one", "two"):
        folder(tmp_path / store, "a1", {"val/acc": [(5, 0.2, 0), (9, 0.5, 10)]})
    assert {row["series"] for row in read(tmp_path).rows} == {"one/gsm8k/grpo", "two/gsm8k/grpo"}


def test_half_a_line_is_no_number_while_it_is_being_written(tmp_path: Path) -> None:
    place = folder(tmp_path, "a", {"val/acc": [(5, 0.2, 0), (9, 0.5, 10)]}, experiment="Default")
    with (place / "metrics/val/acc").open("a") as file:
        file.write("12 0.7 2")
    assert len(read(tmp_path, growing=True).rows) == 2
    assert points(read(tmp_path), "grpo")[-1] == (2, 0.7)  # which is what it says, if that was all
    with (place / "metrics/val/acc").open("a") as file:
        file.write("0\n")
    assert points(read(tmp_path, growing=True), "grpo")[-1] == (20, 0.7)


@pytest.mark.parametrize("line", ["oops", "5 x 3", "5", "5 0.3 1.5"])
def test_a_line_that_mlflow_does_not_write_is_named(tmp_path: Path, line: str) -> None:
    place = folder(tmp_path, "a", {"val/acc": [(5, 0.2, 0)]})
    with (place / "metrics/val/acc").open("a") as file:
        file.write(f"{line}\n")
    with pytest.raises(CurveFileError, match=r"val/acc, line 2.*a time, a number and a step"):
        read(tmp_path)


def test_a_database_of_somebody_else_is_said_to_be_one(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as made:
        made.execute("CREATE TABLE metrics (step INTEGER)")
    with pytest.raises(CurveFileError, match=r"of a kind that is not read.*MLflow's or trackio's"):
        read(other)


def test_a_folder_that_has_only_artifacts_leads_to_the_database(tmp_path: Path) -> None:
    (tmp_path / "mlruns/1/abc/artifacts").mkdir(parents=True)
    database(tmp_path / "mlflow.db")
    with pytest.raises(CurveFileError, match=r"numbers of MLflow's runs are in .*mlflow\.db"):
        read(tmp_path / "mlruns")


@given(st.binary(max_size=60), st.integers(0, 8191))
def test_a_damaged_database_is_said_to_be_one(tmp_path_factory: pytest.TempPathFactory, bent: bytes, at: int) -> None:
    path = database(tmp_path_factory.mktemp("bent") / "mlflow.db")
    whole = path.read_bytes()
    path.write_bytes(whole[:at] + bent + whole[at + len(bent) :])
    with suppress(CurveFileError):
        assert all(math.isfinite(row["reward"]) for row in read(path, metric="val/acc").rows)


@given(st.text(max_size=80))
def test_whatever_stands_in_a_runs_description_gives_a_run_or_a_reason(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    place = folder(tmp_path_factory.mktemp("store"), "a", {"val/acc": [(5, 0.2, 0), (9, 0.5, 10)]})
    (place / "meta.yaml").write_text(text, encoding="utf-8", errors="replace")
    with suppress(CurveFileError):
        assert len(read(place).rows) == 2
