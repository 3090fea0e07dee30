"""Jinja set up once: everything escaped, undefined names fail, the formats of `web.formats` as filters."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from forecurve.limits import MOST_NOTE
from forecurve.science.wording import compute_text, share_text
from server.metrics.variance import standard_error
from server.runs.sentence import brief
from server.runs.states import TERMINAL, DesiredState, Status

from . import drawings, formats
from .assets import Assets
from .shared_compute import becomes_of

TEMPLATES = Path(__file__).parent / "templates"
_FILTERS = {
    "rate": formats.rate,
    "evaluated": formats.evaluated,
    "standard_error": formats.standard_error,
    "median": formats.median,
    "interval": formats.interval,
    "gain": formats.gain,
    "interval3": formats.interval3,
    "amount": formats.amount,
    "compute": formats.compute,
    "given": formats.given,
    "seeds": formats.seeds,
    "estimated": formats.estimated,
    "told": compute_text,
    "when": formats.when,
    "column": formats.column,
    "significant": formats.significant,
    "ago": formats.ago,
    "left": formats.left,
    "change": formats.change,
    "times": formats.times,
    "utc": formats.utc,
    "iso": formats.iso,
    "size": formats.size,
    "number": formats.number,
    "setting": formats.setting,
    "difference": formats.difference,
    "short_difference": formats.short_difference,
    "words": formats.words,
    "policy": formats.policy,
    "misfit": formats.misfit,
    "why_withheld": formats.why_withheld,
    "rests_on": formats.rests_on,
    "ticks": formats.ticks,
    "brief": brief,
    "share": share_text,
    "query": lambda parameters: urlencode(parameters, doseq=True),
}


def make_environment(assets: Assets) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(_FILTERS)
    environment.globals.update(_globals(assets))
    return environment


def _globals(assets: Assets) -> dict[str, Any]:
    return {
        "asset": assets.url,
        "modules": assets.urls,
        "headroom": formats.headroom,
        "knows_ceiling": formats.knows_ceiling,
        "error_of": standard_error,
        "becomes_of": becomes_of,
        "spent_range": formats.spent_range,
        "sparkline": drawings.sparkline,
        "interval_bar": drawings.interval_bar,
        "bar_axis": drawings.bar_axis,
        "most_note": MOST_NOTE,
        "is_over": lambda run: run.status in TERMINAL,
        "may_cancel": lambda run: (
            run.status not in TERMINAL
            and run.desired_state != DesiredState.CANCEL
            and (run.desired_state == DesiredState.STOP or run.status == Status.SUSPECT)
        ),
        "may_pause": lambda run: (
            run.executor == "ray" and run.status not in TERMINAL and run.desired_state == DesiredState.RUN
        ),
        "may_resume": lambda run: run.status == Status.PAUSED and run.desired_state == DesiredState.PAUSE,
        "may_stop": lambda run: (
            run.status not in TERMINAL and run.desired_state in (DesiredState.RUN, DesiredState.PAUSE)
        ),
    }
