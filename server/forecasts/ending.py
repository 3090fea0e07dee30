"""How a run will end, in words and as a view: the interval of the newest forecast and what it rests on.

What is forecast is the mean of the run's last 10 % of evaluations at its budget, the number by which the forecast is
scored later. From 3 past runs on its interval is adjusted by how their forecasts turned out, from 9 on calibrated.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forecurve.science import Estimate
from forecurve.science.departures.misfit import HOLDS
from forecurve.science.past.conformal import WITHOUT, in_prior, rests_on
from forecurve.science.wording import ending_text
from server.runs.schemas import Ending

WITHHELD = "The forecast is withheld."
_WIDER = 2.0
"""Times as wide as the curve's interval at the budget: as much needs a word."""


def is_withheld(summary: Mapping[str, Any]) -> bool:
    """Whether a forecast's misfit forbids to say where the run goes: its numbers describe the data only."""
    return summary.get("misfit") not in HOLDS


def ending_of(summary: Mapping[str, Any]) -> Ending | None:
    """The ending that a stored forecast says; None without a budget, or where a misfit withholds it."""
    said = summary.get("at_budget")
    if not said or not said.get("calibrated") or is_withheld(summary):
        return None
    return Ending(**said["calibrated"], compute=said["compute"], calibration=_calibration(said["conformal"], summary))


def ending_ahead(summary: Mapping[str, Any], spent: float, *, over: bool) -> Ending | None:
    """The ending that is still to come: of a run that is over, or whose budget is spent, none is expected any more."""
    ending = None if over else ending_of(summary)
    return None if ending is None or ending.compute <= spent else ending


def _calibration(conformal: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """`calibrated on 12 past runs`, `adjusted by 5 past runs, 2 of its arm`; `with 2 past runs and 4 as far along`,
    where they are only its prior."""
    if runs := conformal["runs"]:
        return rests_on(runs, conformal.get("seeds", 0), conformal.get("ahead", 0))  # older forecasts do not say these
    prior = summary.get("prior")
    if not prior:
        return WITHOUT
    known = len(prior.get("runs") or ())
    return in_prior(known, prior.get("ahead", 0)) if known else "with past runs"  # older forecasts did not keep them


def _in_sentence(ending: Ending, summary: Mapping[str, Any]) -> str:
    """What the interval rests on; where without past runs it is far wider than the curve's, that this is why."""
    curve = (summary.get("at_budget") or {}).get("curve")
    if ending.calibration != WITHOUT or not curve:
        return ending.calibration
    wider = ending.upper - ending.lower >= _WIDER * (curve["upper"] - curve["lower"])
    return f"wider {WITHOUT}" if wider else WITHOUT


def ending_words(summary: Mapping[str, Any], unit: str, now: float) -> str:
    """A sentence to go behind the forecast's own; empty where there is nothing to say of the end.

    `Expected to end at 0.76 (90 %, wider without past runs: 0.70 to 0.82) when 100 GPU-hours are spent.`

    Args:
        summary: of the forecast.
        unit, now: of compute, and what is spent of it; of a budget that is spent there is no end to come.
    """
    if is_withheld(summary):
        return WITHHELD
    ending = ending_ahead(summary, now, over=False)
    if ending is None:
        return ""
    said = Estimate(ending.median, ending.lower, ending.upper)
    return ending_text(said, _in_sentence(ending, summary), ending.compute, unit)
