"""Which folder of this machine belongs to the run that is to go on."""

from __future__ import annotations

import json
import logging
import os
import re
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from forecurve.limits import EARLIEST, LATEST

from .errors import ClientError
from .folder import RunFolder
from .lock import InUse, WriterLock
from .spool import Spool

log = logging.getLogger("forecurve")

AUTO = "auto"
"""The run of this name that was begun last in this directory, when it is not over; else a new one."""

_NAMED = re.compile(r"(run|offline)[_-][\w-]+", re.ASCII)


def root_of(directory: str | Path | None = None) -> Path:
    """Where the folders of runs are kept."""
    return Path(os.path.expanduser(directory or os.environ.get("FORECURVE_DIR") or ".forecurve"))


def check_resume(resume: Any) -> None:
    """ClientError when `resume` can name no run."""
    if resume is None or resume == AUTO or (isinstance(resume, str) and _NAMED.fullmatch(resume)):
        return
    takes = f"{AUTO!r}, the id of a run (run_...), or the folder of one that was begun offline (offline-...)"
    raise ClientError(f"resume is {resume!r}; it must be {takes}")


def find(root: Path, resume: str, name: str | None) -> RunFolder | None:
    """The folder of the run that `resume` means; None when this machine has none.

    Raises:
        ClientError: a run that only a folder could tell of has none here, or has ended.
        InUse: another process reports for it.
    """
    if resume == AUTO:
        newest = newest_of(root, name)
        return None if newest is None or ended_with(newest) else newest
    folder = next((each for each in _folders(root.absolute()) if resume in (each.run_id, each.path.name)), None)
    if folder is None:
        if resume.startswith("offline"):
            raise ClientError(f"resume is {resume!r}, and there is no such folder in {root}; name another directory")
        return None
    _check_free(folder)
    ended = ended_with(folder)
    if ended:
        message = f"resume is {resume!r}, a run that has ended ({ended}) and stays so; begin a new one"
        raise ClientError(message)
    return folder


def ended_with(folder: RunFolder) -> str | None:
    """The outcome that the newest attempt reported, when nothing can come after it."""
    outcomes = list(_outcomes(folder.spools[-1] / "queue.jsonl"))
    return outcomes[-1] if outcomes and outcomes[-1] != "lost" else None


def newest_of(root: Path, name: str | None) -> RunFolder | None:
    """Of the runs of this name that no living process reports for, the one begun last."""
    return next((folder for folder in runs_of(root, name) if holder_of(folder) is None), None)


def runs_of(root: Path, name: str | None) -> list[RunFolder]:
    """The runs of this name, first the one begun last."""
    mine = [folder for folder in _folders(root.absolute()) if folder.name == name]
    return sorted(mine, key=lambda folder: _date(folder.newest["created_at"]) or EARLIEST, reverse=True)


def newest_date(root: Path) -> datetime | None:
    """When the run begun last was, by the clock of that time: what is begun now is to be found before it."""
    dates = [date for folder in _folders(root.absolute()) if (date := _date(folder.newest["created_at"]))]
    return max(dates, default=None)


def _date(told: Any) -> datetime | None:
    """None for what is no date that anything could come after."""
    try:
        date = datetime.fromisoformat(told).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        return None
    return date if date < LATEST else None


def holder_of(folder: RunFolder) -> str | None:
    """The living process that reports for a run."""
    try:
        _check_free(folder)
    except InUse as error:
        return error.holder
    return None


def unsent_of(folder: RunFolder) -> int:
    """Reports that the service has not taken, of a run that no living process reports for."""
    waiting = 0
    for path in folder.spools:
        if path.is_dir():
            with suppress(OSError), closing(Spool(path)) as spool:
                waiting += spool.waiting
    return waiting


def _folders(root: Path) -> Iterator[RunFolder]:
    for path in root.glob("*/run.json"):
        with suppress(ClientError):
            yield RunFolder.read(path.parent)


def _check_free(folder: RunFolder) -> None:
    """InUse when a living process writes the newest attempt."""
    try:
        WriterLock(folder.spools[-1]).release()
    except OSError:  # what cannot be written is found out where it is to be
        if not folder.path.exists():
            raise InUse(folder.path, "a process that has just given the folder its run's name") from None


def _outcomes(queue: Path) -> Iterator[str]:
    try:
        with queue.open("rb") as file:
            for line in file:
                if b'"kind":"outcome"' in line:
                    with suppress(ValueError, LookupError, TypeError):
                        yield str(json.loads(line)["body"]["outcome"])
    except OSError:
        return
