"""Sweep designs: from one base recipe to the arms and runs of an ablation.

Leave-one-out (§4 of the paper) starts from the full recipe and reverts one ingredient an arm; one-factor sets
one field an arm to each of its values; grid crosses all fields.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from .errors import Known, RecipeError, from_validation, suggestion
from .paths import get_value, with_changes
from .presets import SCALERL_REVERSIONS, lacking, reversion
from .schema import Recipe, Section

MAX_RUNS = 2000
CONTROL = "control"
_WRITTEN_OUT = 10**12
"""A grid of many fields has more arms than Python writes digits."""

_NO_FACTOR = {
    "seed": "is no factor",
    "name": "is no factor: a name changes nothing of the training, so its arms would be one run",
}
Changes = dict[str, Any]
Seeds = Annotated[tuple[int, ...], Field(min_length=1, max_length=100)]


class LeaveOneOut(Section):
    """Control plus one arm for every ingredient of ScaleRL, that ingredient reverted."""

    kind: Literal["leave_one_out"]
    ingredients: tuple[str, ...] | None = Field(
        None, description=f"Which to revert; all of {sorted(SCALERL_REVERSIONS)} by default."
    )
    seeds: Seeds = (0,)


class OneFactor(Section):
    """Control plus one arm for every value of every factor, all other fields as in the base recipe."""

    kind: Literal["one_factor"]
    factors: dict[str, list[Any]] = Field(min_length=1, description="Dotted field to the values to try.")
    seeds: Seeds = (0,)


class Grid(Section):
    """Every combination of the factors' values; the combination equal to the base recipe is the control."""

    kind: Literal["grid"]
    factors: dict[str, list[Any]] = Field(min_length=1, description="Dotted field to the values to cross.")
    seeds: Seeds = (0,)


_KINDS: dict[str, type[LeaveOneOut] | type[OneFactor] | type[Grid]] = {
    "leave_one_out": LeaveOneOut,
    "one_factor": OneFactor,
    "grid": Grid,
}


class Arm(Section):
    """One variation of a sweep: its name, its difference from the base recipe, its resolved recipe."""

    name: str
    changes: dict[str, Any]
    recipe: Recipe

    @property
    def is_control(self) -> bool:
        """True for the arm that changes nothing."""
        return not self.changes


class PlannedRun(Section):
    """One arm with one seed: what will be a run."""

    arm: str
    changes: dict[str, Any]
    seed: int
    is_control: bool
    recipe: Recipe


def load_design(body: Any) -> LeaveOneOut | OneFactor | Grid:
    """Validate a design given as a plain mapping; RecipeError names every fault under `design.`."""
    if not isinstance(body, dict):
        raise RecipeError.one("design", body, f"a design is a mapping with `kind`, one of {', '.join(_KINDS)}")
    kind = body.get("kind")
    if kind not in _KINDS:
        raise RecipeError.one("design.kind", kind, f"must be one of {', '.join(_KINDS)}")
    model = _KINDS[kind]
    try:
        return model.model_validate(body)
    except ValidationError as error:
        faults = from_validation(error, model, body, Known({"": list(model.model_fields)})).problems
        raise RecipeError([fault | {"field": f"design.{fault['field']}"} for fault in faults]) from None


def expand(base: Recipe, design: LeaveOneOut | OneFactor | Grid) -> list[Arm]:
    """The arms of a design, control first.

    Raises:
        RecipeError: a field that does not exist, a value it does not take, an arm that changes nothing, two arms that
            are equal or have equal names, more runs than MAX_RUNS.
    """
    _refuse_too_many(_least_arms(design), design)  # before any of them is made: a grid of six fields may have millions
    control = Arm(name=CONTROL, changes={}, recipe=base)
    arms = [
        Arm(name=name, changes=changes, recipe=with_changes(base, changes))
        for name, changes in _named_changes(base, design)
    ]
    if isinstance(design, OneFactor):
        arms = [arm for arm in arms if arm.recipe.digest != base.digest]
    _refuse_equal_arms([control, *arms])
    return [control, *arms]


def planned_runs(base: Recipe, design: LeaveOneOut | OneFactor | Grid) -> list[PlannedRun]:
    """Every arm with every seed, control first; at most MAX_RUNS."""
    if len(set(design.seeds)) != len(design.seeds):
        raise RecipeError.one("design.seeds", list(design.seeds), "a seed stands twice; each seed of an arm is one run")
    for place, seed in enumerate(design.seeds):
        _check_seed(base, place, seed)  # then it is one in every arm
    arms = expand(base, design)
    _refuse_too_many(len(arms), design)
    return [
        PlannedRun(
            arm=arm.name,
            changes=arm.changes,
            seed=seed,
            is_control=arm.is_control,
            recipe=arm.recipe.model_copy(update={"seed": seed}),
        )
        for seed in design.seeds
        for arm in arms
    ]


def further_arm(base: Recipe, changes: Changes, name: str | None = None) -> Arm:
    """An arm beside those of a design; without a name it is called by its changes, as one of `OneFactor`.

    Raises:
        RecipeError: a change that does not hold or is none of an arm, or all of them together change nothing.
    """
    for path in ("seed", "name"):
        if path in changes:
            raise RecipeError.one(f"changes.{path}", changes[path], f"{_NO_FACTOR[path]}; leave it out")
    recipe = with_changes(base, changes)
    if recipe.digest == base.digest:
        raise RecipeError.one("changes", changes, "change nothing of the base recipe, so it would be the control again")
    differing = {path: value for path, value in changes.items() if _is_other(base, path, value)}
    return Arm(name=name or _arm_name(differing, _labels(list(differing))), changes=differing, recipe=recipe)


def _is_other(base: Recipe, path: str, value: Any) -> bool:
    try:
        return bool(get_value(base, path) != value)
    except RecipeError:  # a field of another kind, which the changes choose
        return True


def _check_seed(base: Recipe, place: int, seed: int) -> None:
    try:
        with_changes(base, {"seed": seed})
    except RecipeError as error:
        raise RecipeError([fault | {"field": f"design.seeds.{place}"} for fault in error.problems]) from None


def _least_arms(design: LeaveOneOut | OneFactor | Grid) -> int:
    """How many arms there are if every factor's values include the base recipe's."""
    if isinstance(design, LeaveOneOut):
        return 1 + len(SCALERL_REVERSIONS if design.ingredients is None else design.ingredients)
    sizes = [len(values) for values in design.factors.values()]
    return math.prod(sizes) if isinstance(design, Grid) else 1 + sum(sizes) - len(sizes)


def _refuse_too_many(arms: int, design: LeaveOneOut | OneFactor | Grid) -> None:
    runs = arms * len(design.seeds)
    if runs > MAX_RUNS:
        told = f"{arms} arms x {len(design.seeds)} seeds" if runs <= _WRITTEN_OUT else "this"
        message = f"{told} is more than {MAX_RUNS} runs; split the sweep"
        raise RecipeError.one("design", min(runs, _WRITTEN_OUT), message)


def plan_hash(base: Recipe, design: LeaveOneOut | OneFactor | Grid) -> str:
    """Digest of all that decides what will be run; a submission may name it to be sure it gets what was planned."""
    body = {"base": base.to_dict(), "design": design.model_dump(mode="json")}
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def _named_changes(base: Recipe, design: LeaveOneOut | OneFactor | Grid) -> list[tuple[str, Changes]]:
    """Each arm's name and its changes, the control left out."""
    if isinstance(design, LeaveOneOut):
        return _leave_one_out(base, design.ingredients)
    for path, values in design.factors.items():
        if path == "seed":
            raise RecipeError.one(
                "design.factors.seed", values, f"{_NO_FACTOR[path]}; list the seeds in `design.seeds`"
            )
        if path == "name":
            raise RecipeError.one("design.factors.name", values, f"{_NO_FACTOR[path]}; sweep another field")
        if not values:
            raise RecipeError.one(f"design.factors.{path}", values, "needs at least one value to try")
        if any(value in values[:i] for i, value in enumerate(values)):
            raise RecipeError.one(f"design.factors.{path}", values, "a value stands twice; each value is one arm")
    now = _values_now(base, design.factors)
    every: Iterable[Changes]
    if isinstance(design, OneFactor):
        every = ({path: value} for path, values in design.factors.items() for value in values)
    else:
        crossed = itertools.product(*design.factors.values())
        every = (dict(zip(design.factors, values, strict=True)) for values in crossed)
    differing = [{path: value for path, value in changes.items() if value != now[path]} for changes in every]
    labels = _labels(list(design.factors))
    return [(_arm_name(changes, labels), changes) for changes in differing if changes]


def _values_now(base: Recipe, factors: Mapping[str, list[Any]]) -> Changes:
    """What the base recipe has of each factor; all that are no fields of it are told at once, with their values."""
    now: Changes = {}
    faults: list[dict[str, Any]] = []
    for path, values in factors.items():
        try:
            now[path] = get_value(base, path)
        except RecipeError as error:
            faults += [fault | {"value": values} for fault in error.problems]
    if faults:
        raise RecipeError(faults)
    return now


def _leave_one_out(base: Recipe, ingredients: tuple[str, ...] | None) -> list[tuple[str, Changes]]:
    chosen = ingredients if ingredients is not None else tuple(SCALERL_REVERSIONS)
    for name in chosen:
        if name not in SCALERL_REVERSIONS:
            message = "no such ingredient" + suggestion(name, list(SCALERL_REVERSIONS))
            raise RecipeError.one("design.ingredients", name, message)
    _refuse_lacking(base, chosen)
    return [(f"no-{name}", reversion(base, name)) for name in chosen]


def _refuse_lacking(base: Recipe, chosen: tuple[str, ...]) -> None:
    """An arm that reverts what the base does not have would be the base with something else put in."""
    instead = {name: found for name in chosen if (found := lacking(base, name))}
    if not instead:
        return
    rest = [name for name in chosen if name not in instead]
    way_out = f"set `ingredients` to {json.dumps(rest)}" if rest else "take another base recipe, or another design"
    told = ", ".join(f"{name} ({found})" for name, found in instead.items())
    raise RecipeError.one("design.ingredients", list(instead), f"the base recipe lacks {told}; {way_out}")


def _labels(paths: list[str]) -> dict[str, str]:
    """What each field is called in the arms' names: its last part, or the whole path where two end alike."""
    last = {path: path.rpartition(".")[2] for path in paths}
    often = Counter(last.values())
    return {path: part if often[part] == 1 else path for path, part in last.items()}


def _arm_name(changes: Changes, labels: dict[str, str]) -> str:
    return " ".join(f"{labels[path]}={value}" for path, value in changes.items())


def _refuse_equal_arms(arms: list[Arm]) -> None:
    seen: dict[str, str] = {}
    names: set[str] = set()
    for arm in arms:
        digest = arm.recipe.digest
        if digest in seen:
            raise RecipeError.one("design", arm.name, f"is the same recipe as arm `{seen[digest]}`")
        if arm.name in names:
            raise RecipeError.one("design", arm.name, "two arms have this name: their values are written alike")
        seen[digest] = arm.name
        names.add(arm.name)
