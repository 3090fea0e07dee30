"""Which run a training reports for: one that was begun already in this process, or one of its own."""

from __future__ import annotations

import inspect
import logging
import shlex
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any
from weakref import WeakSet

from forecurve.client import tracking
from forecurve.client.asking import Asked
from forecurve.client.errors import ApiError, ClientError
from forecurve.client.resuming import AUTO, check_resume
from forecurve.client.run import Run
from forecurve.client.sameness import Differs

log = logging.getLogger("forecurve")

LEFT_S = 5.0
"""Seconds that the reports of an earlier training get before a run is left for the next."""

_ours: WeakSet[Run] = WeakSet()


def check(options: Mapping[str, Any]) -> None:
    """Find faults in what `forecurve.init` will be given, while there is still somebody to tell.

    Raises:
        TypeError: it has no such argument.
        ClientError: a value is none that could be sent.
    """
    known = inspect.signature(tracking.init).parameters
    for name in options:
        if name not in known:
            raise TypeError(
                f"{name!r} is no argument of ForecurveCallback, and none of forecurve.init: {', '.join(known)}"
            )
    Asked(**{field.name: options[field.name] for field in fields(Asked) if field.name in options})
    check_resume(options.get("resume"))


def begun_by_user() -> Run | None:
    """The run that the user's own `forecurve.init` began in this process, when it goes on."""
    try:
        run = tracking.current()
    except ClientError:
        return None
    return None if run.finished or run in _ours else run


def begin(options: Mapping[str, Any], args: Any, state: Any, before: Run | None) -> Run:
    """A run for a training that begins, or goes on. Never raises for what the service says: a run that it refuses is
    kept on disk, with a warning.

    Args:
        before: the run of this training, when it was interrupted and begins again in the same process.
    """
    _leave_others()
    given = {"name": _name(args), "resume": _resume(state, before), **options}
    run = _tried(given)
    _ours.add(run)
    return run


def _leave_others() -> None:
    """No run is left to a training that ended with an exception, which no hook tells of: its next attempt is free."""
    for run in [run for run in _ours if not run.finished]:
        run.finish("lost", "training ended without a word, and began again", deadline_s=LEFT_S)


def _tried(given: Mapping[str, Any]) -> Run:
    try:
        return tracking.init(**given)
    except (ApiError, ClientError) as error:
        fault = error.sentence() if isinstance(error, ApiError) else str(error)
    try:
        run = _kept(given)
    except (ApiError, ClientError):
        log.warning("forecurve: nothing is reported: %s", fault)
        return tracking.init(mode="disabled")
    if run.directory:
        later = f"forecurve sync {shlex.quote(str(run.directory.parent))}"
        log.warning("forecurve: the run does not begin (%s); its reports are kept on disk, later: %s", fault, later)
    return run


def _kept(given: Mapping[str, Any]) -> Run:
    """A run on disk; a new one where what is asked for is not what the run to go on with has: never would a service
    take those reports as that run's."""
    try:
        return tracking.init(**{**given, "mode": "offline"})
    except Differs:
        return tracking.init(**{**given, "mode": "offline", "resume": None})


def _name(args: Any) -> str:
    """The name of the training, else that of the folder that it writes to."""
    named = args.run_name if args.run_name != args.output_dir else None  # as older versions of transformers filled it
    return str(named or Path(args.output_dir).absolute().name)


def _resume(state: Any, before: Run | None) -> str | None:
    """A training that goes on from a checkpoint goes on with its run; one that begins anew is another."""
    if before and before.directory:
        return before.id or before.directory.parent.name
    return AUTO if state.global_step else None
