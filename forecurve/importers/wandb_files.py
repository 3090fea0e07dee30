"""W&B's own files, which lie in the folder `wandb/` of a training: all that a run logged, also while it goes on.

A file has the run's name, its configuration and a record for each `log`. Numbers of field and message are those of
`wandb_internal.proto`. Numbers that were logged inside others are named as W&B's pages name them: `eval.math.acc`.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import Any

from forecurve.curve_cells import CurveFileError
from forecurve.signs import visible

from .logs import Log, Reading, Row, is_finite, is_number
from .wandb_records import HEAD, DamagedFile, Records, fields_of

_HISTORY, _CONFIG, _RUN = 2, 5, 17  # of a record
_RUN_ID, _RUN_CONFIG, _RUN_NAME, _RUN_START = 1, 4, 8, 17  # of a run
_UPDATE = 1  # of a configuration
_ITEM, _STEP = 1, 2  # of a history
_KEY, _NESTED_KEY, _INTEGER, _NUMBER, _VALUE_JSON = 1, 2, 5, 6, 16  # of an item of either
_TYPE = "_type"  # in a value that is an object of W&B
_SEED = "seed"


def is_wandb_file(start: bytes) -> bool:
    """By how it begins."""
    return start.startswith(HEAD[:4])


def wandb_files_in(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("run-*.wandb") if path.is_file())


def read_wandb(files: Sequence[Path], *, growing: bool) -> Reading:
    """The logs of the runs in these files.

    A run that was resumed has several files, of which each goes on where the one before ended. Runs of one name whose
    configurations tell a seed each are seeds of one series.

    Args:
        growing: they are being written, so that half a record at the end is nothing to speak of.

    Raises:
        CurveFileError: a file cannot be read.
    """
    reading = Reading()
    parts = [_read(file, reading.notes, growing=growing) for file in files]
    runs: dict[str, _Run] = {}
    for part in sorted(parts, key=attrgetter("start")):
        known = runs.setdefault(part.id, part)
        if known is not part:
            known.go_on(part)
    reading.logs = [_log(run) for run in runs.values() if run.rows]
    reading.notes += [f"{run.file.name}: no numbers are logged in it" for run in runs.values() if not run.rows]
    return reading


@dataclass
class _Run:
    """What a file says of a run.

    Attributes:
        file: the first of its files.
        id: which run it is.
        name: as a person gave it; empty where nobody did, for W&B makes one up only when it is sent there.
        start: when it was begun, in seconds and nanoseconds.
        seeds: numbers of its configuration that are called `seed`, by their names.
        rows: what it logged.
    """

    file: Path
    id: str
    name: str = ""
    start: tuple[int, int] = (0, 0)
    seeds: dict[str, float] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)

    def go_on(self, later: _Run) -> None:
        self.name = later.name or self.name
        self.seeds |= later.seeds
        self.rows += later.rows


def _log(run: _Run) -> Log:
    told = run.seeds.get(_SEED, math.nan)
    seed = int(told) if is_finite(told) and float(told).is_integer() else None
    return Log(
        run.name or run.id, run.file, [Row(row.where, {**run.seeds, **row.cells}) for row in run.rows], seed=seed
    )


def _read(file: Path, notes: list[str], *, growing: bool) -> _Run:
    run = _Run(file, file.stem.removeprefix("run-"))
    try:
        with file.open("rb") as stream:
            records = Records(stream)
            for record in records:
                _take(run, record)
            left = os.fstat(stream.fileno()).st_size - records.whole
    except DamagedFile as error:
        raise CurveFileError("file", file.name, f"it is damaged: {error}", "copy it again") from error
    if left > 0 and not growing:
        notes.append(f"{file.name}: {left:,} bytes at its end are no whole record and left out")
    return run


def _take(run: _Run, record: bytes) -> None:
    """What a record says: who the run is, how it is configured, or what it logged."""
    for number, value in fields_of(record):
        if not isinstance(value, bytes):
            continue
        if number == _HISTORY:
            cells = dict(_numbers(value, _ITEM))
            if cells:
                at = cells.setdefault("_step", _first_number(value, _STEP))
                run.rows.append(Row(f"{run.file.name}, _step {at}", cells))
        elif number == _RUN:
            _take_run(run, value)
        elif number == _CONFIG:
            _take_config(run, value)


def _take_run(run: _Run, message: bytes) -> None:
    for number, value in fields_of(message):
        if not isinstance(value, bytes):
            continue
        if number == _RUN_ID:
            run.id = _text(value)
        elif number == _RUN_NAME:
            run.name = _text(value)
        elif number == _RUN_START:
            seconds, nanoseconds = (dict(fields_of(value)).get(at, 0) for at in (1, 2))
            run.start = (int(seconds), int(nanoseconds))
        elif number == _RUN_CONFIG:
            _take_config(run, value)


def _take_config(run: _Run, message: bytes) -> None:
    told = _numbers(message, _UPDATE)
    run.seeds |= {name: number for name, number in told if name.rpartition(".")[2] == _SEED}


def _first_number(message: bytes, wanted: int) -> int:
    """The first field of an inner message that is a whole number, 0 where it is left out, as protobuf does with 0."""
    inner = next((value for number, value in fields_of(message) if number == wanted), b"")
    return int(dict(fields_of(inner)).get(1, 0)) if isinstance(inner, bytes) else 0


def _numbers(message: bytes, wanted: int) -> Iterator[tuple[str, float]]:
    """Name and value of every number among the items of a message; pictures, histograms and the like have none."""
    items = [_item(value) for number, value in fields_of(message) if number == wanted and isinstance(value, bytes)]
    objects = {path[:-1] for path, _ in items if path[-1:] == (_TYPE,)}
    for path, value in items:
        if not any(path[:depth] in objects for depth in range(1, len(path))):
            yield from _flat(path, value)


def _flat(path: tuple[str, ...], value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, dict) and _TYPE not in value:
        for name, inner in value.items():
            yield from _flat((*path, name), inner)
    elif is_number(value) and not isinstance(value, str):
        yield _name(path), value


@lru_cache(maxsize=4096)  # a run logs the same names over and over
def _name(path: tuple[str, ...]) -> str:
    return visible(".".join(path))


def _item(message: bytes) -> tuple[tuple[str, ...], Any]:
    """The path of an item's name, and its value."""
    path: list[str] = []
    value: Any = None
    for number, told in fields_of(message):
        if number in (_KEY, _NESTED_KEY) and isinstance(told, bytes):
            path.append(_text(told))
        elif number == _VALUE_JSON and isinstance(told, bytes):
            value = _parsed(told)
        elif number == _NUMBER and isinstance(told, bytes):
            (value,) = struct.unpack("<d", told)
        elif number == _INTEGER and isinstance(told, int):
            value = (told >> 1) ^ -(told & 1)  # the sign is the last bit
    return tuple(path), value


def _parsed(text: bytes) -> Any:
    """What JSON says, but for lists, which are no numbers and may be long."""
    if text[:1] == b"[":
        return None
    try:
        return json.loads(_text(text))
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"a value in it is no JSON ({text[:20]!r})") from error


def _text(value: bytes) -> str:
    return value.decode("utf-8", errors="replace")
