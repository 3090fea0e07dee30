"""What a person composes on the page for new runs and sweeps: texts of a form, as the body that the API takes."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel

from forecurve.recipes import SCALERL_REVERSIONS, RecipeError
from forecurve.recipes.given import read_changes

Kind = Literal["run", "leave_one_out", "one_factor", "grid"]
INGREDIENTS = tuple(SCALERL_REVERSIONS)
DEFAULT_BASE = "preset:scalerl"
_SEEDS = re.compile(r"(\d{1,10})(?:\s*-\s*(\d{1,10}))?")
_MOST_SEEDS = 100
T = TypeVar("T")


class Composed(BaseModel):
    """The form as it was sent; all of it stands in the URL.

    Attributes:
        base: `preset:NAME` or `recipe:ID`.
        changes: `field = value`, one a line.
        factors: `field = value, value`, one a line.
        seeds: whole numbers, `0, 1, 2` or `0-4`.
        tags: with commas between them.
        budget_compute: what the runs share, with policy `allocate`; nothing for the sum of their budgets.
        sent: whether somebody has sent it; a form that was only opened is at no fault yet.
    """

    kind: Kind = "leave_one_out"
    base: str = DEFAULT_BASE
    name: str = ""
    changes: str = ""
    ingredient: list[str] = []
    factors: str = ""
    seeds: str = "0"
    policy: Literal["advise", "auto", "allocate"] = "advise"
    budget_compute: str = ""
    tags: str = ""
    note: str = ""
    sent: bool = False

    @property
    def ticked(self) -> list[str]:
        """The ingredients to leave out; all of them on a form that is only opened."""
        return self.ingredient if self.sent or self.ingredient else list(INGREDIENTS)

    @property
    def lacks_factors(self) -> bool:
        """Whether there is nothing to plan yet."""
        return self.kind in ("one_factor", "grid") and not self.factors.strip()

    def body(self) -> dict[str, Any]:
        """That of `POST /v1/runs` for a run, else that of `POST /v1/sweeps`.

        Raises:
            RecipeError: every text that cannot be read; the rest is the service's to judge.
        """
        faults: list[dict[str, Any]] = []

        def taken(read: Callable[[], T]) -> T | None:
            try:
                return read()
            except RecipeError as error:
                faults.extend(error.problems)
                return None

        changes = taken(lambda: changes_of(self.changes))
        design = None if self.kind == "run" else taken(self._design)
        seeds = None if self.kind == "run" else taken(lambda: seeds_of(self.seeds))
        shared = taken(lambda: budget_of(self.budget_compute)) if self._shares else None
        if faults:
            raise RecipeError(faults)
        kind, _, named = self.base.partition(":")
        body: dict[str, Any] = {"name": self.name.strip()} if self.name.strip() else {}
        body |= {"recipe_id" if kind == "recipe" else "preset": named}
        body |= {"changes": changes} if changes else {}
        if design is not None:
            body |= {"design": design | {"seeds": seeds}, "policy": self.policy}
            body |= {} if shared is None else {"budget_compute": shared}
        return body | self._labels()

    @property
    def _shares(self) -> bool:
        return self.kind != "run" and self.policy == "allocate"

    def _labels(self) -> dict[str, Any]:
        tags = [tag.strip() for tag in self.tags.split(",") if tag.strip()]
        note = self.note.replace("\r\n", "\n").strip()
        return ({"tags": tags} if tags else {}) | ({"note": note} if note else {})

    def control_of(self, field: str) -> str:
        """The control of the form that a fault of the service is about."""
        varied = "ingredient" if self.kind == "leave_one_out" else "factors"
        if field.startswith("design"):
            part = field.removeprefix("design.").partition(".")[0]
            return {"seeds": "seeds", "ingredients": "ingredient"}.get(part, varied)
        if field in ("preset", "recipe_id"):
            return "base"
        if field in ("policy", "budget_compute"):
            return field
        if field == "note" or field.startswith("tags"):
            return field.partition(".")[0]
        tried = [line.partition("=")[0].strip() for line in _lines(self.factors)]
        return "name" if field == "name" else "factors" if varied == "factors" and field in tried else "changes"

    def _design(self) -> dict[str, Any]:
        if self.kind != "leave_one_out":
            return {"kind": self.kind, "factors": factors_of(self.factors)}
        if not self.ticked:
            raise RecipeError.one("design.ingredients", [], "none is ticked; tick those to leave out, one an arm")
        every = set(self.ticked) == set(INGREDIENTS)
        return {"kind": self.kind} | ({} if every else {"ingredients": self.ticked})


def changes_of(text: str) -> dict[str, Any]:
    """`field = value`, one a line, values in YAML.

    Raises:
        RecipeError: lines that are none.
    """
    way_out = "write `field = value`, such as `optimizer.learning_rate = 1e-4`"
    return _fields("changes", [(line, line) for line in _lines(text)], way_out)


def factors_of(text: str) -> dict[str, Any]:
    """`field = value, value`, one a line, values in YAML.

    Raises:
        RecipeError: lines that are none, or there is none.
    """
    way_out = "write `field = value, value`, such as `optimizer.learning_rate = 1e-4, 1e-3`"
    found = _fields("design.factors", [(line, _as_list(line)) for line in _lines(text)], way_out)
    if not found:
        raise RecipeError.one("design.factors", None, f"there is none; {way_out}")
    return found


def _as_list(line: str) -> str:
    field, sign, values = line.partition("=")
    written = values.strip()
    return line if written.startswith("[") and written.endswith("]") else f"{field}{sign}[{values}]"


def _fields(control: str, assignments: list[tuple[str, str]], way_out: str) -> dict[str, Any]:
    """What is assigned, by the lines as they were written."""
    found: dict[str, Any] = {}
    for line, assignment in assignments:
        try:
            ((field, value),) = read_changes([assignment]).items()
        except RecipeError:
            raise RecipeError.one(control, line, f"cannot be read; {way_out}") from None
        if field in found:
            raise RecipeError.one(control, line, f"`{field}` stands twice; keep one")
        found[field] = value
    return found


def seeds_of(text: str) -> list[int]:
    """`0, 1, 2` or `0-4`, at most 100.

    Raises:
        RecipeError: no whole numbers, or too many.
    """
    seeds: list[int] = []
    for part in filter(None, re.split(r"[,;]|\s+(?=\d)", text)):
        found = _SEEDS.fullmatch(part.strip())
        if found is None:
            raise RecipeError.one("design.seeds", text, "give whole numbers, such as `0, 1, 2` or `0-4`")
        first, last = int(found[1]), int(found[2] or found[1])
        if not 0 <= last - first < _MOST_SEEDS or len(seeds) >= _MOST_SEEDS:
            raise RecipeError.one("design.seeds", text, f"at most {_MOST_SEEDS} seeds, from the lowest to the highest")
        seeds += range(first, last + 1)
    if not seeds:
        raise RecipeError.one("design.seeds", text, "give one at least, such as `0`")
    return seeds


def budget_of(text: str) -> float | None:
    """An amount of compute; None where none is written.

    Raises:
        RecipeError: it is no number.
    """
    if not text.strip():
        return None
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise RecipeError.one("budget_compute", text, "give a number, such as `240`, or nothing")
    return value


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def as_command(body: dict[str, Any]) -> str:
    """The same from a terminal: a sweep's file, or a run's command; empty where there is none."""
    if "design" in body:
        return yaml.safe_dump(body, sort_keys=False, allow_unicode=True, default_flow_style=None, width=100)
    if "preset" not in body:
        return ""
    sets = [f"--set {shlex.quote(f'{path}={json.dumps(value)}')}" for path, value in body.get("changes", {}).items()]
    told = [("name", body.get("name")), *(("tag", tag) for tag in body.get("tags", [])), ("note", body.get("note"))]
    flags = [f"--{flag} {shlex.quote(value)}" for flag, value in told if value]
    return " ".join(["forecurve run submit", f"--preset {shlex.quote(body['preset'])}", *sets, *flags])
