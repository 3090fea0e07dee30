"""`trainer_state.json`, which the Trainer of transformers and those of TRL leave in every checkpoint.

Its `log_history` is all that the run logged: `{"step": 100, "epoch": 0.5, "loss": ...}`, and of evaluations
`{"step": 100, "eval_reward": ...}`. A run that was resumed goes on with the history of its checkpoint.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from forecurve.curve_cells import CurveFileError
from forecurve.science.checks import short

from .logs import Log, Reading, Row, cells_of

FILE = "trainer_state.json"
_CHECKPOINT = re.compile(r"checkpoint-(\d+)")


def is_trainer_state(document: Any) -> bool:
    return isinstance(document, Mapping) and isinstance(document.get("log_history"), list)


def read_trainer_state(path: Path, document: Mapping[str, Any]) -> Reading:
    """The log of the run whose state it is, called as its output folder."""
    rows = []
    for number, entry in enumerate(document["log_history"], start=1):
        where = f"{path.name}, entry {number} of log_history"
        if not isinstance(entry, Mapping):
            raise CurveFileError(where, short(entry), "an object is needed", "save the state again")
        rows.append(Row(where, cells_of(entry)))
    if not rows:
        raise CurveFileError("file", str(path), "its log_history is empty", "name the state of a run that has logged")
    output = _output_of(path)
    if output is None:
        return Reading([Log(path.stem, path, rows, axes=("step",))])
    return Reading([Log(output.name, path, rows, axes=("step",), place=output.parent)])


def _output_of(path: Path) -> Path | None:
    """The output folder of the run; None for a state that was copied elsewhere by another name."""
    folder = path.resolve().parent
    if path.name != FILE:
        return None
    return folder.parent if _CHECKPOINT.fullmatch(folder.name) else folder


def newest_state(folder: Path) -> Path | None:
    """The state of a run that went furthest: of an output folder, its checkpoints' or its own; None where none is."""
    states = [folder / FILE] if (folder / FILE).is_file() else []
    checkpoints = [one / FILE for one in folder.iterdir() if _CHECKPOINT.fullmatch(one.name) and (one / FILE).is_file()]
    states += sorted(checkpoints, key=_steps_of)[-1:]
    return max(states, key=_steps_of, default=None)


def _steps_of(state: Path) -> int:
    """How far it went: by the checkpoint's name, else as it says itself; -1 where it says nothing that can be read."""
    named = _CHECKPOINT.fullmatch(state.parent.name)
    if named:
        return int(named[1])
    try:
        return int(json.loads(state.read_text(encoding="utf-8"))["global_step"])
    except (OSError, ValueError, LookupError, TypeError):
        return -1
