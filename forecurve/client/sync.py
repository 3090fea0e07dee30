"""Sending what is left in a run's folder: all of an offline run, or what the service did not take of an online one."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .api import Api
from .errors import ApiError, ClientError
from .folder import Begun, Meta, begin, keep, read, sync_command
from .spool import Spool
from .transport import Later, Refused, Transport


@dataclass(frozen=True)
class Synced:
    """What `sync` did with one run: reports taken, and reports refused (kept in rejected.jsonl)."""

    run_id: str
    sent: int
    refused: int


def sync(directory: Path, url: str | None = None, token: str | None = None) -> Synced:
    """Send what a run left unsent in its folder. May be called again after a failure; nothing is doubled.

    Of an offline run the service knows nothing: it is created first, once, however often this is called.

    Args:
        url: the service; may be left out when it has made the run already (`kept_service`).
        token: needed to create the run.

    Raises:
        ClientError: the directory is no run's, or a living process still writes it.
        ApiError: the service refused the run, or went away; what is unsent stays on disk.
    """
    meta = read(directory)
    spool = _opened(directory / f"a{int(meta['attempt'])}")  # first: a run that still reports is not to be made twice
    try:
        return _sync(directory, meta, spool, url, token)
    finally:
        spool.close()


def kept_service(directory: Path) -> str | None:
    """The URL of the service that has made the run, when the folder has all that sending the rest to it needs."""
    meta = read(directory)
    return str(meta["url"]) if meta.get("url") and meta.get("ingest_token") else None


def _sync(directory: Path, meta: Meta, spool: Spool, url: str | None, token: str | None) -> Synced:
    url = url or meta.get("url")
    if not url:
        raise ClientError(f"url is missing: {directory} does not say which service to send to; give --url")
    begun = _begun(directory, meta, url, token)
    transport = Transport(url, begun.ingest_token, begun.run_id, begun.attempt)
    try:
        sent, refused = _send_all(spool, transport, sync_command(directory))
    finally:
        transport.close()
    return Synced(begun.run_id, sent, refused)


def _opened(directory: Path) -> Spool:
    try:
        return Spool(directory)
    except OSError as error:
        raise ClientError(f"directory is {directory}: it cannot be written ({error}); call this as its owner") from None


def _begun(directory: Path, meta: Meta, url: str, token: str | None) -> Begun:
    """The run and its ingest token, as kept in the folder or, for an offline run, as the service now makes them."""
    if meta.get("run_id") and meta.get("ingest_token"):
        return Begun(str(meta["run_id"]), int(meta["attempt"]), str(meta["ingest_token"]))
    if meta.get("run_id"):
        raise ClientError(
            f"{directory} belongs to run {meta['run_id']}, whose token was not kept there (an older client wrote it); "
            "its reports cannot be sent any more"
        )
    with Api(url, token) as api:
        begun = begin(api, meta)
    keep(directory, meta, begun, url)
    return begun


def _send_all(spool: Spool, transport: Transport, again: str) -> tuple[int, int]:
    sent = refused = 0
    while (entry := spool.first()) is not None:
        answer = transport.send(entry)
        if isinstance(answer, Later):
            raise ApiError(
                f"{transport.url} did not take a report ({answer.reason}); {spool.waiting} reports are still in "
                f"{spool.directory}, try again: {again} (--url, if the service has moved)",
                code="away",
            )
        if not isinstance(answer, Refused):
            spool.settle(entry)
            sent += 1
        elif not (answer.in_part and spool.divide(entry)):
            spool.reject(entry, answer.answer)
            refused += 1
    return sent, refused
