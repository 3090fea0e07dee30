"""`init`, `log`, `finish` for your own training loop; `attach` for a loop that Forecurve launched."""

from __future__ import annotations

import json
import logging
import os
import reprlib
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from types import NoneType
from typing import Any, Literal

from forecurve.limits import LEAST_COMPUTE, MOST_COMPUTE, is_compute

from .api import Api
from .earlier import Earlier
from .errors import ApiError, ClientError
from .folder import Meta, adopt, begin, discard, prepare, sync_command
from .http import checked_url
from .run import FINISH_S, Run
from .spool import Spool
from .transport import Transport
from .values import as_number, plain

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
        directory: where the spool is kept, `.forecurve` by default (or FORECURVE_DIR). Beside it lies `run.json`,
            with the token for this run's reports, which only you can read.

    Only rank 0 of a distributed job reports; the other ranks get a disabled run. When the service is away the run
    goes offline with a warning, so that training starts anyway; when the directory cannot be written, the spool is
    kept in a temporary one, and a warning says where. What the service has not taken when the run ends, or is killed,
    `forecurve sync` sends later.

    Raises:
        ClientError: an argument, or the variable of the environment in its place, cannot be meant: a URL without a
            host, a budget that is no number, a token that no header can carry. Or no directory can be written at all.
        ApiError: the service refused the run: an unknown unit, a faulty recipe, no access. Or it is no Forecurve.
    """
    global _current
    if mode not in ("online", "offline", "disabled"):
        raise ClientError(f"mode is {mode!r}; it is one of online, offline, disabled")
    if mode == "disabled" or os.environ.get("RANK", "0") not in ("", "0"):
        _current = Run(None, 1, spool=None)
        return _current
    root = Path(directory or os.environ.get("FORECURVE_DIR") or ".forecurve")
    meta: Meta = {
        "request": run_request(_full_name(name, project), recipe, unit, budget),
        "config": _plain_config(config),
        "created_at": datetime.now(UTC).isoformat(),
        "key": secrets.token_hex(16),
    }
    _current = _offline(prepare(root, meta)) if mode == "offline" else _online(root, meta, url, token)
    return _current


def attach(directory: str | Path) -> Run:
    """Report for the run that this process was launched for.

    Reads FORECURVE_URL, FORECURVE_RUN, FORECURVE_ATTEMPT and FORECURVE_TOKEN. The spool is kept under `directory`,
    one folder per attempt; after a restart of the process the same reports go out under the same numbers, and what
    earlier attempts left there unsent is handed in by this one.

    Raises:
        ClientError: one of the variables is missing or wrong, or `directory` cannot be written: another process
            reports for this attempt there, or the disk refuses.
    """
    url, run_id, token = (_required(name) for name in ("FORECURVE_URL", "FORECURVE_RUN", "FORECURVE_TOKEN"))
    attempt = _attempt_number(_required("FORECURVE_ATTEMPT"))
    folder = Path(directory).absolute() / "spool"
    transport = Transport(url, token, run_id, attempt)
    try:
        spool = Spool(folder / f"a{attempt}")
    except OSError as error:
        raise ClientError(f"directory is {str(directory)!r}: it cannot be written ({error}); name another") from None
    earlier = Earlier(folder, attempt, lambda number: Transport(url, token, run_id, number, handed_in_by=attempt))
    return Run(run_id, attempt, spool=spool, transport=transport, earlier=earlier)


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
    """The body of `POST /v1/runs` for an external run.

    Raises:
        ClientError: a value is none that could be sent.
    """
    for field, value in {"name": name, "recipe": recipe, "unit": unit}.items():
        _check_sendable(field, value)
    body: dict[str, Any] = {"executor": "external"}
    if unit or recipe is None:
        body["compute_unit"] = unit or "GPU-hours"
    if name:
        body["name"] = name
    if budget is not None:
        body["budget_compute"] = _budget(budget)
    if isinstance(recipe, str):
        body["preset"] = recipe
    elif recipe is not None:
        body["recipe"] = dict(recipe)
    return body


def _check_sendable(field: str, value: Any) -> None:
    takes = (str, Mapping, NoneType) if field == "recipe" else (str, NoneType)
    kinds = "a preset's name or a mapping" if field == "recipe" else "text"
    if not isinstance(value, takes):
        raise ClientError(f"{field} is {reprlib.repr(value)}; it must be {kinds}")
    try:
        sent = dict(value) if isinstance(value, Mapping) else value
        json.dumps(sent, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        way_out = "give finite numbers, text, lists and mappings"
        raise ClientError(f"{field} is {reprlib.repr(value)}, which cannot be sent ({error}); {way_out}") from None


def _budget(budget: Any) -> float:
    number = as_number(budget)
    if number is None or not (number > 0 and is_compute(number)):
        takes = f"a number from {LEAST_COMPUTE:g} to {MOST_COMPUTE:g}: the compute the run may spend, in its unit"
        raise ClientError(f"budget is {reprlib.repr(budget)}; it must be {takes}")
    return number


def _full_name(name: str | None, project: str | None) -> str | None:
    for field, value in {"name": name, "project": project}.items():
        if not isinstance(value, str | None):
            raise ClientError(f"{field} is {reprlib.repr(value)}; it must be text")
    full = f"{project}/{name}" if project and name else name or project
    return full and plain(full)


def _plain_config(config: Mapping[str, Any] | None) -> Any:
    """The config as JSON can keep it: it is for people, and no reason to keep a run from starting."""
    try:
        return json.loads(json.dumps(dict(config or {}), default=repr))
    except (TypeError, ValueError, RecursionError):
        return reprlib.repr(config)


def _online(root: Path, meta: Meta, url: str | None, token: str | None) -> Run:
    url = checked_url(url or os.environ.get("FORECURVE_URL") or DEFAULT_URL)
    with Api(url, token or os.environ.get("FORECURVE_TOKEN")) as api:
        folder = prepare(root, meta)
        try:
            begun = begin(api, meta)
        except ApiError as error:
            if not _is_away(error):
                discard(folder)
                raise
            log_.warning(
                "forecurve: %s is away (%s); the run is kept offline, later: %s",
                url,
                error.detail,
                sync_command(folder),
            )
            return _offline(folder)
    folder = adopt(folder, meta, begun, url)
    return Run(
        begun.run_id,
        begun.attempt,
        spool=Spool(folder / f"a{begun.attempt}"),
        transport=Transport(url, begun.ingest_token, begun.run_id, begun.attempt),
        sync_later=sync_command(folder),
    )


def _is_away(error: ApiError) -> bool:
    """No answer, or one that says nothing of the run itself."""
    status = error.status or 0
    return error.code == "unreachable" or status >= 500 or status in (408, 425, 429)


def _offline(folder: Path) -> Run:
    return Run(None, 1, spool=Spool(folder / "a1"))


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
