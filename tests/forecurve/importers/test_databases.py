"""Trackers' databases: trackio's, as 0.43 wrote it, and what MLflow's has in common with it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecurve.curve_cells import CurveFileError
from forecurve.importers import metrics, read
from tests.forecurve.importers.stores import stored

CURVE = [(0, 0.2), (10, 0.2 + 10 / 100), (20, 0.4)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return stored(tmp_path / "gsm8k.db", "trackio-0.43.0")


def added(path: Path, run: str, name: str, *rows: tuple[int, object]) -> None:
    with closing(sqlite3.connect(path)) as database:
        for step, logged in rows:
            text = logged if isinstance(logged, str) else json.dumps(logged)
            values = (run, "2026-01-01T00:00:00+00:00", name, step, text)
            database.execute(
                "INSERT INTO metrics (run_id, timestamp, run_name, step, metrics) VALUES (?, ?, ?, ?, ?)", values
            )
        database.commit()


def curves(path: Path, **asked: object) -> dict[tuple[str, int | None], list[tuple[float, float]]]:
    found: dict[tuple[str, int | None], list[tuple[float, float]]] = {}
    for row in read(path, metric="val/acc", **asked).rows:  # type: ignore[arg-type]
        found.setdefault((row["series"], row["seed"]), []).append((row["compute"], row["reward"]))
    return found


def test_a_project_of_trackio_is_read_run_by_run_with_seeds_by_their_configurations(project: Path) -> None:
    assert curves(project) == {("grpo", 3): CURVE, ("grpo", 4): CURVE, ("cispo", None): CURVE}
    assert metrics(project) == {"val/acc": 9, "train/loss": 9, "nan": 9}


def test_a_run_that_is_called_as_an_earlier_one_of_its_seed_has_a_name_of_its_own(project: Path) -> None:
    added(project, "f" * 32, "cispo", (0, {"val/acc": 0.1}), (5, {"val/acc": 0.3, "image": {"_type": "trackio.image"}}))
    found = curves(project)
    assert found["cispo (2)", None] == [(0, 0.1), (5, 0.3)]
    assert found["cispo", None] == CURVE
    assert "gsm8k.db: 1 called as an earlier run of that seed: `name (2)` and so on here" in read(project).notes


def test_a_project_that_is_written_to_meanwhile_is_read_as_far_as_it_goes(project: Path) -> None:
    with closing(sqlite3.connect(project)) as writer:
        writer.execute("PRAGMA journal_mode = WAL")
        added(project, "f" * 32, "live", (0, {"val/acc": 0.1}), (5, {"val/acc": 0.3}))
        assert curves(project, growing=True)["live", None] == [(0, 0.1), (5, 0.3)]


OLD = """
    CREATE TABLE metrics (id INTEGER PRIMARY KEY, timestamp TEXT, run_name TEXT, step INTEGER, metrics TEXT);
    CREATE TABLE configs (id INTEGER PRIMARY KEY, run_name TEXT, config TEXT, created_at TEXT);
    INSERT INTO configs (run_name, config) VALUES ('grpo', '{"seed": 5}');"""


def test_a_project_of_before_runs_had_ids_is_read_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with closing(sqlite3.connect(path)) as old:
        old.executescript(OLD)
        for run, step, rate in (("grpo", 0, 0.2), ("cispo", 0, 0.1), ("grpo", 10, 0.4), ("cispo", 10, 0.3)):
            told = json.dumps({"val/acc": rate})
            old.execute("INSERT INTO metrics (run_name, step, metrics) VALUES (?, ?, ?)", (run, step, told))
        old.commit()
    assert curves(path) == {("grpo", 5): [(0, 0.2), (10, 0.4)], ("cispo", None): [(0, 0.1), (10, 0.3)]}


class _Sealed(sqlite3.Connection):
    """To a database in a folder that cannot be written to, in which SQLite wants to make a file."""

    says = ""

    def execute(self, *told: Any) -> sqlite3.Cursor:
        raise sqlite3.OperationalError(self.says)


@pytest.mark.parametrize("says", ["unable to open database file", "attempt to write a readonly database"])
def test_a_project_on_a_disk_that_cannot_be_written_to_is_read(
    project: Path, monkeypatch: pytest.MonkeyPatch, says: str
) -> None:
    connect = sqlite3.connect
    monkeypatch.setattr(_Sealed, "says", says)

    def sealed(url: str, uri: bool) -> sqlite3.Connection:
        return connect(url, uri=uri, factory=sqlite3.Connection if "immutable=1" in url else _Sealed)

    monkeypatch.setattr("forecurve.importers.databases.sqlite3.connect", sealed)  # nothing is sealed to root
    assert curves(project)["cispo", None] == CURVE


def test_a_folder_of_projects_is_read_and_other_databases_in_it_are_left_alone(project: Path) -> None:
    stored(project.with_name("math.db"), "trackio-0.43.0")
    stored(project.with_name("mlflow.db"), "mlflow-3.17.2")
    with closing(sqlite3.connect(project.with_name("other.db"))) as other:
        other.execute("CREATE TABLE metrics (step INTEGER)")
        other.execute("CREATE TABLE configs (name TEXT)")
    found = curves(project.parent)
    assert {name for name, _ in found} == {
        "gsm8k.db/grpo",
        "math.db/grpo",
        "gsm8k.db/cispo",
        "math.db/cispo",
        "mlflow.db/cispo",
        "gsm8k/grpo",
        "gsm8k/grpo (2)",
    }


@given(
    st.text(max_size=60) | st.recursive(st.none() | st.booleans() | st.floats() | st.text(), st.lists).map(json.dumps)
)
def test_whatever_was_logged_gives_numbers_or_a_reason(tmp_path_factory: pytest.TempPathFactory, logged: str) -> None:
    path = stored(tmp_path_factory.mktemp("project") / "p.db", "trackio-0.43.0")
    added(path, "f" * 32, "odd", (0, logged))
    with suppress(CurveFileError):
        assert ("cispo", None) in curves(path)
