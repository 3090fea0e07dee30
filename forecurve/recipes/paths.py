"""Dotted field paths into a recipe: `algorithm.loss`, `optimizer.learning_rate`.

Some sections are unions by `kind`. A path names a field of any kind; a recipe has the fields of its own. Changing a
`kind` starts that section anew with the other kind's defaults.
"""

from __future__ import annotations

from functools import cache
from typing import Any, get_args

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from .errors import Known, RecipeError, from_validation, suggestion
from .schema import Recipe, Section


@cache
def section_kinds() -> dict[str, dict[str, type[Section]]]:
    """Every section that is a union: its name to each of its kinds."""
    return {
        name: {kind.model_fields["kind"].default: kind for kind in sections_in(info.annotation)}
        for name, info in Recipe.model_fields.items()
        if len(sections_in(info.annotation)) > 1
    }


@cache
def section_fields() -> dict[str, list[str]]:
    """Every section's dotted path ("" for the recipe itself) with the names of its fields, those of any kind."""
    fields = {"": list(Recipe.model_fields)}
    for name, info in Recipe.model_fields.items():
        sections = sections_in(info.annotation)
        if sections:
            fields[name] = list(dict.fromkeys(field for section in sections for field in section.model_fields))
    return fields


def leaf_paths(recipe: Recipe | None = None) -> list[str]:
    """Every field that can be set or swept, as a dotted path: those that `recipe` has, or those of any kind."""
    if recipe is None:
        return list(_all_paths())
    own = {name: list(type(getattr(recipe, name)).model_fields) for name in section_kinds()}
    return _joined(section_fields() | own)


@cache
def _all_paths() -> tuple[str, ...]:
    return tuple(_joined(section_fields()))


def _joined(sections: dict[str, list[str]]) -> list[str]:
    joined = (f"{section}.{name}" if section else name for section, names in sections.items() for name in names)
    return [path for path in joined if path not in sections]


def load_recipe(body: Any) -> Recipe:
    """Validate a plain mapping.

    Raises:
        RecipeError: an unknown key, a wrong type, a value out of range, fields that disagree; all faults at once
            (those between sections once each section is valid alone).
    """
    if not isinstance(body, dict):
        given = "nothing" if body is None else type(body).__name__
        raise RecipeError.one("recipe", given, "a recipe is a mapping of sections; see `forecurve recipe show scalerl`")
    if "design" in body:  # whose other fields would be told as unknown, one by one
        told = "this is a sweep, no recipe; `forecurve sweep plan FILE` reads its file"
        raise RecipeError.one("design", body["design"], told)
    try:
        return Recipe.model_validate(body)
    except ValidationError as error:
        raise from_validation(error, Recipe, body, _known()) from None


def with_changes(recipe: Recipe, changes: dict[str, Any]) -> Recipe:
    """A copy of `recipe` with dotted fields replaced, validated again.

    A changed `kind` comes first, whatever the order: the other changes then apply to the new kind's defaults.

    Raises:
        RecipeError: paths that name no field, and values that the fields do not take; all of them at once.
    """
    unknown = {path: fault for path in changes if (fault := _fault_of(path))}
    body = recipe.to_dict()
    for path, value in sorted(changes.items(), key=lambda change: not change[0].endswith(".kind")):
        section, _, leaf = path.rpartition(".")
        if path in unknown:
            _hold(body, path, value)
            continue
        if leaf == "kind" and value != body[section]["kind"]:
            body[section] = {}
        (body[section] if section else body)[leaf] = value
    problems = [{"field": path, "value": changes[path], "message": fault} for path, fault in unknown.items()]
    try:
        changed = load_recipe(body)
    except RecipeError as error:
        raise RecipeError([*problems, *(one for one in error.problems if one["field"] not in unknown)]) from None
    if problems:
        raise RecipeError(problems)
    return changed


def _hold(body: dict[str, Any], path: str, value: Any) -> None:
    """Put in what names no field: what fields should agree on is not looked at then, for one of them may be meant."""
    section, _, leaf = path.rpartition(".")
    if section in section_fields():
        fields = body[section] if section else body
        fields.setdefault(leaf, value)
    else:
        body[path] = value


def get_value(recipe: Recipe, path: str) -> Any:
    """The value at a dotted path, as JSON types.

    Raises:
        RecipeError: no such field, or one of a kind that this recipe does not have.
    """
    check_path(path)
    section, _, leaf = path.rpartition(".")
    body = recipe.to_dict()
    fields = body[section] if section else body
    if leaf not in fields:
        owners = [kind for kind, model in section_kinds()[section].items() if leaf in model.model_fields]
        message = f"belongs to {section}.kind {' or '.join(owners)}, but the recipe's is {fields['kind']}"
        raise RecipeError.one(path, None, message)
    return fields[leaf]


def check_path(path: str) -> None:
    """Raise RecipeError unless `path` names a field that can be set."""
    if fault := _fault_of(path):
        raise RecipeError.one(path, None, fault)


def _fault_of(path: str) -> str | None:
    """Why a path names no field that can be set, if so, and which one may be meant."""
    leaves = _all_paths()
    if path in leaves:
        return None
    if path in section_fields():
        return f"is a section, not a field; its fields: {', '.join(section_fields()[path])}"
    by_last_name = [leaf for leaf in leaves if leaf.rsplit(".", 1)[-1] == path.rsplit(".", 1)[-1]]
    hint = f"; did you mean `{by_last_name[0]}`?" if by_last_name else suggestion(path, list(leaves))
    return f"no such field in a recipe{hint}"


def diff(control: Recipe, other: Recipe) -> dict[str, tuple[Any, Any]]:
    """Fields in which two recipes differ: dotted path to (control's, other's) value. The name is no difference.

    The fewest changes that lead from `control` to `other`: where a `kind` differs, only what is not that kind's
    default is listed beside it, with None for the control, which has no such field.
    """
    differences: dict[str, tuple[Any, Any]] = {}
    ours, theirs = _flat(control), _flat(other)
    for path, value in theirs.items():
        section = path.partition(".")[0]
        changed_kind = section in section_kinds() and ours[f"{section}.kind"] != theirs[f"{section}.kind"]
        if not changed_kind or path.endswith(".kind"):
            before = after_kind = ours[path]
        else:
            before, after_kind = None, _default(section, theirs[f"{section}.kind"], path)
        if value != after_kind and path != "name":
            differences[path] = before, value
    return differences


_SAME_WEIGHTS = ("model.dtype", "model.gradient_checkpointing")
"""Fields of `model` that leave a checkpoint's weights what they are."""


def other_weights(control: Recipe, other: Recipe) -> dict[str, tuple[Any, Any]]:
    """The part of `diff` by which weights trained with `control` are none of `other`'s model; empty when they fit."""
    found = diff(control, other)
    return {path: pair for path, pair in found.items() if path.startswith("model.") and path not in _SAME_WEIGHTS}


_SAME_COURSE = (
    "budget.compute",
    "budget.max_steps",
    "checkpoint.every_steps",
    "checkpoint.keep_every",
    "checkpoint.keep_last",
    "evaluation.every_steps",
    "generation.self_check_threshold",
    "log_rollouts_every",
    "resources.stall_seconds",
)
"""Fields that say how long a run goes on and what is kept of it, not what it learns for its compute."""


def other_course(control: Recipe, other: Recipe) -> dict[str, tuple[Any, Any]]:
    """The part of `diff` by which runs of the two have different curves of pass rate against compute; empty when one
    goes on as the other does. A learning rate that falls towards the last step ties the course to what decides it."""
    falls = other.optimizer.schedule != "constant"
    tied = _last_step_fields(other) if falls and control.budget.last_step != other.budget.last_step else ()
    return {path: pair for path, pair in diff(control, other).items() if path not in _SAME_COURSE or path in tied}


def _last_step_fields(recipe: Recipe) -> tuple[str, ...]:
    """What `Budget.last_step` is made of."""
    return ("budget.max_steps", "budget.compute") if recipe.budget.unit == "steps" else ("budget.max_steps",)


def _flat(recipe: Recipe) -> dict[str, Any]:
    body = recipe.to_dict()
    flat: dict[str, Any] = {}
    for path in leaf_paths(recipe):
        section, _, leaf = path.rpartition(".")
        flat[path] = body[section][leaf] if section else body[leaf]
    return flat


_NO_DEFAULT = object()


def _default(section: str, kind: str, path: str) -> Any:
    field = section_kinds()[section][kind].model_fields[path.rpartition(".")[2]]
    if field.is_required():
        return _NO_DEFAULT
    return to_jsonable_python(field.get_default(call_default_factory=True, validated_data={}))


def sections_in(annotation: Any) -> list[type[Section]]:
    """The section, or the sections of a union, that a field holds; none for a plain value."""
    if isinstance(annotation, type):
        return [annotation] if issubclass(annotation, Section) else []
    return [kind for kind in get_args(annotation) if isinstance(kind, type) and issubclass(kind, Section)]


def _known() -> Known:
    kinds = {
        name: {kind: list(model.model_fields) for kind, model in models.items()}
        for name, models in section_kinds().items()
    }
    return Known(section_fields(), kinds)
