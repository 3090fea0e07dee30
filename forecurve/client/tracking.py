"""`init`, `log`, `finish` for your own training loop; `attach` for a loop that Forecurve launched."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from .asking import Asked, plain_config
from .earlier import Earlier
from .errors import ClientError
from .resuming import check_resume, root_of
from .run import FINISH_S, Run
from .spool import Spool
from .starting import Start
from .transport import Transport

Mode = Literal["online", "offline", "disabled"]

RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")
"""Where launchers say which process of a job this is; the first that is set counts."""

_current: Run | None = None
logger = logging.getLogger("forecurve")  # `log` is what users call


def init(
    name: str | None = None,
    *,
    project: str | None = None,
    recipe: Mapping[str, Any] | str | None = None,
    config: Mapping[str, Any] | None = None,
    unit: str | None = None,
    budget: float | None = None,
    task: str | None = None,
    arm: str | None = None,
    seed: int | None = None,
    tags: Sequence[str] = (),
    note: str | None = None,
    url: str | None = None,
    token: str | None = None,
    mode: Mode = "online",
    directory: str | Path | None = None,
    resume: str | None = None,
) -> Run:
    """Begin to report a run of your own, or go on with one; the first line of three.

        run = forecurve.init("my-run", unit="GPU-hours", budget=200, task="gsm8k, 512 held-out prompts")
        run.log_evaluation(step=100, compute=1.5, reward=0.41, prompts=512, samples=4)
        run.finish()

    Args:
        name, project: what the run is called; with a project it is `project/name`.
        recipe: a preset's name or a whole recipe, when the run follows one.
        config: anything worth keeping beside the spool; the service does not read it.
        unit: of every compute figure of the run: GPU-hours, CPU-hours, GPU-seconds, CPU-seconds or steps. By default
            the recipe's, or GPU-hours when there is none.
        budget: compute the run may spend; the forecast is made for it.
        task: what is trained and evaluated, in words of your own. Runs of one task and unit that are over tell how
            this one will end, so their evaluations must mean the same: the same prompts, scored alike. Where there is a
            recipe it says the task.
        arm, seed: runs of one task and arm that differ in their seed alone; they tell more of one another.
        tags, note: to find the run by, and what it is for; what went on has those that it was begun with.
        url, token: the service; else FORECURVE_URL and FORECURVE_TOKEN.
        mode: offline keeps everything on disk for `forecurve sync`; disabled drops everything.
        directory: where the spool is kept, `.forecurve` by default (or FORECURVE_DIR). Beside it lies `run.json`,
            with the token for this run's reports, which only you can read.
        resume: go on with a run that crashed or whose machine was taken away: its id, or the name of its folder when it
            was begun offline. `"auto"`: the run of this name that was begun last in this directory, unless it is over
            or a living process reports for it; else a new one. So a job that is started again needs no other line.

    A run that goes on has another attempt, as a launched run has: what attempts before it could not send is handed in,
    their reports are refused from then on, and the curve has a restart where the new one's first evaluation stands. Of
    what is reported again for a step the last counts. Steps and compute go on from your checkpoint; `run.reached` is
    the newest evaluation that the service has. `recipe`, `unit`, `budget`, `task`, `arm`, `seed` and `project` may be
    left out, and are refused when they are not the run's. Nothing revives a run that is over: an exception that leaves
    `with run:` ends it as failed; `finish("lost")` leaves it open for the next attempt.

    Only rank 0 of a distributed job reports; the other ranks get a disabled run. The rank is that of `RANK`, or else of
    Open MPI, of other MPIs, or of a Slurm step of several tasks. When the service is away, and does not come back
    within 10 s, the run goes offline to its end with a warning, so that training starts anyway (20 s where it takes
    the last request and says nothing; after 2 s a line says what is waited for). When the directory cannot be written,
    the spool is kept in a temporary one, and a warning says where. What the service has not taken when the run ends,
    or is killed, `forecurve sync` sends later.

    Raises:
        ClientError: an argument, or the variable of the environment in its place, cannot be meant: a URL without a
            host, an unknown unit, a budget that is no number, a token that no header can carry. Or no directory can be
            written at all. Or the run to go on with is of another project, has ended, or another process reports for
            it.
        ApiError: the service refused the run: a faulty recipe, no access. Or it is no Forecurve. Or the run to go on
            with is unknown there, over, about to stop, launched by the service, or has another unit, budget or recipe.
    """
    global _current
    if mode not in ("online", "offline", "disabled"):
        raise ClientError(f"mode is {mode!r}; it is one of online, offline, disabled")
    if mode == "disabled" or not _is_first():
        _current = Run(None, 1, spool=None)
        return _current
    _say_unfinished(_current)
    root = root_of(directory)
    check_resume(resume)
    asked = Asked(name, project, recipe, unit, budget, task, arm, seed, tags, note)
    start = Start(root, asked, plain_config(config), resume)
    _current = start.offline() if mode == "offline" else start.online(url, token)
    return _current


def _is_first() -> bool:
    """This process is the one of its job that reports."""
    told = [rank for name in RANKS if (rank := os.environ.get(name))]
    if not told and os.environ.get("SLURM_STEP_ID") and os.environ.get("SLURM_NTASKS", "1") != "1":
        told = [os.environ.get("SLURM_PROCID") or "0"]  # outside of a step it is inherited, and says nothing
    return not told or told[0] == "0"


def _say_unfinished(before: Run | None) -> None:
    """A cell of a notebook that is run again begins another run, and that of before goes on as long as the process."""
    if before is None or before.finished or before.directory is None or not before.is_of_this_process:
        return
    named, way_out = before.id or before.directory.parent.name, "forecurve.finish() before the next init ends it"
    logger.warning("forecurve: run %s, begun before in this process, is not finished and goes on; %s", named, way_out)


def attach(directory: str | Path) -> Run:
    """Report for the run that this process was launched for.

    Reads FORECURVE_URL, FORECURVE_RUN, FORECURVE_ATTEMPT and FORECURVE_TOKEN. The spool is kept under `directory`,
    one folder per attempt; after a restart of the process the same reports go out under the same numbers, and what
    earlier attempts left there unsent is handed in by this one. Where the service refuses the token for 10 minutes the
    run is asked to stop: the attempt was given up so long ago that its token has ended.

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
    before = [(folder / f"a{number}", number) for number in range(1, attempt)]
    return Run(run_id, attempt, spool=spool, transport=transport, earlier=Earlier(before, transport.handing_in))


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
