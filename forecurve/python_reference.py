"""The Python API as a page for people: `python -m forecurve.python_reference` prints docs/reference/python.md.

What is public is what `import forecurve` offers, and the values that these give.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import forecurve
from forecurve import science
from forecurve.client import Run

_HEAD = """\
# Python

Written by `make python-reference` from the docstrings; change it there. [From Python](../guides/python.md) shows how
these go together. `import forecurve` loads nothing heavy, and the package has types for who checks them.
The callback for [TRL and transformers](../guides/own-trainer.md#with-trl-or-transformers),
[verifiers](../guides/datasets.md) and [logs of other trackers](../guides/from-other-trackers.md) have guides
of their own."""

_PARTS: dict[str, Sequence[Any]] = {
    "Curves": (forecurve.Curve, forecurve.read_curves, forecurve.read_arms, science.Evaluation),
    "Forecasts": (
        forecurve.fit,
        forecurve.Fit,
        science.Estimate,
        science.Band,
        science.Reach,
        science.Draws,
        science.Misfit,
        science.predict_ending,
        science.milestones,
        forecurve.Prior,
    ),
    "What past runs tell": (forecurve.Siblings, science.Hindsight, forecurve.backtest, forecurve.Backtest),
    "What to do with a run": (forecurve.advise, forecurve.Advice, forecurve.advise_sweep),
    "What an arm changed": (forecurve.compare, forecurve.Comparison, science.ArmVerdict, science.pool_seeds),
    "Which runs to go on with": (
        forecurve.plan,
        forecurve.Plan,
        science.Outlook,
        science.Allocation,
        forecurve.rank,
        science.Rank,
    ),
    "A live run against its forecast": (
        forecurve.freeze,
        forecurve.FrozenForecast,
        forecurve.watch,
        forecurve.Watch,
        science.revision,
        science.Revision,
    ),
    "Reports from a training loop": (forecurve.init, Run, forecurve.log, forecurve.finish),
    "The service": (forecurve.connect, forecurve.Api),
    "Recipes": (forecurve.Recipe,),
    "Errors": (
        forecurve.FieldError,
        forecurve.CurveError,
        forecurve.CurveFileError,
        forecurve.PriorError,
        forecurve.AdviceError,
        forecurve.CompareError,
        forecurve.PlanError,
        forecurve.FrozenError,
        forecurve.ClientError,
        forecurve.ApiError,
    ),
}
_MADE = (forecurve.Curve, science.Evaluation, forecurve.Prior, forecurve.Siblings, forecurve.Api)
"""Classes that who uses them makes; the others are given."""
_INNER: dict[type, frozenset[str]] = {
    forecurve.Curve: frozenset({"continues", "identity", "noise_at", "of_answers", "resumed_before"}),
    forecurve.Fit: frozenset(
        {
            *("all_draws", "change", "departure", "late_start", "likelier_law", "other_rise", "posterior", "problem"),
            *("state_variance", "stream", "table_of_problem", "widening"),
        }
    ),
}
"""Members that are for other rooms of the science."""
_SECTION = re.compile(r"(Args|Attributes|Raises|Returns)((?:, \w+)*):\s*(.*)")
_NEXT_ERROR = re.compile(r"\. (?=\w+(?:Error|Order|Points): )")


def page() -> str:
    """The page, as Markdown."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    for title, things in _PARTS.items():
        yield from ["", f"## {title}"]
        for thing in things:
            yield from _class(thing) if inspect.isclass(thing) else _function(thing)


def _function(thing: Any) -> Iterator[str]:
    yield from ["", f"### {thing.__name__}", "", f"```python\n{_signature(thing)}\n```", "", *told(_doc(thing))]


def _class(thing: type) -> Iterator[str]:
    yield from ["", f"### {thing.__name__}", ""]
    if thing in _MADE:
        yield from [f"```python\n{_signature(thing)}\n```", ""]
    yield from told(_doc(thing))
    inner = _INNER.get(thing, frozenset())
    members = [(name, each) for name, each in _all_of(thing).items() if _is_told(name, each) and name not in inner]
    if members:
        yield from ["", "*Members:*"]
    for name, member in members:
        yield from _member(name, member)


def _all_of(thing: type) -> dict[str, Any]:
    """What a class has: its own, and behind it what it has of bases of ours that are not told of by themselves."""
    told_of = {each for things in _PARTS.values() for each in things}
    bases = [each for each in thing.__mro__[1:] if each.__module__.startswith("forecurve.") and each not in told_of]
    found: dict[str, Any] = {}
    for each in (thing, *bases):
        found |= {name: member for name, member in vars(each).items() if name not in found}
    return found


def _is_told(name: str, member: Any) -> bool:
    kinds = (property, cached_property, classmethod, staticmethod)
    return not name.startswith("_") and (isinstance(member, kinds) or inspect.isfunction(member))


def _member(name: str, member: Any) -> Iterator[str]:
    read = member.func if isinstance(member, cached_property) else getattr(member, "fget", None)
    head = f"{name}: {read.__annotations__['return']}" if read else _signature(getattr(member, "__func__", member))
    first, *rest = told(_doc(member))
    yield f"- `{head}`: {first}"
    yield from (f"  {line}" if line else "" for line in rest)


def _doc(thing: Any) -> str:
    doc = inspect.getdoc(thing)
    assert doc, f"{thing} has no docstring"
    return doc


class _Bare(str):
    """An annotation as it is written: `inspect` would quote it."""

    __slots__ = ()

    __repr__ = str.__str__


def _signature(thing: Any) -> str:
    found = inspect.signature(thing)
    shown = [
        each.replace(annotation=each.annotation if each.annotation is each.empty else _Bare(each.annotation))
        for each in found.parameters.values()
        if each.name not in ("self", "cls")
    ]
    back = found.return_annotation
    given = found.replace(
        parameters=shown, return_annotation=back if back in (found.empty, None, "None") else _Bare(back)
    )
    return f"{thing.__name__}{given}".replace(" -> 'None'", "").replace(" -> None", "")


def told(doc: str) -> list[str]:
    """A docstring as Markdown: its sections become lists, its examples and indented code become blocks."""
    lines: list[str] = []
    listing = False
    for block in (each.split("\n") for each in _NEXT_ERROR.sub(".\n    ", doc).split("\n\n")):
        listing = bool(_SECTION.fullmatch(block[0])) or (listing and block[0].startswith("    "))
        lines += ["", *_block(block, listing)]
    return lines[1:]


def _block(lines: Sequence[str], listing: bool) -> Iterator[str]:
    head = _SECTION.fullmatch(lines[0])
    if listing and not head:
        yield from _listed(lines)
    elif head:
        yield f"*{head[1]}{head[2]}:*{f' {head[3]}' if head[3] else ''}"
        yield from (line.strip() for line in lines[1:]) if head[1] == "Returns" else _listed(lines[1:])
    elif lines[0].startswith(">>>") or all(line.startswith("    ") for line in lines):
        yield from ["```python", *inspect.cleandoc("\n".join(["", *lines])).split("\n"), "```"]
    else:
        yield from lines


def _listed(lines: Sequence[str]) -> Iterator[str]:
    """`name: what it is` as items, with what goes on below them."""
    for line in lines:
        body = line.strip()
        begins = len(line) - len(body) == 4
        name, colon, rest = body.partition(":")
        if begins and colon and re.fullmatch(r"[\w*, ]+", name):
            yield f"- `{name}`:{rest}"
        elif begins:
            yield f"- {body}"
        else:
            yield f"  {body}"


if __name__ == "__main__":
    print(page(), end="")
