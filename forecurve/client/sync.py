"""Sending what is left in a run's folder: all of an offline run, or what the service did not take of an online one."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

from .api import Api
from .errors import ApiError, ClientError
from .folder import Meta, RunFolder
from .patience import PATIENCE_S, Patience
from .spool import Entry, Spool
from .transport import Answer, Later, Refused, Transport
from .values import reports

_ASKS_AMISS = (400, 422)


@dataclass(frozen=True)
class Synced:
    """What `sync` did with one run: reports taken, and reports refused.

    Attributes:
        refusal: what the service said of the last one refused.
        kept_in: the files that keep what was refused, now or before.
    """

    run_id: str
    sent: int
    refused: int
    refusal: str | None = None
    kept_in: tuple[Path, ...] = ()


def sync(directory: Path, url: str | None = None, token: str | None = None) -> Synced:
    """Send what a run left unsent in its folder. May be called again after a failure; nothing is doubled.

    Of an offline run the service knows nothing: it is created first, and attempts that were begun offline are begun
    there, once, however often this is called.

    Args:
        url: the service; may be left out when it has made the run already (`kept_service`).
        token: needed to create the run.

    Raises:
        ClientError: the directory is no run's, or a living process still writes it.
        ApiError: the service refused the run, or went away; what is unsent stays on disk. Where it refused an attempt
            for what that asks, what the attempts before it left was sent.
    """
    folder = RunFolder.read(directory)
    with ExitStack() as opened:  # first: a run that still reports is not to be made twice
        spools = [opened.enter_context(closing(_opened(path))) for path in folder.spools]
        return _sync(folder, spools, url, token)


def kept_service(directory: Path) -> str | None:
    """The URL of the service that has made the run, when the folder has all that sending the rest to it needs."""
    folder = RunFolder.read(directory)
    return folder.url if folder.is_known else None


def _sync(folder: RunFolder, spools: Sequence[Spool], url: str | None, token: str | None) -> Synced:
    url = url or folder.url
    if not url:
        raise ClientError(f"url is missing: {folder.path} does not say which service to send to; give --url")
    refusal = None if folder.is_known else _bound(folder, url, token)
    sent, refusals = 0, list[str]()
    for attempt, spool in zip(folder.begun, spools, strict=refusal is None):
        with closing(_door(folder, attempt, url)) as transport:
            taken, refused = _send_all(spool, transport, folder.sync_command)
        sent, refusals = sent + taken, refusals + refused
    if refusal:
        raise refusal
    kept_in = tuple(spool.rejected for spool in spools if spool.rejected.exists())
    return Synced(str(folder.run_id), sent, len(refusals), refusals[-1] if refusals else None, kept_in)


def _bound(folder: RunFolder, url: str, token: str | None) -> ApiError | ClientError | None:
    """Have the service begin what it does not know; why it does not, where that is due to what an attempt asks for:
    what attempts before that one hold is not to wait for it."""
    with Api(url, token, patience_s=PATIENCE_S) as api:
        try:
            folder.bind(api)
        except ApiError as error:
            if error.status not in _ASKS_AMISS:
                raise
            return error
        except ClientError as error:
            return error
    return None


def _door(folder: RunFolder, attempt: Meta, url: str) -> Transport:
    """The way in for the reports of an attempt: the newest hands in what those before it have left."""
    newest = folder.begun[-1]
    by = newest["number"] if attempt is not newest else None
    return Transport(url, newest["ingest_token"], str(folder.run_id), attempt["number"], handed_in_by=by)


def _opened(directory: Path) -> Spool:
    try:
        return Spool(directory)
    except OSError as error:
        raise ClientError(f"directory is {directory}: it cannot be written ({error}); call this as its owner") from None


def _send_all(spool: Spool, transport: Transport, again: str) -> tuple[int, list[str]]:
    """How many reports were taken, and why each of the others was not."""
    sent, refusals = 0, []
    while (entry := spool.first()) is not None:
        answer = _answer_in_time(transport, entry)
        if isinstance(answer, Later):
            when = "" if answer.after_s is None else f" in {answer.after_s:.0f} s"
            raise ApiError(
                f"{transport.url} did not take a report ({answer.reason}); {reports(spool.waiting)} still in "
                f"{spool.directory}, try again{when}: {again} (--url, if the service has moved)",
                code="away",
            )
        if not isinstance(answer, Refused):
            spool.settle(entry)
            sent += 1
        elif not (answer.in_part and spool.divide(entry)):
            spool.reject(entry, answer.answer)
            refusals.append(answer.detail)
    return sent, refusals


def _answer_in_time(transport: Transport, entry: Entry) -> Answer:
    """The answer to a report; where it is to come later and the service says when, that is waited for with patience."""
    patience = Patience(PATIENCE_S)
    while True:
        answer = transport.send(entry)
        if not isinstance(answer, Later) or not patience.waits(answer.after_s, answer.reason):
            return answer
