"""MLflow's stores on a disk: a database (`mlflow.db`, its default since 3.7) and the folder `mlruns/` of before.

Of a run they have every number with its step and time, its parameters, and its name. What was deleted in MLflow is left
alone. Numbers that were logged without a step all have step 0: such a run has no step here.
"""

from __future__ import annotations

import math
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from forecurve.curve_cells import CurveFileError
from forecurve.science.checks import short
from forecurve.signs import visible

from .logs import Log, Reading, Row
from .naming import each_of_its_seed

DATABASE = "mlflow.db"
_META = "meta.yaml"
_DELETED = ".trash"
_SEED = "seed"
_TABLES = frozenset({"runs", "metrics", "params", "experiments"})
_INFINITE = sys.float_info.max  # as which its databases keep infinities
_DEFAULT = "Default"  # the experiment of runs that name none

_RUNS = """
    SELECT runs.run_uuid, runs.name, runs.start_time, experiments.name,
           (SELECT value FROM params WHERE params.run_uuid = runs.run_uuid AND params.key = 'seed')
    FROM runs LEFT JOIN experiments ON experiments.experiment_id = runs.experiment_id
   WHERE runs.lifecycle_stage = 'active'"""
_OF_THE_MACHINE = "system/"
"""Begins the names of what MLflow measures of the machine by itself, which has steps of its own."""
_NUMBERS = f"""
    SELECT timestamp, step, key, value, is_nan FROM metrics
    WHERE run_uuid = ? AND key NOT LIKE '{_OF_THE_MACHINE}%' ORDER BY timestamp, rowid"""


class _Number(NamedTuple):
    """A number that was logged: when, in milliseconds, at which step, and under which name."""

    time: int
    step: int
    name: str
    value: float


@dataclass
class _Run:
    id: str
    name: str
    experiment: str
    start: int
    seed: str | None
    numbers: list[_Number] = field(default_factory=list)

    @property
    def stepless(self) -> bool:
        return all(number.step == 0 for number in self.numbers) and len({number.time for number in self.numbers}) > 1


def is_mlflows(database: sqlite3.Connection) -> bool:
    return {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")} >= _TABLES


def is_run_folder(folder: Path) -> bool:
    return (folder / _META).is_file() and (folder / "metrics").is_dir()


def is_of_deleted(folder: Path) -> bool:
    """Where MLflow keeps what was deleted."""
    return folder.name == _DELETED


def read_tables(database: sqlite3.Connection, path: Path) -> Reading:
    """The logs of the runs in a database.

    Raises:
        sqlite3.Error, TypeError, ValueError: it cannot be read.
    """
    rows = database.execute(_RUNS).fetchall()  # a cursor that is open keeps MLflow from writing
    runs = [
        _Run(str(run_id), str(name or run_id), str(experiment or ""), start or 0, seed, _numbers(database, run_id))
        for run_id, name, start, experiment, seed in rows
    ]
    return _reading(runs, path.name, path)


def _numbers(database: sqlite3.Connection, run_id: str) -> list[_Number]:
    return [
        _Number(int(time), int(step), str(name), math.nan if is_nan else _finite(float(value)))
        for time, step, name, value, is_nan in database.execute(_NUMBERS, (run_id,)).fetchall()
    ]


def _finite(value: float) -> float:
    return math.copysign(math.inf, value) if abs(value) >= _INFINITE else value


def read_mlflow_folders(folders: Sequence[Path], *, growing: bool) -> Reading:
    """The logs of the runs whose folders these are.

    Args:
        growing: they are being written, so that half a line at the end of a file is nothing to speak of.

    Raises:
        CurveFileError: a file in one says something else than MLflow writes.
    """
    reading = Reading()
    stores: dict[Path, list[_Run]] = {}
    for folder in folders:
        run = _run_of(folder.resolve(), growing=growing)
        if run is not None:
            stores.setdefault(folder.resolve().parent.parent, []).append(run)
    for store, runs in stores.items():
        reading.add(_reading(runs, store.name, store))
    return reading


def _run_of(folder: Path, *, growing: bool) -> _Run | None:
    """None for a run that was deleted."""
    told = _meta(folder)
    if told.get("lifecycle_stage", "active") != "active":
        return None
    experiment = _meta(folder.parent).get("name", "") if (folder.parent / _META).is_file() else ""
    seed = folder / "params" / _SEED
    name = str(told.get("run_name") or told.get("run_id") or folder.name)
    start = told.get("start_time")
    run = _Run(
        folder.name,
        name,
        str(experiment),
        start if isinstance(start, int) else 0,
        seed.read_text(encoding="utf-8", errors="replace") if seed.is_file() else None,
    )
    metrics = folder / "metrics"
    for file in sorted(path for path in metrics.rglob("*") if path.is_file()):
        name = file.relative_to(metrics).as_posix()
        if not name.startswith(_OF_THE_MACHINE):
            run.numbers += _lines_of(file, name, growing=growing)
    run.numbers.sort(key=lambda number: number.time)  # stable: of one name they stay as they were logged
    return run


def _meta(folder: Path) -> dict[str, Any]:
    path = folder / _META
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8", errors="replace"))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise CurveFileError("file", str(path), "it is no YAML", "copy it again") from error
    return {name: value for name, value in found.items() if _is_plain(value)} if isinstance(found, dict) else {}


def _is_plain(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _lines_of(file: Path, name: str, *, growing: bool) -> Iterable[_Number]:
    *lines, rest = file.read_text(encoding="utf-8", errors="replace").split("\n")
    if rest and not growing:
        lines.append(rest)
    for at, line in enumerate(lines, start=1):
        if line.strip():
            yield _number(line, name, f"{file.parent.name}/{file.name}, line {at}")


def _number(line: str, name: str, where: str) -> _Number:
    """`1795856862909 0.25 40`; what is behind these says which data set it is of."""
    try:
        time, value, *more = line.split()
        return _Number(int(time), int(more[0]) if more else 0, name, float(value))
    except ValueError as error:
        raise CurveFileError(where, short(line), "a time, a number and a step are needed", "copy it again") from error


def _reading(runs: Sequence[_Run], store: str, home: Path) -> Reading:
    logged = sorted((run for run in runs if run.numbers), key=lambda run: (run.start, run.id))
    without = len(runs) - len(logged)
    notes = [f"{store}: {without:,} run{'s' * (without != 1)} without a number"] if without else []
    names, told = each_of_its_seed(store, [_name(run) for run in logged], [_seed(run) for run in logged])
    return Reading([_log(run, name, home) for run, name in zip(logged, names, strict=True)], [*notes, *told])


def _name(run: _Run) -> str:
    return visible(run.name if run.experiment in ("", _DEFAULT) else f"{run.experiment}/{run.name}")


def _log(run: _Run, name: str, home: Path) -> Log:
    rows = []
    for (_, step), together in groupby(run.numbers, key=lambda number: (number.time, number.step)):
        cells: dict[str, Any] = {visible(number.name): number.value for number in together}
        if not run.stepless:
            cells["step"] = step
        rows.append(Row(f"{name}, step {step}", cells))
    return Log(name, home / run.id, rows, axes=("step",), seed=_seed(run), place=home)


def _seed(run: _Run) -> int | None:
    told = (run.seed or "").strip()
    return int(told) if told.isascii() and told.isdigit() and len(told) < 10 else None
