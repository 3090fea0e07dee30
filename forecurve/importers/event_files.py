"""TensorBoard's event files: the scalars of the run whose folder they lie in, read by `tensorboard` itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from forecurve.curve_cells import CurveFileError
from forecurve.signs import visible

from .logs import Log, Reading, Row

_MARK = b"brain.Event:"  # in the first record of every event file
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
    for file in files:
        rows += _rows_of(file)
        left = _bytes_left(file)
        if left:
            notes.append(f"{file.name}: {left:,} bytes at its end are no whole record and left out")
    if not rows:
        return Reading(notes=[*notes, f"{run}: no scalars in its event files"])
    return Reading([Log(run, path, rows, axes=("step",), place=home)], notes)


def _rows_of(file: Path) -> Iterator[Row]:
    step: int | None = None
    cells: dict[str, Any] = {}
    for at, tag, value in _scalars(file):
        if at != step or tag in cells:
            if step is not None:
                yield Row(f"{file.name}, step {step}", {"step": step} | cells)
            step, cells = at, {}
        cells[tag] = value
    if step is not None:
        yield Row(f"{file.name}, step {step}", {"step": step} | cells)


def _scalars(file: Path) -> Iterator[tuple[int, str, float]]:
    """Step, tag and value of every scalar, in the order of logging, old ways of writing them among them."""
    tensorboard = _tensorboard(file)
    try:
        for event in tensorboard.events(str(file)).Load():
            for value in event.summary.value:  # none, where the event is about something else
                if value.metadata.data_class == tensorboard.scalar:
                    yield int(event.step), visible(value.tag), _number(tensorboard.ndarray_of(value.tensor))
    except (OSError, ValueError, TypeError, tensorboard.damaged) as error:
        raise CurveFileError("file", file.name, f"it cannot be read ({error})", "copy it again") from error


def _number(array: Any) -> float:
    """Most are written with 32 bits: what was 0.1 is 0.1 here, and not 0.10000000149."""
    return float(str(array.ravel()[0]))


def _bytes_left(file: Path) -> int:
    """Bytes behind the last record that is whole, as a run leaves them that is killed while it writes."""
    return file.stat().st_size - sum(_FRAME + len(record) for record in _tensorboard(file).records(str(file)).Load())


class _Tensorboard(NamedTuple):
    """What is used of it."""

    events: Any
    records: Any
    ndarray_of: Any
    scalar: int
    damaged: type[Exception]


def _tensorboard(file: Path) -> _Tensorboard:
    try:
        from google.protobuf.message import DecodeError
        from tensorboard.backend.event_processing.event_file_loader import EventFileLoader, RawEventFileLoader
        from tensorboard.compat.proto.summary_pb2 import DATA_CLASS_SCALAR
        from tensorboard.util.tensor_util import make_ndarray
    except ImportError as error:
        way_out = "pip install 'forecurve[tensorboard]'"
        raise CurveFileError("file", file.name, "TensorBoard's event files need tensorboard", way_out) from error
    return _Tensorboard(EventFileLoader, RawEventFileLoader, make_ndarray, DATA_CLASS_SCALAR, DecodeError)
