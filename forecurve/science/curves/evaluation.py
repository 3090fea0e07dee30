"""One more evaluation, as a run that goes on reports it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy.typing as npt

from .. import checks, errors


@dataclass(frozen=True)
class Evaluation:
    """One more evaluation of a run.

    Attributes:
        compute, reward: as in `Curve`.
        prompts, samples: its size; that of the evaluation before where left out.
        variance: its known sampling variance.
        counts: successes per prompt; needs `samples`.
    """

    compute: float
    reward: float
    prompts: float | None = None
    samples: float | None = None
    variance: float | None = None
    counts: npt.ArrayLike | None = None

    @classmethod
    def of(cls, point: Evaluation | Sequence[float]) -> Evaluation:
        """As it is, or of (compute, reward)."""
        if isinstance(point, Evaluation):
            return point
        point = point.tolist() if hasattr(point, "tolist") else point  # an array's or a tensor's row
        if isinstance(point, Sequence) and point and _is_point(point[0]):
            way_out = "update with one after another"
            raise errors.CurveError("point", checks.short(point), "one evaluation is taken at a time", way_out)
        if not isinstance(point, Sequence) or isinstance(point, str) or not 2 <= len(point) <= len(fields(cls)):
            way_out = "pass (compute, reward) or an Evaluation"
            raise errors.CurveError("point", checks.short(point), "a compute and a reward are needed", way_out)
        return cls(*point)


def _is_point(value: object) -> bool:
    """Whether it is no number but an evaluation of its own."""
    return isinstance(value, Evaluation | list | tuple) or bool(getattr(value, "ndim", 0))
