"""`forecurve run follow`: a run whose trainer knows nothing of us is reported from what it logs."""

from __future__ import annotations

import json
import math
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from forecurve.limits import MAX_STEP

from ..given.curves import Bounds, Range, bounds_of_flag
from ..given.flags import DATA_DIR, AsJson, DataDir, Token, Url
from ..given.logs import Compute, LogUnit, Metric, PerStep, Prompts, RunPatterns, Samples, or_refused

if TYPE_CHECKING:
    from forecurve.client import Run
    from forecurve.importers import Imported

    from ..asking.followed import Before

Row = dict[str, Any]
Read = Callable[[], "Imported"]


def follow(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="What its trainer writes; as `forecurve convert` reads it.")
    ],
    metric: Metric = None,
    compute: Compute = None,
    per_step: PerStep = None,
    unit: LogUnit = None,
    runs: RunPatterns = None,
    prompts: Prompts = None,
    samples: Samples = None,
    range_: Range = None,
    name: Annotated[str | None, typer.Option("--name", help="What the run is called; else as its log is.")] = None,
    budget: Annotated[float | None, typer.Option("--budget", help="Compute that it may spend.")] = None,
    task: Annotated[str | None, typer.Option("--task", help="What is trained and evaluated.")] = None,
    arm: Annotated[str | None, typer.Option("--arm", help="What its seeds have in common; needs --seed.")] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, help="Its seed.")] = None,
    every: Annotated[float, typer.Option("--every", min=0.2, max=3600, help="Seconds between two looks.")] = 30.0,
    over: Annotated[bool, typer.Option("--over", help="It is over: report what is there, and end the run.")] = False,
    url: Url = None,
    token: Token = None,
    data_dir: DataDir = DATA_DIR,
    as_json: AsJson = False,
) -> None:
    """Report a run from the log that its trainer writes: verl's JSONL, TensorBoard, trainer_state.json, and the like.

    forecurve run follow PROJECT/EXPERIMENT.jsonl --metric val-core/gsm8k/acc/mean@8 --per-step 0.4 --unit GPU-hours

    Nothing of the trainer is changed. Until Ctrl-C new evaluations are sent as they are logged; the same command goes
    on with the run, and with --over ends it.
    """
    from forecurve.client import init
    from forecurve.importers import read

    from ..asking import followed
    from ..asking.connection import service

    def look(chosen: str | None = metric) -> Imported:
        return read(
            source,
            metric=chosen,
            compute=compute,
            per_step=per_step,
            unit=unit,
            runs=runs or (),
            prompts=prompts,
            samples=samples,
            growing=not over,
        )

    bounds = bounds_of_flag(range_)
    address, secret = service(url, token, data_dir)
    first = or_refused(look) if over or metric is None else _awaited(look, every)
    row = _of_one_run(first, bounds)
    points = {(one["compute"], _share(one["reward"], bounds)) for one in first.rows}
    log = followed.Followed(name or row["series"], source, points, is_named=name is not None)

    def begin(resume: str | None) -> Run:
        run = init(
            log.name,
            unit=row["unit"],
            budget=budget,
            task=task,
            arm=arm,
            seed=seed,
            config={"log": log.log},
            url=address,
            token=secret,
            resume=resume,
        )
        _say_where(run, address)
        return run

    with followed.alone():
        before = followed.before(log, address, secret)
        if before.whole:
            print(f"{before.whole}; nothing is sent", file=sys.stderr)
            return
        reports = _Reports(begin, before, row["series"], bounds, as_json)
    _report(reports, lambda: look(first.metric), first, every, over=over)


def _awaited(look: Read, every: float) -> Imported:
    """The log with its first evaluation, which may be long in coming."""
    from forecurve.curve_cells import CurveFileError

    from ..asking import patience

    said = ""
    while True:
        try:
            return look()
        except CurveFileError as error:
            if str(error) != said:
                said = str(error)
                print(f"Waiting for the first evaluation: {said}", file=sys.stderr)
        patience.wait(every)


def _of_one_run(found: Imported, bounds: Bounds) -> Row:
    from ..errors import bad_input

    names = list(dict.fromkeys(row["series"] for row in found.rows))
    if len(names) > 1:
        shown = ", ".join(names[:5]) + (" and more" if len(names) > 5 else "")
        raise bad_input(f"--run: {len(names)} runs are logged there ({shown}); choose one")
    row = found.rows[0]
    if len({one["seed"] for one in found.rows}) > 1:
        raise bad_input(f"SOURCE: several seeds of {row['series']} are logged there; follow a log of one")
    if row["unit"] is None:
        raise bad_input("--unit: it is not said in what compute is counted; give one such as GPU-hours")
    for one in found.rows:
        if not bounds[0] <= one["reward"] <= bounds[1]:
            low, high = bounds
            raise bad_input(
                f"--range: rewards from {low:g} to {high:g} are expected, got {one['reward']:g}; state theirs"
            )
    return dict(row)


def _share(reward: float, bounds: Bounds) -> float:
    low, high = bounds
    return (reward - low) / (high - low)


def _say_where(run: Run, url: str) -> None:
    where = f"{run.id}  {url}/runs/{run.id}" if run.id else f"kept in {run.directory}: the service is away"
    print(f"{where}{', goes on' if run.resumed else ''}", file=sys.stderr)


class _Steps:
    """Steps as the service takes them, whole and rising with the log's own, which may be epochs, or tokens.

    Whole ones keep their number while nothing fractional, negative or beyond `MAX_STEP` came before; then each is the
    next that is free.
    So whoever reads the log anew, from its first line on, gives the same.
    """

    def __init__(self) -> None:
        self._known: list[tuple[float, int]] = []  # rising in both

    def of(self, step: float) -> int | None:
        """What to call a step that was not asked for before; None where no number is left between its neighbours."""
        place = bisect_left(self._known, (step, 0))
        free = self._known[place - 1][1] + 1 if place else 0
        number = max(math.ceil(step) if step <= MAX_STEP else 0, free)
        if place < len(self._known) and number >= self._known[place][1]:
            return None
        self._known.insert(place, (step, number))
        return number


class _Reports:
    """Evaluations on their way to the service, each step once.

    The next attempt of a run sends all that is logged, for it is the one that counts; a person is told of what is new.

    Args:
        begin: begins the run, or its next attempt, as `resume` of `init` says.
        before: what was reported of the log before.
        series: the run's name in the log.
    """

    def __init__(self, begin: Callable[[str | None], Run], before: Before, series: str, bounds: Bounds, as_json: bool):
        self._begin, self._series, self._bounds, self._as_json = begin, series, bounds, as_json
        self.run = begin(before.resume)
        self._there = before.points  # with their compute and reward as the service has them
        self._sent: dict[float, float] = {}  # step to reward, as they were logged
        self._others: set[str] = set()
        self._steps = _Steps()
        self._in_doubt = False

    def send(self, rows: Sequence[Row]) -> None:
        """Those of the run that are new, and a line about each.

        Where the log takes back what was sent, as after a resume or where its file was begun anew, all of it is sent by
        the run's next attempt, which takes the place of what that of before had sent: once two looks in a row say so,
        for a file may be seen while it is being written anew.
        """
        ours = {row["step"]: row for row in rows if self._is_ours(row)}
        taken_back = self._takes_back(ours)
        if taken_back and self._in_doubt:
            self._begin_anew()
            taken_back = False
        self._in_doubt = taken_back
        new = {} if taken_back else {step: row for step, row in ours.items() if step not in self._sent}
        self._say_how_many_are_there(new.values())
        for step, row in new.items():
            self._sent[step] = row["reward"]
            self._send(row)

    def _takes_back(self, ours: Mapping[float, Row]) -> bool:
        """Whether it is another story from some step on. A file that goes on with later steps, as one that was begun
        when the other was large, takes nothing back."""
        first = min(ours, default=math.inf)
        sent = {step: reward for step, reward in self._sent.items() if step >= first}
        return any(step not in ours or ours[step]["reward"] != reward for step, reward in sent.items())

    def _begin_anew(self) -> None:
        print("It was logged anew, as after a resume: what was sent before is replaced", file=sys.stderr)
        self.run.finish("lost", "It was logged anew.")
        kept_in = self.run.directory
        self.run = self._begin(self.run.id or (kept_in.parent.name if kept_in else "auto"))
        self._sent, self._steps, self._there = {}, _Steps(), frozenset()

    def _is_ours(self, row: Row) -> bool:
        if row["series"] != self._series:
            self._leave(row["series"])
        return bool(row["series"] == self._series)

    def _leave(self, other: str) -> None:
        """A run that began to log there meanwhile."""
        if other not in self._others:
            self._others.add(other)
            told = f"{other} is logged there too now; only {self._series} is followed (--run chooses another)"
            print(told, file=sys.stderr)

    def _send(self, row: Row) -> None:
        step = self._steps.of(row["step"])
        if step is None:
            print(f"Logged too late to be sent: {row['step']:g}, after those that follow it", file=sys.stderr)
            return
        told = {"step": step, "compute": row["compute"], "reward": _share(row["reward"], self._bounds)}
        self.run.log_evaluation(**told, prompts=row["prompts"], samples=row["samples"])
        if not self._is_there(row):
            print(json.dumps({"run_id": self.run.id} | told) if self._as_json else _line(told, row["unit"]), flush=True)

    def _is_there(self, row: Row) -> bool:
        return (row["compute"], _share(row["reward"], self._bounds)) in self._there

    def _say_how_many_are_there(self, rows: Iterable[Row]) -> None:
        count = sum(map(self._is_there, rows))
        if count:
            what = "1 evaluation was" if count == 1 else f"{count:,} evaluations were"
            print(f"{what} there already; only what is new is told", file=sys.stderr)


def _line(told: Row, unit: str) -> str:
    from ..showing.output import compute

    return f"step {told['step']:,}  {compute(told['compute'], unit)}  pass rate {told['reward']:.3f}"


def _report(reports: _Reports, look: Read, found: Imported | None, every: float, *, over: bool) -> None:
    """Send what is new until it is over, or nobody follows any more."""
    from ..asking import patience

    asked = False
    try:
        while True:
            if found is not None:
                reports.send(found.rows)
            if over:
                reports.run.finish("succeeded")
                return
            if reports.run.should_stop and not asked:
                asked = True
                print(f"It is asked to stop: {reports.run.stop_reason} Its trainer does not know.", file=sys.stderr)
            patience.wait(every)
            found = _again(look)
    except (KeyboardInterrupt, BrokenPipeError):
        reports.run.finish("lost", "It is not followed any more.")
        print("Not followed any more. The same command goes on; with --over it ends the run.", file=sys.stderr)
        raise


def _again(look: Read) -> Imported | None:
    """What is logged by now; None while a line is being written."""
    from forecurve.curve_cells import CurveFileError

    try:
        return look()
    except CurveFileError as error:
        print(f"Not read just now: {error}", file=sys.stderr)
        return None
