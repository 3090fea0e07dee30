"""The forecast of a metric in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forecurve.digits import as_given
from forecurve.signs import visible

from .output import compute, interval


def describe(found: Mapping[str, Any]) -> list[str]:
    """The lines of `forecurve run forecast`."""
    forecast, unit = found["forecast"], found["unit"]
    facts = {"now": _now(found), "past": _past(found)}
    if forecast and not forecast["withheld"]:
        facts["ceiling"] = f"{'' if forecast['ceiling_known'] else 'not identified: '}{interval(forecast['A'])}"
        if at_budget := forecast["at_budget"]:
            facts["at budget"] = f"{interval(at_budget['curve'])} at {as_given(at_budget['compute'])} {unit}"
    if ending := found["ending"]:
        facts["ending"] = f"{interval(ending)}, {ending['calibration']}"
    told = [f"  {name:<12}{value}" for name, value in facts.items() if value]
    return [visible(line) for line in (found["metric"], *told, "", found["sentence"])]


def _now(found: Mapping[str, Any]) -> str:
    last, count = found["points"][-1], len(found["points"])
    step = f"about step {last['step']}" if found["thinned"] else f"step {last['step']}"
    told = f"{compute(last['reward'])} at {compute(last['compute'], found['unit'])}, {step}"
    averaged = f"; {found['logged'] - found['lost']:,} values as {count} means" if found["thinned"] else ""
    lost = f"; {found['lost']:,} left out: nobody says how much compute they took" if found["lost"] else ""
    return f"{told}{averaged}{lost}"


def _past(found: Mapping[str, Any]) -> str | None:
    """How many others it may learn from."""
    others = len(found["past"])
    return f"{others} comparable run{'' if others == 1 else 's'} logged it too" if others else None
