"""The folder of a run that `init` began: `run.json` has what `forecurve sync` needs, and the spool lies beside it."""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import shlex
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from .api import Api
from .errors import ApiError, ClientError
from .spool import Spool

log = logging.getLogger("forecurve")

Meta = dict[str, Any]


@dataclass(frozen=True)
class Begun:
    """A run that the service has made, and the token for its reports."""

    run_id: str
    attempt: int
    ingest_token: str


def prepare(root: Path, meta: Meta) -> Path:
    """Make a folder for a run that the service does not know yet; a temporary one, with a warning, when `root` cannot
    be written.

    Raises:
        ClientError: neither can be written.
    """
    try:
        return _made(root.absolute(), meta)  # a script may change its directory
    except (OSError, ValueError) as error:
        fault = error
    try:
        folder = _made(Path(tempfile.mkdtemp(prefix="forecurve-")), meta)
    except OSError as error:
        raise ClientError(
            f"directory is {str(root)!r}: it cannot be written ({fault}), and no temporary folder either ({error}); "
            "name another with directory= (or FORECURVE_DIR), or use mode='disabled'"
        ) from None
    log.warning("forecurve: directory %r cannot be written (%s); reports are kept in %s", str(root), fault, folder)
    return folder


def adopt(folder: Path, meta: Meta, begun: Begun, url: str) -> Path:
    """Name a folder after its run, and keep there what is needed to send the rest later."""
    named = folder.with_name(begun.run_id)
    try:
        folder.rename(named)
    except OSError:
        named = folder  # the name is for people only
    try:
        keep(named, meta, begun, url)
    except OSError as error:
        log.warning("forecurve: %s cannot be written (%s); `forecurve sync` cannot send it later", named, error)
    return named


def discard(folder: Path) -> None:
    """Remove the folder of a run that never began."""
    shutil.rmtree(folder, ignore_errors=True)


def begin(api: Api, meta: Meta) -> Begun:
    """Have the service make the run: once, however often this is called with the same `meta`.

    Raises:
        ApiError: it refused, could not be reached, or is no Forecurve.
    """
    created = api.create_run(meta["request"], idempotency_key=meta["key"])
    run_id, token, attempt = created.get("id"), created.get("ingest_token"), created.get("attempt") or 1
    if not (isinstance(run_id, str) and re.fullmatch(r"[\w-]+", run_id) and isinstance(token, str) and token):
        raise ApiError(
            f"url is {api.url}, which answered something else than a new run: it is no Forecurve; give the address "
            "that `forecurve up` shows (argument url, --url or FORECURVE_URL)",
            code="not-forecurve",
        )
    return Begun(run_id, int(attempt), token)


def keep(folder: Path, meta: Meta, begun: Begun, url: str) -> None:
    """Write down whose reports these are, and the token that they need; for the owner's eyes only."""
    known = {"run_id": begun.run_id, "attempt": begun.attempt, "ingest_token": begun.ingest_token, "url": url}
    _write(folder, meta | known)


def read(folder: Path) -> Meta:
    """What `run.json` says; ClientError when the folder is none of a run."""
    try:
        meta = json.loads((folder / "run.json").read_text())
        meta["request"], meta["key"], int(meta["attempt"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ClientError(
            f"{folder} holds no run ({error}); it is a folder such as .forecurve/offline-... or .forecurve/run_..."
        ) from None
    assert isinstance(meta, dict)
    return meta


def sync_command(folder: Path) -> str:
    """What sends the reports that are left in a folder."""
    return f"forecurve sync {shlex.quote(str(folder))}"


def _made(root: Path, meta: Meta) -> Path:
    folder = root / f"offline-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
    folder.mkdir(parents=True)
    _write(folder, meta | {"run_id": None, "attempt": 1})
    Spool(folder / "a1").close()  # whatever keeps it from being written shows now, before there is a run
    return folder


def _write(folder: Path, meta: Mapping[str, Any]) -> None:
    """Replace `run.json`; a crash leaves the old one or the new one."""
    temporary = folder / "run.json.tmp"
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(json.dumps(meta, indent=2, default=repr) + "\n")
    temporary.replace(folder / "run.json")
