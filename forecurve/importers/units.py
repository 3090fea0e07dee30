"""In what unit a logged number counts compute, by its name; and which numbers are no compute at all."""

from __future__ import annotations

import re

from forecurve.curve_cells import CurveFileError

from .logs import CLOCKS, STEPS

_UNITS = {
    r"gpu[-_ ]?hours?": "GPU-hours",
    r"gpu[-_ ]?(seconds?|secs?)": "GPU-seconds",
    r"hours?|hrs?": "hours",
    r"_?runtime|_absolute_runtime|relative time.*|elapsed[-_]seconds|seconds|secs?": "seconds",
    r"(.*_)?tokens(_seen)?": "tokens",
    r"(.*_)?(flops?|flos)": "FLOPs",
    r"epochs?": "epochs",
    r"(.*_)?(episodes?)": "episodes",
    r"(.*_)?samples": "samples",
}


def unit_named(name: str) -> str:
    """The unit of a logged number; its own name, without what stands before it, where
    that tells none.

    >>> [unit_named(name) for name in ("train/global_step", "perf/gpu_hours", "Relative Time (Process)", "env/frames")]
    ['steps', 'GPU-hours', 'seconds', 'frames']
    """
    if name in STEPS:
        return "steps"
    last = name.rpartition("/")[2]
    return next((unit for pattern, unit in _UNITS.items() if re.fullmatch(pattern, last.lower())), last or name)


def refuse_clock(name: str) -> None:
    """CurveFileError when that number, asked for as the compute, is a date: one counts from 1970, not from the start
    of the run."""
    if name in CLOCKS:
        way_out = "take the step, or a number that was logged"
        raise CurveFileError("compute", name, "it is a date and no compute", way_out)
