"""What the comparison of any runs gives over HTTP."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field

from server.runs.schemas import RunView
from server.sweeps.schemas import ComparisonView


class FieldDifference(BaseModel):
    """A field in which the recipes of the runs differ."""

    field: str = Field(description="Dotted.")
    values: dict[str, Any] = Field(description="By run; a run whose recipe has no such field is not in it.")


class RunsComparison(BaseModel):
    """Any runs against one of them. Seeds of one arm, with recipes that differ in nothing else, are taken together."""

    control: str = Field(description="The run whose arm the others are compared with.")
    unit: str
    sentence: str
    runs: list[RunView] = Field(description="In the order asked for, the control first.")
    names: dict[str, str] = Field(description="Run to a name that no other of them has.")
    arms: dict[str, str] = Field(description="Run to the name of its arm, as `comparison` has it.")
    left_out: dict[str, str] = Field(description="Runs that are not in the comparison, and why.")
    without_recipe: list[str] = Field(description="Runs reported without one.")
    untold: list[str] = Field(description="Runs of which nothing tells whether they are judged as the control is.")
    differences: list[FieldDifference] = Field(description="Fields in which the recipes differ.")
    comparison: ComparisonView | None = Field(description="As of a sweep; `note` says why there is none.")
    note: str | None
