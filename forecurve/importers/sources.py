"""What a file or a folder is, by what is in it and not by its name; and the reader that it is for."""

from __future__ import annotations

import codecs
import io
import os
from pathlib import Path

from forecurve.curve_cells import CurveFileError

from .databases import databases_in, is_database, read_database
from .event_files import event_files_in, is_event_file, read_events
from .histories import read_history
from .logs import Reading
from .mlflow_stores import DATABASE, is_of_deleted, is_run_folder, read_mlflow_folders
from .tables import Sheet, json_of, json_rows, parquet_rows, sheet_of, sheet_rows, unfinished
from .trainer_states import is_trainer_state, newest_state, read_trainer_state
from .wandb_charts import is_chart, read_chart
from .wandb_files import is_wandb_file, read_wandb, wandb_files_in

_START = 4096  # bytes by which a file is known
_UTF16 = ("it is text in UTF-16, as what a spreadsheet calls Unicode text", "save it as CSV UTF-8")
_KNOWN = "name CSV, JSON, JSONL, Parquet, a trainer_state.json, TensorBoard's event files, W&B's or MLflow's"
_FOREIGN = {
    codecs.BOM_UTF16_LE: _UTF16,
    codecs.BOM_UTF16_BE: _UTF16,
    b"\x1f\x8b": ("it is packed", "unpack it"),
    b"PK\x03\x04": ("it is packed", "unpack it"),
}


def read_source(path: Path, metric: str | None, series: str | None, *, growing: bool) -> Reading:
    """The runs of a file or a folder.

    Args:
        metric: the metric asked for, where one is.
        series: the column of a table that names the run of a row, where one is asked for.
        growing: it is being written, so a line of CSV without its end may have half a number.

    Raises:
        CurveFileError: nothing here can be read; names it and the way out.
    """
    if not path.exists():
        raise CurveFileError("file", str(path), "no such file", "check the path")
    try:
        if path.is_dir():
            return _read_folder(path, growing=growing)
        return _read_file(path, metric, series, growing=growing)
    except OSError as error:
        raise CurveFileError("file", str(path), f"it cannot be read ({error.strerror})", "check the file") from error


def _read_file(path: Path, metric: str | None, series: str | None, *, growing: bool) -> Reading:
    with path.open("rb") as stream:
        start = stream.read(_START)
    if not start.strip():
        raise CurveFileError("file", path.name, "it is empty", "name a file that has something in it")
    if is_event_file(start):
        folder = path.resolve().parent
        return read_events(folder.name, path, [path], folder.parent)
    if is_wandb_file(start):
        return read_wandb([path], growing=growing)
    if is_database(start):
        return read_database(path)
    if start.startswith(b"PAR1"):
        return read_history(path, parquet_rows(path), series)
    _refuse_foreign(path, start)
    text, notes = _text_of(path)
    reading = _read_text(path, text, metric, series, growing=growing)
    return Reading(reading.logs, [*notes, *reading.notes])


def _read_text(path: Path, text: str, metric: str | None, series: str | None, *, growing: bool) -> Reading:
    if text.lstrip()[:1] in ("{", "["):
        return _read_json(path, text, series)
    sheet = sheet_of(path, text[: text.rfind("\n") + 1] if growing else text, growing=growing)
    reading = _read_sheet(path, sheet, metric, series)
    return Reading(reading.logs, [*sheet.notes, *reading.notes])


def _read_sheet(path: Path, sheet: Sheet, metric: str | None, series: str | None) -> Reading:
    if series is None and is_chart(sheet.header):
        return read_chart(path, sheet, metric)
    rows, notes = sheet_rows(path, sheet)
    reading = read_history(path, rows, series)
    return Reading(reading.logs, [*notes, *reading.notes])


def _read_json(path: Path, text: str, series: str | None) -> Reading:
    document, notes = json_of(path, text)
    if is_trainer_state(document):
        return read_trainer_state(path, document)
    reading = read_history(path, json_rows(path, document), series)
    return Reading(reading.logs, [*notes, *reading.notes])


def _refuse_foreign(path: Path, start: bytes) -> None:
    for mark, (told, way_out) in _FOREIGN.items():
        if start.startswith(mark):
            raise CurveFileError("file", path.name, told, way_out)
    if b"\0" in start:
        raise CurveFileError("file", path.name, "it is binary and none of the kinds that are read", _KNOWN)


def _text_of(path: Path) -> tuple[str, list[str]]:
    """The text of a file, and what was left out of it: a last line that ends within a character."""
    found = path.read_bytes()
    whole = found[: found.rfind(b"\n") + 1]
    try:
        return _decoded(found), []
    except UnicodeDecodeError as error:
        if error.reason == "unexpected end of data" and whole.strip():
            return _decoded(whole), [unfinished(path)]
        raise CurveFileError("file", path.name, f"it is no text in UTF-8 ({error})", _KNOWN) from error


def _decoded(found: bytes) -> str:
    """Lines end in `\\n`, however they did in the file."""
    return io.TextIOWrapper(io.BytesIO(found), encoding="utf-8-sig").read()


def _read_folder(folder: Path, *, growing: bool) -> Reading:
    """Every run below: folders with a Trainer's state or of MLflow, and of the others those with event files, W&B's
    files or trackers' databases."""
    reading = Reading()
    wandb: list[Path] = []
    mlflow: list[Path] = []
    names: list[str] = []
    links: list[Path] = []
    for place, below, files in os.walk(folder, onerror=_give_up):
        here = Path(place)
        state = newest_state(here)
        if state is not None:
            reading.add(_read_file(state, None, None, growing=False))
            below.clear()  # the event files of the same run are in there
            continue
        if is_run_folder(here):
            mlflow.append(here)
            below.clear()
            continue
        below[:] = sorted(name for name in below if not is_of_deleted(here / name))
        links += [here / name for name in below if _leads_out(here / name, folder)]
        names += [str(here / name) for name in files]
        wandb += wandb_files_in(here)
        for database in databases_in(here):
            reading.add(read_database(database))
        events = event_files_in(here)
        if events:
            top = folder.resolve()
            run, home = (top.name, top.parent) if here == folder else (here.relative_to(folder).as_posix(), top)
            reading.add(read_events(run, here, events, home))
    reading.add(read_wandb(wandb, growing=growing))
    reading.add(read_mlflow_folders(mlflow, growing=growing))
    if not reading.logs:
        raise _nothing_in(folder, names, links)
    if links:
        many = f"{len(links):,} links to folders elsewhere" if len(links) > 1 else "a link to a folder elsewhere"
        reading.notes.append(f"{folder.name} has {many}, not followed: name such a folder itself ({links[0]})")
    return reading


def _leads_out(place: Path, folder: Path) -> bool:
    """Whether it is a link to where the walk does not come by: what is behind it may be anything, and endless."""
    return place.is_symlink() and not place.resolve().is_relative_to(folder.resolve())


def _give_up(error: OSError) -> None:
    """A folder that cannot be looked into may have runs."""
    raise error


def _nothing_in(folder: Path, names: list[str], links: list[Path]) -> CurveFileError:
    way_out = "name a folder with TensorBoard's event files, W&B's or MLflow's, or a trainer_state.json, or a file"
    tables = sorted(name for name in names if name.endswith((".csv", ".jsonl", ".parquet")))
    database = folder.resolve().parent / DATABASE
    if database.is_file():
        way_out = f"the numbers of MLflow's runs are in {database}: name that"
    elif links:
        way_out = f"links to folders are not followed: name them one by one, such as {links[0]}"
    elif tables:
        way_out = f"name its tables one by one, such as {tables[0]}"
    return CurveFileError("file", str(folder), "a folder without logs", way_out)
