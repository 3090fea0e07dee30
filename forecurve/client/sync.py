"""Sending what was kept offline."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .api import Api
from .errors import ApiError, ClientError
from .spool import Spool
from .transport import Later, Refused, Transport


@dataclass(frozen=True)
class Synced:
    """What `sync` did with one run: reports taken, and reports refused (kept in rejected.jsonl)."""

    run_id: str
    sent: int
    refused: int


def sync(directory: Path, url: str, token: str | None) -> Synced:
    """Create the run that an offline directory stands for (once, however often this is called) and send its reports.

    Raises:
        ClientError: the directory holds no offline run.
        ApiError: the service refused the run, or went away; what is unsent stays on disk.
    """
    meta = _read_meta(directory)
    attempt = int(meta["attempt"])
    run_id, secret = _claim(directory, meta, url, token)
    spool = Spool(directory / f"a{attempt}")
    transport = Transport(url, secret, run_id, attempt)
    try:
        sent, refused = _send_all(spool, transport)
    finally:
        transport.close()
        spool.close()
    return Synced(run_id, sent, refused)


def _claim(directory: Path, meta: dict[str, Any], url: str, token: str | None) -> tuple[str, str]:
    """The run and its ingest token; the token is kept beside the spool, readable by its owner only."""
    if meta.get("run_id") and meta.get("ingest_token"):
        return str(meta["run_id"]), str(meta["ingest_token"])
    if meta.get("run_id"):
        raise ClientError(
            f"{directory} belongs to run {meta['run_id']}, which reported online; only offline runs are synced"
        )
    created = Api(url, token).create_run(meta["request"], idempotency_key=meta["key"])
    claimed = meta | {"run_id": created["id"], "ingest_token": created["ingest_token"]}
    path = directory / "run.json"
    path.touch(mode=0o600)
    path.chmod(0o600)
    path.write_text(json.dumps(claimed, indent=2) + "\n")
    return str(created["id"]), str(created["ingest_token"])


def _send_all(spool: Spool, transport: Transport) -> tuple[int, int]:
    sent = refused = 0
    while (entry := spool.first()) is not None:
        answer = transport.send(entry)
        if isinstance(answer, Later):
            raise ApiError(
                f"{answer.reason}; {spool.waiting} reports are still in {spool.directory}, run `forecurve sync` again",
                code="away",
            )
        if not isinstance(answer, Refused):
            spool.settle(entry)
            sent += 1
        elif not (answer.in_part and spool.divide(entry)):
            spool.reject(entry, answer.answer)
            refused += 1
    return sent, refused


def _read_meta(directory: Path) -> dict[str, Any]:
    path = directory / "run.json"
    try:
        meta = json.loads(path.read_text())
        meta["request"], meta["key"], meta["attempt"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ClientError(
            f"{directory} holds no offline run ({error}); it is a folder such as .forecurve/offline-..."
        ) from None
    assert isinstance(meta, dict)
    return meta
