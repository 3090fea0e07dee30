"""The runs that are meant, what each is called, and which seed of which series it is."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from operator import itemgetter

from forecurve.curve_cells import CurveFileError, name_of, seed_of
from forecurve.science.checks import short

from .logs import Log, Row, is_finite, is_number

_SEED_IN_NAME = re.compile(r"(?P<series>.*?)(?:^|[-_ ./:]+)(?:seed|s)[-_ =:]?(?P<seed>\d{1,9})", re.IGNORECASE)
_SHOWN = 8  # names that a message lists


def named(names: Iterable[str]) -> str:
    """Some names, and how many more there are."""
    known = list(names)
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"{', '.join(known[:_SHOWN])}{more}"


def one_a_run(logs: Sequence[Log]) -> tuple[list[Log], list[str]]:
    """Every run once, by a name of its own, and what to say of that.

    A name that a file says is the same run in another file too: charts of W&B are exported one by one. Runs that are
    called as their files are may share a name, and have their folders before it then.
    """
    said: dict[str, list[Log]] = {}
    for log in logs:
        if log.said:
            said.setdefault(log.run, []).append(log)
    files = {run: len({log.path for log in parts}) for run, parts in said.items()}
    notes = [f"{run} is in {count} files, which are taken together" for run, count in files.items() if count > 1]
    unsaid = list({log.path.resolve(): log for log in logs if not log.said}.values())
    _tell_apart(unsaid, set(said))
    places = {id(log): at for at, log in enumerate(logs)}
    found = [(places[id(parts[0])], _together(parts)) for parts in said.values()]
    found += [(places[id(log)], log) for log in unsaid]
    return [log for _, log in sorted(found, key=itemgetter(0))], notes


def _together(parts: list[Log]) -> Log:
    rows = [row._replace(part=at) for at, part in enumerate(parts) for row in part.rows]
    axes = tuple(dict.fromkeys(axis for part in parts for axis in part.axes))
    return Log(parts[0].run, parts[0].path, rows, axes, said=True)


def _tell_apart(logs: list[Log], taken: set[str]) -> None:
    """Name of those with the same name each with as many of its folders before it as it takes."""
    bare = [log.run for log in logs]
    homes = [log.home.resolve().parts[1:] for log in logs]
    for folders in range(1, 1 + max(map(len, homes), default=0)):
        times = Counter([*((name, None) for name in taken), *((log.run, log.seed) for log in logs)])
        for log, name, home in zip(logs, bare, homes, strict=True):
            if times[log.run, log.seed] > 1:
                log.run = "/".join([*home[-folders:], name])


def each_its_own(names: Iterable[str]) -> Iterator[str]:
    """Every name once: a second `grpo` is `grpo (2)`, or (3) where a run is called `grpo (2)` by itself."""
    names = list(names)
    known = set(names)
    times: Counter[str] = Counter()
    for name in names:
        times[name] += 1
        while times[name] > 1 and f"{name} ({times[name]})" in known:
            times[name] += 1
        yield name if times[name] == 1 else f"{name} ({times[name]})"


def each_of_its_seed(store: str, bare: Sequence[str], seeds: Sequence[int | None]) -> tuple[list[str], list[str]]:
    """A name for each run of a store in the order of their beginnings, each its own among those of its seed, and what
    to say of that. Runs that come later change no name."""
    of_seed = {
        seed: each_its_own([name for name, own in zip(bare, seeds, strict=True) if own == seed]) for seed in set(seeds)
    }
    names = [next(of_seed[seed]) for seed in seeds]
    again = sum(own != name for own, name in zip(names, bare, strict=True))
    return names, [
        f"{store}: {again:,} called as an earlier run of that seed: `name (2)` and so on here"
    ] if again else []


def only(logs: Sequence[Log], patterns: Sequence[str]) -> list[Log]:
    """Those that one of the patterns (`grpo-*`) fits, all where there is none."""
    for pattern in patterns:
        if not any(_fits(log.run, pattern) for log in logs):
            way_out = f"there are {named(log.run for log in logs)}"
            raise CurveFileError("run", repr(pattern), "no run is called so", way_out)
    return [log for log in logs if not patterns or any(_fits(log.run, pattern) for pattern in patterns)]


def _fits(name: str, pattern: str) -> bool:
    return name == pattern or fnmatchcase(name, pattern)


def by_seed(log: Log, column: str) -> list[Log]:
    """A log for each seed that a column tells; one that tells a single seed tells it of all rows."""
    seeds: dict[int | None, list[Row]] = {}
    for row in log.rows:
        seeds.setdefault(seed_of(row.cells.get(column), row.where), []).append(row)
    known = [seed for seed in seeds if seed is not None]
    if len(known) <= 1:
        log.seed = known[0] if known else None
        return [log]
    return [Log(log.run, log.path, rows, log.axes, log.said, seed) for seed, rows in seeds.items()]


def tells_seeds(logs: Sequence[Log], column: str) -> bool:
    """Whether a column is there and has whole numbers alone, beside NaN, which is none."""
    cells = [row.cells[column] for log in logs for row in log.rows if column in row.cells]
    seeds = [cell for cell in cells if not (is_number(cell) and math.isnan(float(cell)))]
    return bool(seeds) and all(is_finite(cell) and float(cell).is_integer() for cell in seeds)


def seed_in_name(log: Log) -> None:
    """Take a seed at the end of the run's name (`grpo-lr3_seed2`, `grpo/s2`) out of it.

    A run whose name is nothing else is called as its folder is.
    """
    found = _SEED_IN_NAME.fullmatch(log.run)
    if found:
        log.run = found["series"] or log.home.resolve().name
        log.seed = int(found["seed"])


def refuse_twins(logs: Iterable[tuple[str, Log]]) -> None:
    """Two runs cannot be the same seed of the same series; each comes with the name that it had."""
    first: dict[tuple[str, int | None], tuple[str, Log]] = {}
    for name, log in logs:
        name_of(log.run, str(log.path))
        other, known = first.setdefault((log.run, log.seed), (name, log))
        if known is not log:
            twin = f"{short(log.run)} with seed {'none' if log.seed is None else log.seed}"
            way_out = "choose one with --run, or rename one"
            raise CurveFileError("seed", twin, f"{short(other)} and {short(name)} are both called so", way_out)
