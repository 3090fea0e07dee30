"""Requests drawn from the API's own description: most of them hold, some have one thing that does not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

Schema = Mapping[str, Any]

ODD = st.sampled_from([None, True, -1, 0.5, 10**30, "", " ", "a\x00b", "\u202e", "x" * 300, [], [[]], {}, {"": None}])
"""What no field, or hardly any, takes."""

_TEXT = st.text(max_size=12)
_ANY = st.none() | st.booleans() | st.integers(-5, 5) | _TEXT
_MOST_EXTRA = 2


class Drawn:
    """Strategies for the schemas of one description."""

    def __init__(self, described: Schema) -> None:
        self._described = described

    def of(self, schema: Schema) -> st.SearchStrategy[Any]:
        """Values of a schema, as pydantic writes them; now and then one of its examples."""
        if "$ref" in schema:
            return st.deferred(lambda: self.of(self._resolved(schema["$ref"])))
        drawn = self._drawn(schema)
        return st.sampled_from(schema["examples"]) | drawn if schema.get("examples") else drawn

    def spoilt(self, values: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        """Of five values one is spoilt somewhere."""
        return st.integers(0, 4).flatmap(lambda roll: values.flatmap(_spoilt) if roll == 4 else values)

    def _resolved(self, reference: str) -> Schema:
        found: Any = self._described
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]
        resolved: Schema = found
        return resolved

    def _drawn(self, schema: Schema) -> st.SearchStrategy[Any]:
        for alternatives in ("anyOf", "oneOf"):
            if alternatives in schema:
                return st.one_of([self.of(each) for each in schema[alternatives]])
        if "enum" in schema or "const" in schema:
            return st.sampled_from(schema.get("enum") or [schema["const"]])
        kinds = {
            "null": lambda _: st.none(),
            "boolean": lambda _: st.booleans(),
            "integer": _integers,
            "number": _numbers,
            "string": _strings,
            "array": self._arrays,
            "object": self._objects,
        }
        return kinds[schema["type"]](schema) if "type" in schema else _ANY

    def _arrays(self, schema: Schema) -> st.SearchStrategy[Any]:
        least = schema.get("minItems", 0)
        most = min(schema.get("maxItems", 4), least + 4)
        if "prefixItems" in schema:
            return st.tuples(*(self.of(item) for item in schema["prefixItems"])).map(list)
        return st.lists(self.of(schema.get("items", {})), min_size=least, max_size=most)

    def _objects(self, schema: Schema) -> st.SearchStrategy[Any]:
        fields = {name: self.of(kind) for name, kind in schema.get("properties", {}).items()}
        needed = {name: fields[name] for name in schema.get("required", ())}
        optional = {name: values for name, values in fields.items() if name not in needed}
        stated = st.fixed_dictionaries(needed, optional=optional)
        extra = schema.get("additionalProperties", False)
        if fields or extra is False:
            return stated
        names = self.of(schema["propertyNames"]) if "propertyNames" in schema else _TEXT
        values = _ANY if extra is True else self.of(extra)
        return st.dictionaries(names, values, min_size=schema.get("minProperties", 0), max_size=_MOST_EXTRA)


def _integers(schema: Schema) -> st.SearchStrategy[int]:
    least = schema.get("minimum", -5)
    most = schema.get("maximum", least + 1000)
    return st.integers(least, min(most, least + 50)) | st.integers(least, most)


def _numbers(schema: Schema) -> st.SearchStrategy[float]:
    least, most = schema.get("minimum"), schema.get("maximum")
    return st.floats(least, most, allow_nan=False, allow_infinity=False)


def _strings(schema: Schema) -> st.SearchStrategy[str]:
    if schema.get("format") == "date-time":
        return st.datetimes().map(lambda time: time.isoformat() + "Z")
    least, most = schema.get("minLength", 0), schema.get("maxLength", 30)
    if "pattern" in schema:
        matching = st.from_regex(schema["pattern"])
        return matching.filter(lambda text: least <= len(text) <= most)
    return st.text(min_size=least, max_size=min(most, least + 20))


def _spoilt(value: Any) -> st.SearchStrategy[Any]:
    if not isinstance(value, dict) or not value:
        return ODD
    return st.sampled_from(sorted(value)).flatmap(lambda name: ODD.map(lambda odd: {**value, name: odd})) | st.just(
        {**value, "no_such_field": 1}
    )
