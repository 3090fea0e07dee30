"""What `init` is given, checked, as the bodies that ask the service for a run or for the next attempt of one."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import Any, get_args

from forecurve.limits import LEAST_COMPUTE, MOST_COMPUTE, MOST_NOTE, MOST_TAG, MOST_TAGS, ComputeUnit, is_compute
from forecurve.signs import is_obeyed, is_seen

from .errors import ClientError
from .values import as_number, plain

_MOST_SEED = 2**31 - 1


@dataclass(frozen=True)
class Asked:
    """What the run of a training loop is to be.

    Raises:
        ClientError: a value is none that could be sent.
    """

    name: str | None = None
    project: str | None = None
    recipe: Mapping[str, Any] | str | None = None
    unit: str | None = None
    budget: float | None = None
    task: str | None = None
    arm: str | None = None
    seed: int | None = None
    tags: Sequence[str] = ()
    note: str | None = None

    def __post_init__(self) -> None:
        for field in ("name", "project", "recipe", "unit", "task", "arm", "note"):
            _check_sendable(field, getattr(self, field))
        if self.unit is not None:
            _check_unit(self.unit)
        if self.budget is not None:
            _budget(self.budget)
        if self.seed is not None:
            _seed(self.seed)
        _check_tags(self.tags)
        if self.note is not None:
            _check_note(self.note)

    @property
    def full_name(self) -> str | None:
        full = f"{self.project}/{self.name}" if self.project and self.name else self.name or self.project
        return full and plain(full)

    def new_run(self) -> dict[str, Any]:
        """The body of `POST /v1/runs` for an external run."""
        unit = self.unit or ("GPU-hours" if self.recipe is None else None)
        named = {"name": self.full_name} if self.full_name else {}
        return {"executor": "external"} | named | self._labels() | self._traits(unit)

    def next_attempt(self) -> dict[str, Any]:
        """The body of `POST /v1/runs/{id}/attempts`: what the run must have, to be the one that is meant."""
        return self._traits(self.unit)

    def _labels(self) -> dict[str, Any]:
        """What a run is given once; it has them whatever it is asked to go on with."""
        labels = {"tags": _each_once(self.tags), "note": _one_way(self.note or "")}
        return {field: told for field, told in labels.items() if told}

    def _traits(self, unit: str | None) -> dict[str, Any]:
        body: dict[str, Any] = {"compute_unit": unit} if unit else {}
        if self.budget is not None:
            body["budget_compute"] = _budget(self.budget)
        if self.seed is not None:
            body["seed"] = _seed(self.seed)
        body |= {field: told for field in ("task", "arm") if (told := getattr(self, field)) is not None}
        if isinstance(self.recipe, str):
            body["preset"] = self.recipe
        elif self.recipe is not None:
            body["recipe"] = dict(self.recipe)
        return body


def plain_config(config: Mapping[str, Any] | None) -> Any:
    """The config as JSON can keep it: it is for people, and no reason to keep a run from starting."""
    try:
        return json.loads(json.dumps(dict(config or {}), default=repr))
    except (TypeError, ValueError, RecursionError):
        return reprlib.repr(config)


def _check_sendable(field: str, value: Any) -> None:
    takes = (str, Mapping, NoneType) if field == "recipe" else (str, NoneType)
    kinds = "a preset's name or a mapping" if field == "recipe" else "text"
    if not isinstance(value, takes):
        raise ClientError(f"{field} is {reprlib.repr(value)}; it must be {kinds}")
    if field in ("name", "project"):
        return  # half characters in them are mended: the name of a file may well be one
    try:
        sent = dict(value) if isinstance(value, Mapping) else value
        json.dumps(sent, allow_nan=False, ensure_ascii=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        way_out = "give finite numbers, text, lists and mappings"
        raise ClientError(f"{field} is {reprlib.repr(value)}, which cannot be sent ({error}); {way_out}") from None


def _each_once(tags: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(tag.strip() for tag in tags))


def _one_way(note: str) -> str:
    """A note as it is checked and sent: the service would count both signs of `\\r\\n`, and strips less than Python."""
    return note.strip().replace("\r\n", "\n")


def _check_tags(tags: Any) -> None:
    """As the service takes them, like a unit: nothing else of the run should wait for a tag to be mended."""
    if isinstance(tags, str) or not isinstance(tags, Sequence):
        raise ClientError(f'tags are {reprlib.repr(tags)}; they must be a list of text, as tags=["baseline"]')
    for tag in tags:
        _check_sendable("a tag", tag)
        shown = (tag or "").strip()
        if not is_seen(shown) or len(shown) > MOST_TAG or "," in shown or any(map(is_obeyed, shown)):
            takes = f"1 to {MOST_TAG} characters on one line, and no comma"
            raise ClientError(f"a tag is {reprlib.repr(tag)}; it must have {takes}")
    count = len(_each_once(tags))
    if count > MOST_TAGS:
        raise ClientError(f"there are {count} tags; a run has {MOST_TAGS} at most, so leave some out")


def _check_note(note: str) -> None:
    shown = _one_way(note)
    if len(shown) > MOST_NOTE:
        raise ClientError(f"note has {len(shown):,} characters; it may have {MOST_NOTE:,}")
    obeyed = next((sign for sign in shown if is_obeyed(sign) and sign not in "\n\t"), None)
    if obeyed is not None:
        raise ClientError(f"note has {obeyed!a}, which is a command to a terminal and no sign; write it without")


def _check_unit(unit: str) -> None:
    """Here and not by the service alone: a run that is kept offline would hear of it when it is over."""
    if unit not in get_args(ComputeUnit):
        raise ClientError(f"unit is {reprlib.repr(unit)}; it is one of {', '.join(get_args(ComputeUnit))}")


def _seed(seed: Any) -> int:
    number = as_number(seed)
    if number is None or not (0 <= number <= _MOST_SEED and number == int(number)):
        takes = f"a whole number from 0 to {_MOST_SEED}; leave it out where it is not known"
        raise ClientError(f"seed is {reprlib.repr(seed)}; it must be {takes}")
    return int(number)


def _budget(budget: Any) -> float:
    number = as_number(budget)
    if number is None or not (number > 0 and is_compute(number)):
        takes = f"a number from {LEAST_COMPUTE:g} to {MOST_COMPUTE:g}: the compute the run may spend, in its unit"
        raise ClientError(f"budget is {reprlib.repr(budget)}; it must be {takes}")
    return number
