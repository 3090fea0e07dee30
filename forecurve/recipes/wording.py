"""What is wrong with a field, in words for who sent it: pydantic's own speak of Python's types."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from forecurve.limits import LEAST_COMPUTE

_LIST, _OBJECT = "must be a list, as in [1, 2]", "must be an object, as in {{...}}"
_NUMBER, _WHOLE, _EITHER = "must be a number", "must be a whole number", "must be true or false"
_TIME = "must be a time with its zone, as in 2026-01-31T12:00:00Z"

_WORDS = {
    "missing": "is required",
    "string_type": "must be text",
    "string_too_short": "must have at least {min_length} characters",
    "string_too_long": "must have at most {max_length} characters",
    "string_pattern_mismatch": "must match the pattern {pattern}",
    "too_short": "must have at least {min_length} entries, has {actual_length}",
    "too_long": "must have at most {max_length} entries, has {actual_length}",
    "int_type": _WHOLE,
    "int_parsing": _WHOLE,
    "int_from_float": _WHOLE,
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "must be a finite number",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be at most {le}",
    "bool_type": _EITHER,
    "bool_parsing": _EITHER,
    "list_type": _LIST,
    "tuple_type": _LIST,
    "dict_type": _OBJECT,
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "datetime_type": _TIME,
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
}


def in_words(kind: str, context: Mapping[str, Any], otherwise: str, given: Any = None) -> str:
    """The fault of pydantic's error type `kind` in what was `given`; `otherwise` where the message is our own, or has
    no better words."""
    if kind in ("literal_error", "enum"):
        expected = str(context["expected"])
        choices = ", ".join(re.findall(r"'([^']*)'", expected))
        return f"must be one of {choices or expected}"
    if given is not None and context.get("ge") == LEAST_COMPUTE and float(given) <= 0:
        return "must be above 0"
    words = _WORDS.get(kind)
    if words is None:
        return otherwise
    if context.get("field_type") == "Value":  # a name: its length is looked at once it has been stripped
        words = words.replace("entries", "characters")
    if context.get("actual_length", 0) is None:  # of objects with too many entries the others are not counted
        words = words.removesuffix(", has {actual_length}")
    return words.format(**{name: _brief(value) for name, value in context.items()})


def _brief(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
