"""Runs as one another's past: which of them tell of which, and the prior that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from ..curves.arms import past_like
from ..curves.curve import Curve
from ..fitting.fit import Fit, fit
from ..posterior.prior import FLAT, Prior
from .family import sibling_prior


class Kin:
    """Runs at full length, or as far as they went, in one unit and metric. Copies of one run count once.

    Args:
        curves: the runs.
        fitted: called whenever one more of them has been fitted by itself.

    `at`, wherever it is asked for, is the place among them of the run that is asked about, which tells nothing of
    itself; None for a run that is not one of them.
    """

    def __init__(self, curves: Sequence[Curve], fitted: Callable[[], None] = lambda: None):
        self.curves = curves
        self._arms = [curve.arm for curve in curves]
        self._fitted = fitted
        self._priors: dict[tuple[int | None, str | None, bool], Prior] = {}

    @cached_property
    def alone(self) -> list[Fit]:
        """Each fitted by itself."""
        return [self._alone(curve) for curve in self.curves]

    def others(self, at: int | None) -> list[int]:
        """The places of all other runs."""
        return self._distinct if at is None else self._apart[at]

    def prior(self, at: int | None, arm: str | None = None, *, mates: bool = True) -> Prior:
        """Made of all others, or of other arms alone without `mates`.

        Args:
            arm: of a run that is not one of them; without a meaning for one that is.
        """
        arm = arm if at is None else self._arms[at]
        key = at, arm, mates
        if key not in self._priors:
            told = self.others(at) if mates else self._of_other_arms(at, arm)
            alike = not mates and len(told) == len(self.others(at))
            self._priors[key] = self.prior(at, arm) if alike else sibling_prior([self.alone[one] for one in told], arm)
        return self._priors[key]

    def past_like(self, places: Sequence[int], arm: str | None) -> tuple[list[int], bool]:
        """Which of these stand to the rest as they all stand to a run of `arm`: see `arms.past_like`."""
        return past_like(self._arms, places, arm)

    @cached_property
    def _distinct(self) -> list[int]:
        """The first of each run."""
        return list({curve.evaluations: at for at, curve in reversed(list(enumerate(self.curves)))}.values())

    @cached_property
    def _apart(self) -> list[list[int]]:
        """For each run the others that are other runs."""
        evaluations = [curve.evaluations for curve in self.curves]
        return [[other for other in self._distinct if evaluations[other] != own] for own in evaluations]

    def _of_other_arms(self, at: int | None, arm: str | None) -> list[int]:
        return [other for other in self.others(at) if arm is None or self._arms[other] != arm]

    def _alone(self, curve: Curve) -> Fit:
        found = fit(curve, prior=FLAT)
        self._fitted()
        return found
