"""Runs as the arms of one comparison, as the pages of a sweep and of chosen runs show them: one chart, one table."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from server.runs.schemas import Interval, RunView
from server.runs.states import TERMINAL
from server.sweeps.outline import RunOutline
from server.sweeps.schemas import ArmVerdictView, ComparisonView, RankView

from .drawings import bar_range

# The signs of an arm's seeds, which share its colour: as Plotly draws one and as it is written. They come round again.
SEED_SIGNS = (
    ("circle", "●"),
    ("diamond-open", "◇"),
    ("x", "✕"),
    ("triangle-up", "▲"),
    ("square-open", "□"),
    ("cross", "✚"),
    ("star", "★"),
    ("triangle-down-open", "▽"),
    ("square", "■"),
    ("circle-open", "○"),
)


AnyRun = RunView | RunOutline
"""Of thousands of runs little is read."""


@dataclass(frozen=True)
class Arms:
    """What chart and table are drawn from; all mappings are by run.

    Attributes:
        curves: where the chart reads the curves.
        runs: in the order in which they were planned or chosen.
        names: of the runs, each another.
        arms: of which arm a run is a seed, as `comparison` names it.
        changes: against the control, in words.
        controls: the runs of the control's arm.
        control: whose ceiling the others' bars are drawn over.
        drawn: which of the runs are in the chart; None for all.
        uncompared: why none is compared; empty where they are, or will be.
        left_out: why a run is not compared.
        remove: where a press on its cross leads; none where runs cannot be taken out.
    """

    curves: str
    runs: Sequence[AnyRun]
    names: Mapping[str, str]
    arms: Mapping[str, str]
    changes: Mapping[str, str]
    controls: Collection[str]
    control: AnyRun | None
    comparison: ComparisonView | None
    drawn: Sequence[AnyRun] | None = None
    uncompared: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
    remove: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def going(self) -> bool:
        return any(run.status not in TERMINAL for run in self.runs)

    @cached_property
    def bounds(self) -> tuple[float, float] | None:
        return bar_range([run.ceiling for run in self.runs if not run.withheld])

    @cached_property
    def ceiling(self) -> Interval | None:
        """The control's."""
        return self.control.ceiling if self.control and not self.control.withheld else None

    @property
    def shown(self) -> Sequence[AnyRun]:
        """The runs that are in the chart."""
        return self.runs if self.drawn is None else self.drawn

    @cached_property
    def series(self) -> dict[str, int | None]:
        """The colours: arms are numbered as they come, all seeds of an arm alike; the control has none (neutral).
        Runs that are not in the chart are not in here."""
        numbers: dict[str, int] = {}
        for run in self.shown:
            if run.id not in self.controls:
                numbers.setdefault(self.arms[run.id], len(numbers))
        return {run.id: None if run.id in self.controls else numbers[self.arms[run.id]] for run in self.shown}

    @cached_property
    def seeds(self) -> dict[str, tuple[str, str]]:
        """What tells the runs of one arm apart; nothing of an arm with a single run."""
        of_arm: dict[str, list[str]] = {}
        for run in self.shown:
            of_arm.setdefault(self.arms[run.id], []).append(run.id)
        several = [ids for ids in of_arm.values() if len(ids) > 1]
        return {id_: SEED_SIGNS[at % len(SEED_SIGNS)] for ids in several for at, id_ in enumerate(ids)}

    @property
    def series_json(self) -> str:
        return json.dumps(self.series)

    @property
    def seeds_json(self) -> str:
        return json.dumps(self.seeds)

    @property
    def names_json(self) -> str:
        """Only those that the runs do not have anyhow: the others are told with their curves."""
        return json.dumps({run.id: self.names[run.id] for run in self.shown if self.names[run.id] != run.name})

    @cached_property
    def verdicts(self) -> dict[str, ArmVerdictView | None]:
        """What the run's arm changed; None where it has not been compared."""
        found = {arm.arm: arm for arm in self.comparison.arms} if self.comparison else {}
        return {run.id: None if run.id in self.left_out else found.get(self.arms[run.id]) for run in self.runs}

    @cached_property
    def ranks(self) -> dict[str, RankView | None]:
        """Where the run's arm stands among the others; None where that is not known."""
        ranking = self.comparison.ranking if self.comparison else None
        found = {one.arm: one for one in ranking.arms} if ranking and len(ranking.arms) > 1 else {}
        return {run.id: found.get(self.arms[run.id]) for run in self.runs}

    def firsts(self, rows: Sequence[RunView]) -> set[str]:
        """The first run of each arm in this order."""
        found: dict[str, str] = {}
        for run in rows:
            if run.id not in self.left_out:
                found.setdefault(self.arms[run.id], run.id)
        return set(found.values())
