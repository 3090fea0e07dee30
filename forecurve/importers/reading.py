"""From the logs of other tools to the rows of a curve file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from forecurve.curve_cells import CurveFileError
from forecurve.science.checks import is_positive
from forecurve.signs import is_obeyed

from .choosing import axis_of, metric_counts, reward_of
from .evaluations import BACK, EARLIER, LATE, UNORDERED, evaluations_of
from .logs import Log, Reading
from .naming import by_seed, named, one_a_run, only, refuse_twins, seed_in_name, tells_seeds
from .sources import read_source
from .units import refuse_clock, unit_named

_SEED = "seed"  # the column that tells the seed where none is named


@dataclass
class Imported:
    """Evaluations of runs as the rows of a curve file, and what became of the rest.

    Attributes:
        metric: the number that is the reward.
        rows: one an evaluation, with the columns series, step, compute, reward, prompts, samples, seed and unit.
        runs: how many have evaluations.
        notes: what a person should know, one sentence each: what was chosen, and what was left alone.
        left_out: how many evaluations were left out, by why.
    """

    metric: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    runs: int = 0
    notes: list[str] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """How many runs and evaluations there are, and what was left out and why."""
        left = [f"{count:,} {why}" for why, count in self.left_out.items()]
        runs, evaluations = _counted(self.runs, "run"), _counted(len(self.rows), "evaluation")
        return f"{runs}, {evaluations} of {self.metric}; left out: {', '.join(left) or 'none'}"


def read(
    sources: str | Path | Iterable[str | Path],
    *,
    metric: str | None = None,
    compute: str | None = None,
    per_step: float | None = None,
    unit: str | None = None,
    series: str | None = None,
    seed: str | None = None,
    seeds_in_names: bool = False,
    runs: Sequence[str] = (),
    prompts: int | None = None,
    samples: int | None = None,
    growing: bool = False,
) -> Imported:
    """Read what W&B, MLflow, transformers, TRL, verl, TensorBoard, trackio and plain loggers leave of runs.

    Args:
        sources: files or folders.
        metric: the number that is the reward; else the only one that looks like a rate on held-out prompts.
        compute: the number that is the compute; else the step, or the x axis of a chart.
        per_step: what one step costs, in `unit`; with `compute`, what one unit of that number does.
        unit: of compute; else by the name of what counts it, and none with `per_step`.
        series: the column of a table that names the run of a row.
        seed: the number that tells the seed; else `seed`, where it is logged.
        seeds_in_names: take the seed from the end of runs' names: `seed3`, `s3`.
        runs: only runs that one of these patterns (`grpo-*`) fits.
        prompts: of every evaluation.
        samples: of every prompt.
        growing: the files are being written: a last line of CSV that has no end is left for the next time.

    Raises:
        CurveFileError: something of this does not hold; names field, value and way out.
    """
    _check(metric, compute, per_step, unit)
    unit = (unit or "").strip() or None
    logs, notes = _logs(sources, metric, series, runs, growing=growing)
    reward = reward_of(logs, metric)
    found = Imported(reward, notes=notes)
    if metric is None:
        found.notes.append(f"reward: {reward}, the only one that looks like a rate on held-out prompts")
    logs = _that_have(reward, logs, found)
    if compute is not None:
        logs = _that_have(compute, logs, found)
    left: Counter[str] = Counter()
    counted: dict[str, None] = {}
    for log in _with_seeds(logs, seed, seeds_in_names, found):
        axis = _axis(log, reward, compute)
        evaluations = evaluations_of(log, reward, axis, compute, per_step or 1.0, left)
        told = {"prompts": prompts, "samples": samples, "seed": log.seed}
        found.rows += [
            {"series": log.run, "step": one.step, "compute": one.compute, "reward": one.reward} | told
            for one in evaluations
        ]
        found.runs += bool(evaluations)
        counted[compute or axis or ""] = None
    return _finished(found, left, list(counted), unit, per_step)


def metrics(
    sources: str | Path | Iterable[str | Path], *, series: str | None = None, runs: Sequence[str] = ()
) -> dict[str, int]:
    """The numbers that are logged and how often, first those that look like a reward on held-out prompts.

    Args, Raises: as `read`.
    """
    logs, _ = _logs(sources, None, series, runs)
    return metric_counts(logs)


def _check(metric: str | None, compute: str | None, per_step: float | None, unit: str | None) -> None:
    if per_step is not None and not is_positive(per_step):
        raise CurveFileError("per-step", per_step, "a positive number is needed", "give what one step costs")
    if metric is not None and metric == compute:
        raise CurveFileError("compute", compute, "it is the reward as well", "name another number")
    if compute is not None:
        refuse_clock(compute)
    if unit is not None and any(is_obeyed(sign) for sign in unit):
        raise CurveFileError("unit", ascii(unit), "a name on one line is needed", "give one such as GPU-hours")


def _logs(
    sources: str | Path | Iterable[str | Path],
    metric: str | None,
    series: str | None,
    runs: Sequence[str],
    *,
    growing: bool = False,
) -> tuple[list[Log], list[str]]:
    """The runs that are meant, and what to say of how they were read."""
    given = [sources] if isinstance(sources, str | Path) else list(sources)
    reading = Reading()
    for path in dict.fromkeys(Path(one) for one in given):
        reading.add(read_source(path, metric, series, growing=growing))
    if not reading.logs:
        files = ", ".join(map(str, given)) or "none"
        raise CurveFileError("file", files, "no numbers are logged in it", "name logs of runs")
    logs, notes = one_a_run(reading.logs)
    return only(logs, runs), [*reading.notes, *notes]


def _that_have(name: str, logs: Sequence[Log], found: Imported) -> list[Log]:
    """The runs that have logged a number; of the others it is noted that they are left out."""
    have = [log for log in logs if _has(log, name)]
    without = [log.run for log in logs if not _has(log, name)]
    if not have:
        numbers = named(name for name in metric_counts(logs) if name != found.metric)
        raise CurveFileError("compute", repr(name), "nothing is logged as that", f"there are {numbers}")
    if without:
        runs = "a run that has" if len(without) == 1 else f"{len(without):,} runs that have"
        found.notes.append(f"left out: {runs} no {name}: {named(without)}")
    return have


def _has(log: Log, name: str) -> bool:
    return any(name in row.cells for row in log.rows)


def _with_seeds(logs: list[Log], seed: str | None, in_names: bool, found: Imported) -> list[Log]:
    """A log for each seed of each run."""
    if seed is not None and not tells_seeds(logs, seed):
        raise CurveFileError("seed", repr(seed), "no whole numbers are logged as that", "name another, or leave it out")
    bare = [(log.run, log) for log in logs]
    if in_names:
        for log in logs:
            seed_in_name(log)
        without = [log.run for log in logs if log.seed is None]
        if without:
            found.notes.append(f"no seed at the end of the name: {named(without)}")
    elif seed is not None or tells_seeds(logs, _SEED):
        bare = [(run, part) for run, log in bare for part in by_seed(log, seed or _SEED) if _has(part, found.metric)]
        if seed is None:
            found.notes.append(f"seed: {_SEED}, which is logged")
    refuse_twins(bare)
    return [log for _, log in bare]


def _axis(log: Log, reward: str, compute: str | None) -> str | None:
    axis = axis_of(log, reward)
    if axis is None and compute is None:
        there = named(name for name in metric_counts([log]) if name != reward)
        way_out = f"name what counts its compute; there are {there or 'none'}"
        raise CurveFileError("compute", "none", f"run {log.run!r} has no step where it has {reward}", way_out)
    if axis is not None and compute is None:
        refuse_clock(axis)
    return axis


def _finished(
    found: Imported, left: Counter[str], counted: Sequence[str], unit: str | None, per_step: float | None
) -> Imported:
    if not found.rows:
        why = ", ".join(f"{count:,} {why}" for why, count in left.items() if count)
        raise CurveFileError("metric", found.metric, f"no evaluation of it is left: {why}", "name another number")
    stated = unit or (None if per_step is not None else _one_unit(counted))
    for row in found.rows:
        row["unit"] = stated
    cost = "" if per_step is None else f", each {per_step:g} {unit or 'units (--unit names them)'}"
    found.notes.append(f"compute: {named(counted)}{cost}{f', in {stated}' if stated and not cost else ''}")
    for told, what in ((EARLIER, "evaluation"), (LATE, "evaluation"), (BACK, "time"), (UNORDERED, "log")):
        if left[told]:
            found.notes.append(f"{_counted(left[told], what)} {told}")
        del left[told]
    low, high = min(row["reward"] for row in found.rows), max(row["reward"] for row in found.rows)
    if low < 0 or high > 1:
        found.notes.append(f"rewards lie in {low:g} to {high:g}: `forecurve fit` needs their range (--range LOW,HIGH)")
    found.left_out = {why: count for why, count in left.items() if count}
    return found


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def _one_unit(counted: Sequence[str]) -> str:
    units = list(dict.fromkeys(unit_named(name) for name in counted))
    if len(units) > 1:
        way_out = "name one number that all of them log, or convert them apart"
        raise CurveFileError("compute", named(counted), "runs are counted in different units", way_out)
    return units[0]
