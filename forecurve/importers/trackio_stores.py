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

TABLES = frozenset({"metrics", "configs"})

_ROWS = "SELECT run_id, run_name, step, metrics FROM metrics ORDER BY id"
_CONFIGS = "SELECT run_id, config FROM configs"


def read_tables(database: sqlite3.Connection, path: Path) -> Reading:
    """The logs of its runs; two of one name are seeds of a series where their configurations say so.

    Raises:
        sqlite3.Error, ValueError: it cannot be read.
    """
    names: dict[str, str] = {}
    rows: dict[str, list[Row]] = {}
    for run_id, name, step, logged in database.execute(_ROWS):
        names[run_id] = visible(str(name))
        cells = cells_of(_object(logged))
        rows.setdefault(run_id, []).append(Row(f"{path.name}, {names[run_id]}, step {step}", cells | {"step": step}))
    configs = {run_id: _object(config) for run_id, config in database.execute(_CONFIGS)}
    seeds = [_seed(configs.get(run_id, {}).get("seed")) for run_id in rows]
    called, notes = each_of_its_seed(path.name, [names[run_id] for run_id in rows], seeds)
    logs = [
        Log(name, path / str(run_id), rows[run_id], axes=("step",), seed=seed, place=path)
        for run_id, name, seed in zip(rows, called, seeds, strict=True)
    ]
    return Reading(logs, notes)


def _object(told: str | bytes) -> Mapping[str, Any]:
    found = json.loads(told)
    return found if isinstance(found, dict) else {}


def _seed(told: Any) -> int | None:
    return int(told) if is_finite(told) and float(told).is_integer() and 0 <= float(told) < 1e9 else None
