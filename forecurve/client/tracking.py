"""`init`, `log`, `finish` for your own training loop; `attach` for a loop that Forecurve launched."""

from __future__ import annotations

import json
import logging
import os
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from .api import Api
from .earlier import Earlier
from .errors import ApiError, ClientError
from .run import FINISH_S, Run
from .spool import Spool
from .transport import Transport

log_ = logging.getLogger("forecurve")

Mode = Literal["online", "offline", "disabled"]
DEFAULT_URL = "http://127.0.0.1:8400"

_current: Run | None = None


def init(
    name: str | None = None,
    *,
    project: str | None = None,
    recipe: Mapping[str, Any] | str | None = None,
    config: Mapping[str, Any] | None = None,
    unit: str | None = None,
    budget: float | None = None,
    url: str | None = None,
    token: str | None = None,
    mode: Mode = "online",
    directory: str | Path | None = None,
) -> Run:
    """Begin to report a run of your own; the first line of three.

        run = forecurve.init("my-run", unit="GPU-hours", budget=200)
        run.log_evaluation(step=100, compute=1.5, reward=0.41, prompts=512, samples=4)
        run.finish()

    Args:
        name, project: what the run is called; with a project it is `project/name`.
        recipe: a preset's name or a whole recipe, when the run follows one.
        config: anything worth keeping beside the spool; the service does not read it.
        unit: unit of every compute figure of the run; the recipe's, or GPU-hours when there is none.
        budget: compute the run may spend; the forecast is made for it.
        url, token: the service; else FORECURVE_URL and FORECURVE_TOKEN.
        mode: offline keeps everything on disk for `forecurve sync`; disabled drops everything.
        directory: where the spool is kept, `.forecurve` by default (or FORECURVE_DIR).

    Only rank 0 of a distributed job reports; the other ranks get a disabled run. When the service is away the run
    goes offline with a warning, so that training starts anyway.

    Raises:
        ApiError: the service refused the run: an unknown unit, a faulty recipe, no access.
    """
    global _current
    if mode not in ("online", "offline", "disabled"):
        raise ClientError(f"mode is {mode!r}; it is one of online, offline, disabled")
    if mode == "disabled" or os.environ.get("RANK", "0") not in ("", "0"):
        _current = Run(None, 1, spool=None)
        return _current
    root = Path(directory or os.environ.get("FORECURVE_DIR", ".forecurve"))
    asked = run_request(f"{project}/{name}" if project and name else name or project, recipe, unit, budget)
    meta = {
        "request": asked,
        "config": dict(config or {}),
        "created_at": datetime.now(UTC).isoformat(),
        "key": secrets.token_hex(16),
    }
    _current = _offline(root, meta) if mode == "offline" else _online(root, meta, url, token)
    return _current


def attach(directory: str | Path) -> Run:
    """Report for the run that this process was launched for.

    Reads FORECURVE_URL, FORECURVE_RUN, FORECURVE_ATTEMPT and FORECURVE_TOKEN. The spool is kept under `directory`,
    one folder per attempt; after a restart of the process the same reports go out under the same numbers, and what
    earlier attempts left there unsent is handed in by this one.

    Raises:
        ClientError: one of the variables is missing or wrong.
    """
    url, run_id, token = (_required(name) for name in ("FORECURVE_URL", "FORECURVE_RUN", "FORECURVE_TOKEN"))
    attempt = _attempt_number(_required("FORECURVE_ATTEMPT"))
    folder = Path(directory) / "spool"
    earlier = Earlier(folder, attempt, lambda number: Transport(url, token, run_id, number, handed_in_by=attempt))
    spool = Spool(folder / f"a{attempt}")
    return Run(run_id, attempt, spool=spool, transport=Transport(url, token, run_id, attempt), earlier=earlier)


def log(metrics: Mapping[str, Any], *, step: int, compute: float | None = None) -> None:
    """`Run.log` of the run that `init` began."""
    current().log(metrics, step=step, compute=compute)


def finish(outcome: str = "succeeded", reason: str | None = None, *, deadline_s: float = FINISH_S) -> None:
    """`Run.finish` of the run that `init` began."""
    global _current
    run = current()
    run.finish(outcome, reason, deadline_s=deadline_s)
    if run.finished:
        _current = None


def current() -> Run:
    """The run that `init` began; ClientError when there is none."""
    if _current is None:
        raise ClientError("no run was begun in this process; call forecurve.init(...) first")
    return _current


def run_request(
    name: str | None, recipe: Mapping[str, Any] | str | None, unit: str | None, budget: float | None
) -> dict[str, Any]:
    """The body of `POST /v1/runs` for an external run."""
    body: dict[str, Any] = {"executor": "external"}
    if unit or recipe is None:
        body["compute_unit"] = unit or "GPU-hours"
    if name:
        body["name"] = name
    if budget is not None:
        body["budget_compute"] = budget
    if isinstance(recipe, str):
        body["preset"] = recipe
    elif recipe is not None:
        body["recipe"] = dict(recipe)
    return body


def _online(root: Path, meta: dict[str, Any], url: str | None, token: str | None) -> Run:
    url = url or os.environ.get("FORECURVE_URL") or DEFAULT_URL
    token = token or os.environ.get("FORECURVE_TOKEN")
    try:
        created = Api(url, token).create_run(meta["request"], idempotency_key=meta["key"])
    except ApiError as error:
        if error.status is not None and error.status < 500:
            raise
        run = _offline(root, meta)
        log_.warning(
            "forecurve: %s is away (%s); the run is kept offline, later: forecurve sync %s",
            url,
            error.detail,
            run.directory and run.directory.parent,
        )
        return run
    run_id, attempt = created["id"], int(created.get("attempt") or 1)
    folder = root / run_id
    _write_meta(folder, meta | {"run_id": run_id, "attempt": attempt})
    return Run(
        run_id,
        attempt,
        spool=Spool(folder / f"a{attempt}"),
        transport=Transport(url, created["ingest_token"], run_id, attempt),
    )


def _offline(root: Path, meta: dict[str, Any]) -> Run:
    folder = root / f"offline-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(3)}"
    _write_meta(folder, meta | {"run_id": None, "attempt": 1})
    return Run(None, 1, spool=Spool(folder / "a1"))


def _write_meta(folder: Path, meta: dict[str, Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_text(json.dumps(meta, indent=2, default=repr) + "\n")


def _required(name: str) -> str:
    value = os.environ.get(name)
    if not value:
        raise ClientError(
            f"{name} is not set; Forecurve sets it for the jobs it launches. For your own loop use forecurve.init(...)"
        )
    return value


def _attempt_number(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise ClientError(f"FORECURVE_ATTEMPT is {text!r}; it must be a whole number of 1 or more")
    return number
