"""The folder of a run that `init` began or goes on with: `run.json` has what `forecurve sync` needs, and a spool an
attempt lies beside it: `a1`, `a2`, ... in the order in which they were begun here.

`run.json`:

    name, config    as they were given
    url, run_id     of the service that has made the run; null until one has
    attempts        of each its `request` (what the service is asked with), the `key` that makes asking twice harmless,
                    its `number` and `ingest_token` once the service has begun it, and its `project` and `created_at`
"""

from __future__ import annotations

import json
import logging
import os
import secrets
import shlex
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

from .api import Api
from .beginning import Reached, begin
from .errors import ClientError
from .lock import WriterLock
from .spool import Spool

log = logging.getLogger("forecurve")

Meta = dict[str, Any]


def new_attempt(request: Mapping[str, Any], project: str | None, *, after: datetime | None = None) -> Meta:
    """An attempt that the service does not know yet, dated now, and later than `after` whatever the clock says."""
    now = datetime.now(UTC)
    created_at = now if after is None or now > after else after + timedelta(microseconds=1)
    known = {"request": dict(request), "project": project, "key": secrets.token_hex(16)}
    return known | {"number": None, "ingest_token": None, "created_at": created_at.isoformat()}


class RunFolder:
    """A folder and what its `run.json` says."""

    def __init__(self, path: Path, meta: Meta, above: Sequence[Path] = (), lock: WriterLock | None = None):
        """`above`: the folders around it that were made for it, the innermost first. `lock`: of its newest spool, where
        it is held before that is open."""
        self.path = path
        self._meta = meta
        self._above = above
        self._lock = lock
        self._written = 0  # attempts in `run.json`, once it was written here

    @classmethod
    def read(cls, path: Path) -> Self:
        """ClientError when the folder is none of a run."""
        try:
            meta = json.loads((path / "run.json").read_text())
            for attempt in meta["attempts"]:
                attempt["request"], attempt["key"], attempt["number"], attempt["ingest_token"], attempt["created_at"]
            meta["attempts"][-1]
            meta["run_id"], meta["url"], meta["name"]
        except (OSError, ValueError, LookupError, TypeError) as error:
            way_out = "name one such as .forecurve/offline-... or .forecurve/run_..."
            if not path.is_dir():
                raise ClientError(f"{path} is no folder; {way_out}") from None
            raise ClientError(f"{path} holds no run ({error}); {way_out}") from None
        return cls(path, meta)

    @property
    def run_id(self) -> str | None:
        return _text(self._meta["run_id"])

    @property
    def url(self) -> str | None:
        """The service that has made the run."""
        return _text(self._meta["url"])

    @property
    def name(self) -> str | None:
        """What the run was called when it was begun."""
        return _text(self._meta["name"])

    @property
    def config(self) -> Any:
        """What was to be kept beside the run when it was begun."""
        return self._meta.get("config")

    @property
    def attempts(self) -> Sequence[Meta]:
        attempts: list[Meta] = self._meta["attempts"]
        return attempts

    @property
    def newest(self) -> Meta:
        return self.attempts[-1]

    @property
    def is_known(self) -> bool:
        """The service has begun every attempt that was made here."""
        return len(self.begun) == len(self.attempts)

    @property
    def begun(self) -> Sequence[Meta]:
        """The attempts that the service has begun: they are older than those that it has not."""
        return [attempt for attempt in self.attempts if attempt["number"]]

    @property
    def spools(self) -> list[Path]:
        """Where the reports of each attempt are kept, oldest first."""
        return [self.path / f"a{place}" for place in range(1, len(self.attempts) + 1)]

    def open_newest(self) -> Spool:
        """The spool of the newest attempt.

        Raises:
            InUse: another process writes there.
            OSError: it cannot be written.
        """
        lock, self._lock = self._lock, None
        return Spool(self.spools[-1], lock=lock)

    def add(self, attempt: Meta) -> None:
        """One more attempt; nothing is written."""
        self._meta = self._meta | {"attempts": [*self.attempts, attempt]}

    def take_back(self) -> None:
        """Leave out the attempt added last, which was refused: who goes on later would be refused because of it."""
        self._meta = self._meta | {"attempts": list(self.attempts[:-1])}
        if self._written > len(self.attempts):
            self.keep()

    def bind(self, api: Api) -> Reached | None:
        """Have the service begin every attempt that it does not know: each once, however often this is called.

        Answers how far the run had come, of one that goes on.

        Raises:
            ApiError: it refused, could not be reached, or is no Forecurve.
            ClientError: the run is of another project.
        """
        reached = None
        for attempt in self.attempts:
            if not attempt["number"]:
                begun = begin(api, self.run_id, attempt)
                for earlier in self.attempts:
                    earlier["ingest_token"] = None  # of no use any more: only the newest attempt reports
                attempt |= {"number": begun.attempt, "ingest_token": begun.ingest_token}
                self._meta |= {"run_id": begun.run_id, "url": api.url}
                self.keep()
                reached = begun.reached
        return reached

    def keep(self) -> None:
        """Write down what is known, for the owner's eyes only; a disk that refuses is warned of."""
        try:
            self.write()
        except OSError as error:
            log.warning("forecurve: %s cannot be written (%s); `forecurve sync` cannot send it later", self.path, error)

    def write(self) -> None:
        """Replace `run.json`; a crash leaves the old one or the new one."""
        temporary = self.path / "run.json.tmp"
        temporary.unlink(missing_ok=True)
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(json.dumps(self._meta, indent=2, default=repr) + "\n")
        temporary.replace(self.path / "run.json")
        self._written = len(self.attempts)

    def name_after_run(self) -> None:
        """Give the folder the run's id as its name, where that is free."""
        named = self.path.with_name(str(self.run_id))
        try:
            self.path.rename(named)
        except OSError:
            return  # the name is for people, and for finding it again on this machine
        self.path = named

    def discard(self) -> None:
        """Remove the folder of a run that never began, and those made for it that nobody else uses."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock:
            self._lock.release()
        with suppress(OSError):
            for folder in self._above:
                _unhide(folder)
                folder.rmdir()

    @property
    def sync_command(self) -> str:
        """What sends the reports that are left here."""
        return f"forecurve sync {shlex.quote(str(self.path))}"


def _unhide(folder: Path) -> None:
    if [left.name for left in folder.iterdir()] == [".gitignore"]:
        (folder / ".gitignore").unlink()


def prepare(root: Path, meta: Meta) -> RunFolder:
    """Make a folder for a run that has none here; a temporary one, with a warning, when `root` cannot be written.

    Raises:
        ClientError: neither can be written.
    """
    try:
        return _made(root.absolute(), meta)  # a script may change its directory
    except (OSError, ValueError) as error:
        fault = error
    try:
        root_instead = Path(tempfile.mkdtemp(prefix="forecurve-"))
        folder = _made(root_instead, meta, [root_instead])
    except OSError as error:
        raise ClientError(
            f"directory is {str(root)!r}: it cannot be written ({fault}), and no temporary folder either ({error}); "
            "name another with directory= (or FORECURVE_DIR), or use mode='disabled'"
        ) from None
    log.warning("forecurve: directory %r cannot be written (%s); reports are kept in %s", str(root), fault, folder.path)
    return folder


def _hide_from_git(root: Path) -> None:
    """`run.json` has a token, and `git add -A` is quickly typed."""
    with suppress(OSError):
        (root / ".gitignore").write_text("*\n")


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _made(root: Path, meta: Meta, above: Sequence[Path] = ()) -> RunFolder:
    path = root / f"offline-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
    missing = [folder for folder in path.parents if not folder.exists()]
    path.mkdir(parents=True)
    if root in missing:
        _hide_from_git(root)
    (path / "a1").mkdir()
    lock = WriterLock(path / "a1")  # before another process that starts by this name can find `run.json`
    folder = RunFolder(path, meta, [*missing, *above], lock)
    folder.write()  # whatever keeps it from being written shows now, before there is a run
    return folder
