"""Which run a log is reported as already: from this folder, from another one, or from another machine."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, auto
from pathlib import Path
from typing import Any

from forecurve.client import Api
from forecurve.client.errors import ApiError
from forecurve.client.folder import RunFolder
from forecurve.client.lock import InUse, WriterLock
from forecurve.client.patience import PATIENCE_S
from forecurve.client.resuming import ended_with, holder_of, newest_of, root_of, runs_of, unsent_of
from forecurve.limits import OVER

from ..errors import CliError, bad_input
from . import patience

Points = set[tuple[float, float]]

_LOOKED_AT = 20  # runs of one name that the service is asked for
_SILENT = ("suspect", "lost")
_ANOTHER = "--name begins another run of it"


@dataclass(frozen=True)
class Followed:
    """A log whose run is called `name`; `points` are compute and reward of the evaluations in it.

    Args:
        is_named: the name was given; else the log gives it, and another log may have the same.
    """

    name: str
    source: Path
    points: Points
    is_named: bool

    @property
    def log(self) -> str:
        """What tells it from other logs on machines that see the same files."""
        return str(self.source.resolve())


@dataclass(frozen=True)
class Before:
    """What was reported of a log: the run to go on with, None for a new one; the evaluations that the service has of
    it, as far as it could be asked; `whole` says that there is nothing left to send."""

    resume: str | None = None
    points: frozenset[tuple[float, float]] = frozenset()
    whole: str | None = None


@contextmanager
def alone() -> Iterator[None]:
    """Whoever else begins to follow in this folder waits: the second is to find the run of the first."""
    lock = _begin_lock(root_of())
    try:
        yield
    finally:
        if lock is not None:
            lock.release()


def _begin_lock(root: Path) -> WriterLock | None:
    said = False
    while True:
        try:
            root.mkdir(parents=True, exist_ok=True)
            return WriterLock(root)
        except InUse as error:
            if not said:
                print(f"Waiting for {error.holder}, which begins to follow here", file=sys.stderr)
            said = True
        except OSError:  # what cannot be written is told where the run's folder is made
            return None
        patience.wait(1.0)


def before(followed: Followed, url: str, token: str | None) -> Before:
    """What was reported of this log before.

    Raises:
        CliError: it is being reported now, or is over and has less than the log by now; or the name is that of another
            log's run.
        ApiError: the service refused the question.
    """
    here = _here(followed)
    try:
        with Api(url, token, patience_s=PATIENCE_S) as api:
            return _asked(api, followed, here)
    except ApiError as error:
        if not error.is_away:
            raise
    if here is not None and ended_with(here):
        raise _not_known(here, f"{url} does not answer", "start that")
    return Before(_name_of(here))


def _here(followed: Followed) -> RunFolder | None:
    """The run of this log in this folder, else one of the same name that nobody reports for now."""
    runs = runs_of(root_of(), followed.name)
    ours = [run for run in runs if _log_of(run) == followed.log]
    for run in ours:
        if holder := holder_of(run):
            told = f"{_name_of(run)} is reported from it already, by {holder}"
            raise bad_input(f"SOURCE: {told}; let it, or end it and then try again; {_ANOTHER}")
    found = ours[0] if ours else newest_of(root_of(), followed.name)
    log = _log_of(found)
    if log == followed.log or found is None:
        return found
    if ended_with(found):
        return None
    if log is None or followed.is_named:
        return found
    way_out = f"give this one another name, or --name {shlex.quote(followed.name)} if it is that log"
    raise bad_input(f"--name: the run {followed.name} that was followed here goes on from {log}; {way_out}")


def _log_of(run: RunFolder | None) -> str | None:
    log = run.config.get("log") if run is not None and isinstance(run.config, dict) else None
    return None if log is None else str(log)


def _name_of(run: RunFolder | None) -> str | None:
    """What `resume` of `init` knows it by."""
    return None if run is None else run.run_id or run.path.name


def _asked(api: Api, followed: Followed, here: RunFolder | None) -> Before:
    """By the service: first of the run of this folder, then of others of the name, known by their evaluations."""
    if here is not None and here.run_id is None:
        if ended_with(here):
            raise _not_known(here, "no service has it yet", here.sync_command)
        return Before(_name_of(here))
    own = _known(api, here)
    if here is not None and own is not None and (found := _of_own(api, followed, here, own)):
        return found
    others = api.runs(name=followed.name.strip(), limit=_LOOKED_AT)
    likely = (run for run in others if own is None or run["id"] != own["id"])
    return next(filter(None, (_of_other(api, followed, run) for run in likely)), Before())


def _known(api: Api, here: RunFolder | None) -> Mapping[str, Any] | None:
    try:
        return None if here is None or here.run_id is None else api.run(here.run_id)
    except ApiError as error:
        if error.code != "not-found":
            raise
        return None


def _of_own(api: Api, followed: Followed, here: RunFolder, run: Mapping[str, Any]) -> Before | None:
    """None for a file that was begun anew under its name, as for another run: it has other evaluations."""
    ended = ended_with(here)
    if ended and (unsent := unsent_of(here)):
        raise _not_known(here, f"{unsent} of its reports were not sent", here.sync_command)
    state = _state(api, run)
    if ended or state is _State.OVER:
        return _of_ended(followed, run, _points(api, run))
    if run["attempt"] > here.newest["number"] and state is _State.REPORTED:
        raise bad_input(f"SOURCE: {run['id']} went on elsewhere and is being reported; {_ANOTHER}")
    return Before(run["id"], frozenset(_points(api, run)))


def _of_other(api: Api, followed: Followed, run: Mapping[str, Any]) -> Before | None:
    """None where it is not sure to be of the same log. Its first evaluation may well be that of another run, which
    began with the same model."""
    if run["executor"] != "external" or (run["last_compute"], run["last_reward"]) not in followed.points:
        return None
    there = _points(api, run)
    if len({reward for _, reward in there}) < 2 or not there <= followed.points:
        return None
    state = _state(api, run)
    if state is _State.OVER:
        return _of_ended(followed, run, there)
    if state is _State.REPORTED:
        told = f"{run['id']} is being reported and has {len(there)} of these {len(followed.points)} evaluations"
        raise bad_input(f"SOURCE: {told}; let it, or end it and then try again; {_ANOTHER}")
    return Before(run["id"], frozenset(there))


def _of_ended(followed: Followed, run: Mapping[str, Any], there: Points) -> Before | None:
    """Of a run that is over: another run of the same would count it twice. Refused where there is more by now."""
    if not there or not there <= followed.points:
        return None
    told = f"{run['id']} is over and has {len(there)} of these {len(followed.points)} evaluations"
    if there != followed.points:
        raise bad_input(f"SOURCE: {told}; --name begins another run of them")
    return Before(whole=told)


def _points(api: Api, run: Mapping[str, Any]) -> Points:
    return {(item["compute"], item["reward"]) for item in api.evaluations(run["id"])["items"]}


class _State(Enum):
    """Of a run, as far as the service has heard."""

    OVER = auto()
    REPORTED = auto()
    SILENT = auto()


def _state(api: Api, run: Mapping[str, Any]) -> _State:
    newest = next(api.attempts(run["id"], limit=1), None)
    outcome = newest["outcome"] if newest else None
    if run["status"] in OVER or outcome not in (None, "lost"):  # what it said last is acted on a little later
        return _State.OVER
    return _State.SILENT if outcome or run["status"] in _SILENT else _State.REPORTED


def _not_known(here: RunFolder, why: str, way_out: str) -> CliError:
    """What it has cannot be told, and a second run of it would count it twice."""
    told = f"the run of it that is kept in {here.path} is over, and {why}"
    return bad_input(f"SOURCE: {told}; {way_out} and then try again; {_ANOTHER}")
