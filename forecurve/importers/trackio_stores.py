"""trackio's database of a project: a row for each `log`, its numbers as JSON, and the configuration of each run."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forecurve.signs import visible

from .logs import Log, Reading, Row, cells_of, is_finite
from .naming import each_of_its_seed

_COLUMNS = {"id", "run_name", "step", "metrics"}
_BY_ID = "run_id"  # since 0.24; before, a run was known by its name


def is_trackios(database: sqlite3.Connection) -> bool:
    return _columns(database, "metrics") >= _COLUMNS


def read_tables(database: sqlite3.Connection, path: Path) -> Reading:
    """The logs of its runs; two of one name are seeds of a series where their configurations say so.

    Raises:
        sqlite3.Error, ValueError: it cannot be read.
    """
    run = _BY_ID if _BY_ID in _columns(database, "metrics") else "run_name"
    names: dict[str, str] = {}
    rows: dict[str, list[Row]] = {}
    logs = database.execute(f"SELECT {run}, run_name, step, metrics FROM metrics ORDER BY id").fetchall()
    for run_id, name, step, logged in logs:
        names[run_id] = visible(str(name))
        cells = cells_of(_object(logged))
        rows.setdefault(run_id, []).append(Row(f"{path.name}, {names[run_id]}, step {step}", cells | {"step": step}))
    configs = _configs(database, run)
    seeds = [_seed(configs.get(run_id, {}).get("seed")) for run_id in rows]
    called, notes = each_of_its_seed(path.name, [names[run_id] for run_id in rows], seeds)
    found = [
        Log(name, path / str(run_id), rows[run_id], axes=("step",), seed=seed, place=path)
        for run_id, name, seed in zip(rows, called, seeds, strict=True)
    ]
    return Reading(found, notes)


def _configs(database: sqlite3.Connection, run: str) -> dict[str, Mapping[str, Any]]:
    if not _columns(database, "configs") >= {run, "config"}:
        return {}
    rows = database.execute(f"SELECT {run}, config FROM configs").fetchall()
    return {run_id: _object(config) for run_id, config in rows}


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    """None where there is no such table."""
    return {name for (name,) in database.execute("SELECT name FROM pragma_table_info(?)", (table,))}


def _object(told: str | bytes) -> Mapping[str, Any]:
    found = json.loads(told)
    return found if isinstance(found, dict) else {}


def _seed(told: Any) -> int | None:
    return int(told) if is_finite(told) and float(told).is_integer() and 0 <= float(told) < 1e9 else None
