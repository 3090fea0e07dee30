"""How a run of your own starts to report: a new one or one that goes on, at a service or, while it is away, on disk."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .api import Api
from .asking import Asked
from .beginning import Reached
from .connecting import DEFAULT_URL
from .earlier import Earlier
from .errors import ApiError, ClientError
from .folder import RunFolder, new_attempt, prepare
from .http import checked_url
from .lock import InUse
from .patience import retried
from .resuming import AUTO, find, newest_date
from .run import Run
from .sameness import check_same
from .spool import Spool
from .transport import Transport

log = logging.getLogger("forecurve")

AWAY_S = 10.0
"""How long `init` tries a service that is away, as while it is restarted: a run that begins offline stays so."""
ANSWER_S = AWAY_S
"""How long `init` waits for one answer: of a service that takes the request and says nothing."""
SAY_AFTER_S = 2.0
"""From when on `init` says that it waits."""
_NOTHING_TO_GO_ON_WITH = ("over", "not-found")


class Start:
    """One call of `init`.

    Args:
        resume: as `init` takes it, checked.
    """

    def __init__(self, root: Path, asked: Asked, config: Any, resume: str | None):
        self._root, self._asked, self._config, self._resume = root, asked, config, resume

    def offline(self) -> Run:
        """Reports are kept on disk."""
        found = self._found()
        folder, spool = self._folder(found)
        try:
            _check_newest(folder)
        except ClientError:
            _withdraw(folder, spool)
            raise
        folder.write()
        return _offline(folder, spool)

    def online(self, url: str | None, token: str | None) -> Run:
        """Reports go to the service; to the disk while it is away."""
        found = self._found()
        known = found.url if found else None
        url = checked_url(url or os.environ.get("FORECURVE_URL") or known or DEFAULT_URL)
        with Api(url, token or os.environ.get("FORECURVE_TOKEN"), timeout_s=ANSWER_S) as api:
            try:
                return self._begun(api, found)
            except ApiError as error:
                if found is None or self._resume != AUTO or error.code not in _NOTHING_TO_GO_ON_WITH:
                    raise
                log.warning("forecurve: run %s does not go on (%s); a new one is begun", found.run_id, error.detail)
            return self._begun(api, None)

    def _found(self) -> RunFolder | None:
        return find(self._root, self._resume, self._asked.full_name) if self._resume else None

    def _begun(self, api: Api, found: RunFolder | None) -> Run:
        folder, spool = self._folder(found)
        try:
            reached = _bound(folder, api)
        except (ApiError, ClientError) as error:
            if isinstance(error, ApiError) and error.is_away:
                kept = f"the run is kept offline, later: {folder.sync_command}"
                log.warning("forecurve: %s is away (%s); %s", api.url, error.detail, kept)
                folder.keep()
                return _offline(folder, spool)
            _withdraw(folder, spool)
            raise
        if spool is None:
            folder.name_after_run()
        return _online(folder, spool, api.url, reached)

    def _folder(self, found: RunFolder | None) -> tuple[RunFolder, Spool | None]:
        """The folder of the run, with an attempt more that the service does not know.

        The spool of that attempt is open where the run was found: from here on no other process goes on with it. None
        for a new folder, which holds its lock until then and is named after its run yet.
        """
        if found is None:
            return self._new_folder(None if self._resume == AUTO else self._resume)
        project = None if found.name == self._asked.full_name else self._asked.project  # it may have been renamed since
        found.add(new_attempt(self._asked.next_attempt(), project, after=newest_date(self._root)))
        try:
            return found, found.open_newest()
        except InUse:
            if self._resume != AUTO:
                raise
            return self._new_folder(None)
        except OSError as error:
            if found.run_id is None:
                raise ClientError(f"{found.path}: it cannot be written ({error}); mend that, or copy it") from None
            return self._new_folder(found.run_id)

    def _new_folder(self, run_id: str | None) -> tuple[RunFolder, None]:
        return prepare(self._root, self._meta(run_id)), None

    def _meta(self, run_id: str | None) -> dict[str, Any]:
        body = self._asked.next_attempt() if run_id else self._asked.new_run()
        attempts = [new_attempt(body, self._asked.project, after=newest_date(self._root))]
        named: Mapping[str, Any] = {"name": self._asked.full_name, "config": self._config}
        return {**named, "url": None, "run_id": run_id, "attempts": attempts}


def _bound(folder: RunFolder, api: Api) -> Reached | None:
    """As `bind`, and refuses what a service that is away would refuse later."""
    try:
        with _waiting_is_said(api.url):
            return retried(lambda: folder.bind(api), AWAY_S)  # asks for no attempt twice
    except ApiError as error:
        if error.is_away:
            _check_newest(folder)
        raise


@contextmanager
def _waiting_is_said(url: str) -> Iterator[None]:
    """A line for whoever looks at a training that does not begin; by a thread, as one answer may be long in coming."""
    said = f"forecurve: waiting for {url}; the run begins offline after about {AWAY_S + ANSWER_S:.0f} s at most"
    timer = threading.Timer(SAY_AFTER_S, log.warning, args=(said,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _check_newest(folder: RunFolder) -> None:
    *before, newest = [attempt["request"] for attempt in folder.attempts]
    if before:
        check_same(before, newest, of=folder.path.name, is_known=folder.run_id is not None)


def _withdraw(folder: RunFolder, spool: Spool | None) -> None:
    """Leave nothing of an attempt that was refused."""
    if spool is None:
        folder.discard()
        return
    folder.take_back()
    spool.discard()


def _offline(folder: RunFolder, spool: Spool | None) -> Run:
    return Run(folder.run_id, len(folder.attempts), spool=spool or folder.open_newest())


def _online(folder: RunFolder, spool: Spool | None, url: str, reached: Reached | None) -> Run:
    run_id, number, token = str(folder.run_id), folder.newest["number"], folder.newest["ingest_token"]
    before = [(path, attempt["number"]) for path, attempt in zip(folder.spools, folder.attempts, strict=True)][:-1]
    transport = Transport(url, token, run_id, number)
    return Run(
        run_id,
        number,
        spool=spool or folder.open_newest(),
        transport=transport,
        earlier=Earlier(before, transport.handing_in),
        sync_later=folder.sync_command,
        reached=reached,
    )
