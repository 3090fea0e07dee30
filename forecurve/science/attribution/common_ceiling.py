"""The paper's own procedure (ScaleRL, App. A.5 and fig. 7), to stand beside ours.

Ceilings within 0.02 of one another (of the range of rewards) count as equal. The runs that agree with the control are
then fitted once more with A fixed at their mean, and the higher B is "at least as good". Least squares, no weights, no
interval, no seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import least_squares as minimise

from ..arrays import FloatArray
from ..curves.curve import Curve
from ..curves.margins import SAME_CEILING
from ..posterior.point import PointFit, least_squares
from ..posterior.sigmoid import log_compute, rise

_NODES = 40
_SHOWN = 500  # evaluations that the grid is laid over, at most
_LOG_B = (float(np.log(0.05)), float(np.log(20.0)))
_MID_REACH = 3.0  # ln C_mid beyond the evaluations
_MARGIN = 1e-9  # within bounds, where a search must start


@dataclass(frozen=True)
class PaperColumn:
    """What the paper's procedure would say of an arm.

    Attributes:
        A: least-squares ceiling, mean over seeds.
        B: exponent with A fixed at the common ceiling, mean over seeds; the free fit's where ceilings differ.
        common_A: that ceiling; None where the arm's lies further than the paper's margin from the control's.
        verdict: "ceiling up", "ceiling down", "faster", "slower" or "control".
    """

    A: float
    B: float
    common_A: float | None
    verdict: str

    def to_dict(self) -> dict[str, float | str | None]:
        """JSON-safe."""
        return {"A": self.A, "B": self.B, "common_A": self.common_A, "verdict": self.verdict}


def paper_columns(arms: Mapping[str, Sequence[Curve]], control: str) -> dict[str, PaperColumn]:
    """One column entry an arm, the control included.

    Args:
        arms: name -> the curves of its seeds, in one unit of compute and one range of rewards.
        control: the arm that others are compared with.
    """
    free = {name: [least_squares(curve) for curve in curves] for name, curves in arms.items()}
    A = {name: float(np.mean([fit.A for fit in fits])) for name, fits in free.items()}
    margin = SAME_CEILING * arms[control][0].width  # whatever the region that our own verdict uses
    same = [name for name in arms if abs(A[name] - A[control]) <= margin]
    common = float(np.mean([A[name] for name in same]))
    B = {
        name: float(
            np.mean([refit_at_ceiling(curve, common, fit).B for curve, fit in zip(arms[name], free[name], strict=True)])
        )
        for name in same
    }
    return {
        name: PaperColumn(A[name], B[name], common, "control" if name == control else _faster(B[name], B[control]))
        if name in same
        else PaperColumn(A[name], float(np.mean([fit.B for fit in free[name]])), None, _moved(A[name], A[control]))
        for name in arms
    }


def _faster(B: float, reference: float) -> str:
    return "faster" if reference < B else "slower"


def _moved(A: float, reference: float) -> str:
    return "ceiling up" if reference < A else "ceiling down"


def refit_at_ceiling(curve: Curve, A: float, free: PointFit | None = None) -> PointFit:
    """Unweighted least squares in (R0, B, C_mid) with the ceiling fixed.

    Args:
        curve: evaluations.
        A: the ceiling, in the reward's own scale.
        free: the fit with A free, a further place to start from.

    >>> compute = [1.0, 2.0, 4.0, 8.0, 16.0]
    >>> exact = [0.2 + 0.4 / (1 + (3.0 / c) ** 1.5) for c in compute]
    >>> again = refit_at_ceiling(Curve(compute, exact), 0.6)
    >>> f"{again.A} {again.B:.3f} {again.C_mid:.3f} {again.R0:.3f}"
    '0.6 1.500 3.000 0.200'
    """
    log_c, bottom, width = log_compute(curve.compute), curve.bounds[0], curve.width
    rate, top = (curve.reward - bottom) / width, (A - bottom) / width  # in any range the search is one and the same

    def residuals(parameters: FloatArray) -> FloatArray:
        g = rise(log_c, parameters[1:2], parameters[2:])[:, 0]
        return np.asarray(parameters[0] + (top - parameters[0]) * g - rate)

    starts = [_coarse(rate, log_c, top)]
    if free is not None:
        starts.append(np.array([(free.R0 - bottom) / width, np.log(free.B), np.log(free.C_mid)]))
    finite = log_c[np.isfinite(log_c)]
    low = np.array([0.0, _LOG_B[0], finite[0] - 2 * _MID_REACH])
    high = np.array([1.0, _LOG_B[1], finite[-1] + 2 * _MID_REACH])
    inside = [np.clip(start, low + _MARGIN, high - _MARGIN) for start in starts]
    ends = [minimise(residuals, start, bounds=(low, high), xtol=1e-12, ftol=1e-12, gtol=1e-12) for start in inside]
    best = min(ends, key=lambda end: float(end.cost))
    R0, log_b, log_mid = (float(value) for value in best.x)
    sse = 2 * float(best.cost) * width**2
    return PointFit(A, float(np.exp(log_b)), float(np.exp(log_mid)), bottom + width * R0, sse)


def _coarse(rate: FloatArray, log_c: FloatArray, A: float) -> FloatArray:
    """The best node of a grid over (ln B, ln C_mid), R0 in closed form: R - A g = R0 (1 - g). It is where a search
    begins: of many evaluations some will do."""
    shown = np.unique(np.linspace(0, len(rate) - 1, _SHOWN).astype(np.int64))
    rate, log_c = rate[shown], log_c[shown]
    finite = log_c[np.isfinite(log_c)]
    middle = np.linspace(finite[0] - _MID_REACH, finite[-1] + _MID_REACH, _NODES)
    log_b, log_mid = (axis.ravel() for axis in np.meshgrid(np.linspace(*_LOG_B, _NODES), middle))
    g = rise(log_c, log_b, log_mid)
    left, room = rate[:, None] - A * g, 1 - g
    start = np.einsum("nk,nk->k", left, room) / np.maximum(np.einsum("nk,nk->k", room, room), 1e-12)
    sse = ((left - start * room) ** 2).sum(axis=0)
    best = int(sse.argmin())
    return np.array([start[best], log_b[best], log_mid[best]])
