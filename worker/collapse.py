"""The alert of a run that collapsed before its forecast was frozen: its own fit finds what no forecast can show.

Of a run without a budget no forecast is ever frozen, so this is all that rings for it.
"""

from __future__ import annotations

from collections.abc import Sequence

from forecurve.science import Curve, Fit
from forecurve.science.wording import compute_text
from server.metrics.curve import INHERITED, Point

from .assessment import Alarm
from .fallen import WAY_OUT

_LAST = 2
"""Evaluations, the newest, that must be down by half of the fall or more: one alone may be a bad evaluation."""


def collapse_of(name: str, points: Sequence[Point], fitted: Fit, settled: float | None) -> Alarm | None:
    """A warning where the fit finds a collapse that is not made up for; None where it finds none.

    Args:
        name: of the run.
        points: its evaluations. A fork is not blamed for what its parent did.
        fitted: of all of them, by itself.
        settled: the compute up to which its collapses were resolved.
    """
    found, curve = fitted.misfit_detail, fitted.curve
    if found is None or found.name != "collapse" or found.since is None or not found.fallen:
        return None
    own = max((point.compute for point in points if point.attempt == INHERITED), default=0.0)
    if found.since < max(own, settled or 0.0) or not _is_down(curve, found.since, found.size):
        return None
    first = curve.compute[curve.compute > found.since][0]
    figures = f"{curve.reward[-1]:.2f} at {compute_text(curve.now)} {curve.unit}"
    text = f"{figures}, before its forecast was frozen. {found.sentence} {curve.unit}. It may recover. {WAY_OUT}"
    evidence = {"fall": found.sentence, "size": found.size, "actual": float(curve.reward[-1])}
    return Alarm("WARN", f"{name} may have collapsed", text, float(first), float(curve.now), evidence)


def _is_down(curve: Curve, since: float, size: float) -> bool:
    """Whether the newest evaluations lie far below where the run was before it fell, two neighbours together."""
    before = curve.reward[curve.compute <= since]
    if curve.points < len(before) + _LAST:
        return False
    level = float((before[1:] + before[:-1]).max() / 2) if len(before) > 1 else float(before[0])
    return bool((curve.reward[-_LAST:] < level - size / 2).all())
