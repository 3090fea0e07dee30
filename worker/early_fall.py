"""The alert of a run that fell before its forecast was frozen: its own fit finds what no forecast can show.

Of a run without a budget no forecast is ever frozen, nor of one whose fit goes on finding the fall: this is all that
rings for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from forecurve.science import Curve, Fit
from forecurve.science.wording import compute_text
from server.alerts.models import Alert
from server.alerts.service import Settled
from server.metrics.curve import INHERITED, Point

from .assessment import Alarm
from .fallen import WAY_OUT

_LAST = 2
"""Evaluations, the newest, that must be down by half of the fall or more: one alone may be a bad evaluation."""


def early_fall(
    name: str, points: Sequence[Point], fitted: Fit, budget: float | None, settled: Settled | None
) -> Alarm | None:
    """A warning where the fit finds a fall that is not made up for; None where it finds none.

    Sudden or gradual: one and the same fall may be called a collapse at one refit and a decline at the next.

    Args:
        name: of the run.
        points: its evaluations. A fork is not blamed for what its parent did.
        fitted: of all of them, by itself.
        budget: of the run; without one nothing is frozen, and the words do not wait for it.
        settled: up to where its falls were resolved.
    """
    found, curve = fitted.misfit_detail, fitted.curve
    if found is None or found.since is None or not found.fallen:
        return None
    first = next(point for point in points if point.compute > found.since)
    if first.attempt == INHERITED or (settled is not None and not settled.is_before(first)):
        return None
    if not _is_down(curve, found.since, found.size):
        return None
    before = "" if budget is None else ", before its forecast was frozen"
    figures = f"{curve.reward[-1]:.2f} at {compute_text(curve.now)} {curve.unit}{before}"
    text = f"{figures}. {found.sentence} {curve.unit}. It may recover. {WAY_OUT}"
    evidence = {"fall": found.sentence, "size": found.size, "actual": float(curve.reward[-1])}
    title = f"{name} may {'have collapsed' if found.name == 'collapse' else 'be falling'}"
    return Alarm("WARN", title, text, first.compute, None, float(curve.now), evidence)


def recovered_since(alert: Alert, points: Sequence[Point]) -> float:
    """From which compute on nothing shows the fall that an alert was about: the first of its latest evaluations that
    are no longer down by half of it."""
    evidence, since = alert.evidence, alert.since_compute
    size = evidence.get("size", evidence.get("shortfall")) or 0.0
    before = [point.reward for point in points if since is not None and point.compute < since]
    floor = _level(before) - size / 2 if before else -math.inf
    down = [at for at, point in enumerate(points) if point.compute == since or point.reward < floor]
    return points[min(down[-1] + 1, len(points) - 1) if down else -1].compute


def _is_down(curve: Curve, since: float, size: float) -> bool:
    """Whether the newest evaluations lie far below where the run was before it fell, two neighbours together."""
    before = curve.reward[curve.compute <= since]
    if curve.points < len(before) + _LAST:
        return False
    return bool((curve.reward[-_LAST:] < _level(before) - size / 2).all())


def _level(before: npt.ArrayLike) -> float:
    """Where a run was before it fell: the best two neighbours, together."""
    rewards = np.asarray(before, dtype=np.float64)
    return float((rewards[1:] + rewards[:-1]).max() / 2) if len(rewards) > 1 else float(rewards[0])
