"""Why one sigmoid is the wrong curve: named, dated and sized, and what becomes of the forecast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Name = Literal["pinned", "constant", "collapse", "decline", "two-phase", "break", "shape"]
HOLDS = (None, "shape")  # misfits with which the forecast is still given
FALLEN = ("collapse", "decline")
CHANGED = (*FALLEN, "break")  # after which a run is a run of its own
SHAPELESS = ("pinned", "constant")

LEAST_FALL = 0.02  # of the reward's range: smaller falls are no reason to act
AT_ONCE = 0.6  # of what a collapse loses
RATIO = 18.0  # twice the log likelihood ratio; about 1e-4 by chi-square, more after the search over change points
OVER_CUT = 6.0  # of a change within what would else be an early regime, over the sigmoid with that regime
MOST_WIDENING = 5.0
_COLLAPSE = 0.5  # a sudden loss of this share of all that was gained, or of LARGE of the range
LARGE = 0.15


def least_collapse(gained: float) -> float:
    """What a run that had gained so much loses at once in a collapse, at least; shares of the range."""
    return min(LARGE, max(_COLLAPSE * gained, 2 * LEAST_FALL))


@dataclass(frozen=True)
class Misfit:
    """A reason not to trust the sigmoid.

    Attributes:
        name: pinned, constant, collapse, decline, two-phase, break or shape.
        since: compute from which it shows, None for the whole curve.
        size: the fall at its deepest, second rise, level change or twice the log likelihood ratio.
        sentence: what a colleague would say.
        widening: factor, at least 1, by which intervals at later compute should be widened about their median; None
            when the forecast is to be withheld.
    """

    name: Name
    since: float | None
    size: float
    sentence: str
    widening: float | None = None
    back: bool = False
    """Whether a run that fell is again where it fell from."""

    @property
    def withheld(self) -> bool:
        """Whether no forecast should be given: the curve is not the one that the forecast assumes."""
        return self.name not in HOLDS

    @property
    def fallen(self) -> bool:
        """Whether the run has lost what it had, and not come back."""
        return self.name in FALLEN and not self.back
