"""TensorBoard's event files: the scalars of the run whose folder they lie in, read by `tensorboard` itself."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from forecurve.curve_cells import CurveFileError
from forecurve.signs import visible

from .logs import Log, Reading, Row

_MARK = b"brain.Event:"  # in the first record of every event file
_STEP = "step"
_NAMED = re.compile(r"tfevents")
_FRAME = 12 + 4  # bytes around a record: its length, and checksums of both


def is_event_file(start: bytes) -> bool:
    """By how it begins."""
    return _MARK in start[:128]


def event_files_in(folder: Path) -> list[Path]:
    """In the order in which they were begun, which is in their names: a run that goes on begins another."""
    return sorted(path for path in folder.iterdir() if _NAMED.search(path.name) and path.is_file())


def read_events(run: str, path: Path, files: Sequence[Path], home: Path) -> Reading:
    """The log of a run: a row for what was logged at one step.

    Args:
        path: the run's folder, or its file where that was named alone.
        home: the folder in which the run has this name.

    Raises:
        CurveFileError: `tensorboard` is not installed, or a file cannot be read.
    """
    rows: list[Row] = []
    notes = []
    tags_of_scalars: set[str] = set()
    for file in files:
        size = _Size()
        rows += _rows(file, _scalars(file, size, tags_of_scalars))
        left = file.stat().st_size - size.whole
        if left > 0:
            notes.append(f"{file.name}: {left:,} bytes at its end are no whole record and left out")
    if not rows:
        return Reading(notes=[*notes, f"{run}: no scalars in its event files"])
    return Reading([Log(run, path, rows, axes=(_STEP,), place=home)], notes)


@dataclass
class _Size:
    """How many bytes of a file are whole records: what is behind them a run leaves that is killed while it writes."""

    whole: int = 0


def _rows(file: Path, scalars: Iterable[tuple[int, str, float]]) -> Iterator[Row]:
    """What follows one another with the same step, as one row."""
    step: int | None = None
    cells: dict[str, Any] = {}
    for at, tag, value in scalars:
        if at != step or tag in cells:
            if step is not None:
                yield Row(f"{file.name}, step {step}", cells | {_STEP: step})
            step, cells = at, {}
        cells[tag] = value
    if step is not None:
        yield Row(f"{file.name}, step {step}", cells | {_STEP: step})


def _scalars(file: Path, size: _Size, known: set[str]) -> Iterator[tuple[int, str, float]]:
    """Step, tag and value of every scalar, in the order of logging.

    Args:
        size: counts the bytes that are read.
        known: tags of scalars that are written as tensors, which only the first of each tag says.
    """
    tensorboard = _tensorboard(file)
    try:
        for record in tensorboard.records(str(file)).Load():
            size.whole += _FRAME + len(record)
            event = tensorboard.event_of(record)
            for value in event.summary.value:  # none, where the event is about something else
                number = _number(value, known, tensorboard)
                if number is not None:
                    yield int(event.step), visible(value.tag), float(str(number))
    except (OSError, ValueError, TypeError, tensorboard.damaged) as error:
        raise CurveFileError("file", file.name, f"it cannot be read ({error})", "copy it again") from error


def _number(value: Any, known: set[str], tensorboard: _Tensorboard) -> np.generic | None:
    """What a summary says, where it is a scalar: as torch writes it, or as TensorFlow 2 does.

    Its type says how many bits were written: 0.1 with 32 of them is 0.1 as text, and not 0.10000000149.
    """
    if value.HasField("simple_value"):
        return np.float32(value.simple_value)
    if value.metadata.plugin_data.plugin_name == "scalars":
        known.add(value.tag)
    if value.tag not in known or not value.HasField("tensor"):
        return None
    array = np.asarray(tensorboard.ndarray_of(value.tensor)).ravel()
    return array[0] if array.size == 1 and array.dtype.kind in "fiu" else None


class _Tensorboard(NamedTuple):
    """What is used of it."""

    records: Any
    event_of: Any
    ndarray_of: Any
    damaged: type[Exception]


def _tensorboard(file: Path) -> _Tensorboard:
    try:
        from google.protobuf.message import DecodeError
        from tensorboard.backend.event_processing.event_file_loader import RawEventFileLoader
        from tensorboard.compat.proto.event_pb2 import Event
        from tensorboard.util.tensor_util import make_ndarray
    except ImportError as error:
        way_out = "pip install 'forecurve[tensorboard]'"
        raise CurveFileError("file", file.name, "TensorBoard's event files need tensorboard", way_out) from error
    return _Tensorboard(RawEventFileLoader, Event.FromString, make_ndarray, DecodeError)
