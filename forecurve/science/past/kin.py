"""Runs as one another's past: which of them tell of which, and the prior that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from ..curves.arms import past_like
from ..curves.curve import Curve
from ..fitting.fit import Fit, fit
from ..fitting.outcome import stood_at
from ..posterior.prior import FLAT, Prior
from .family import sibling_prior
from .mates import Ends
from .telling import is_finished, least_far_ahead, least_to_tell


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
        self._priors: dict[tuple[tuple[int, ...], str | None, int], Prior] = {}

    @cached_property
    def alone(self) -> list[Fit]:
        """Each fitted by itself."""
        return [self._alone(curve) for curve in self.curves]

    def others(self, at: int | None) -> list[int]:
        """The places of all other runs."""
        return self._distinct if at is None else self._apart[at]

    def prior(
        self,
        at: int | None,
        arm: str | None = None,
        *,
        mates: bool = True,
        now: float = 0.0,
        budget: float | None = None,
        but: int | None = None,
    ) -> Prior:
        """Made of all others, or of other arms alone without `mates`; with a budget, of those that tell of a run which
        has spent `now` of it (`telling`).

        Args:
            arm: of a run that is not one of them; without a meaning for one that is.
            but: the place of one more run that tells nothing.
        """
        arm = self._arm_of(at, arm)
        told = self.others(at) if mates else self._of_other_arms(at, arm)
        if but is not None:
            told = [one for one in told if self._first[one] != self._first[but]]
        if budget is None:
            return self._made_of(tuple(told), arm, len(told))
        went = {one: self.curves[one].now for one in told}
        finished = sum(is_finished(each, budget) for each in went.values())
        least = least_to_tell(now, budget, finished)
        return self._made_of(tuple(one for one in told if went[one] >= least), arm, finished)

    def _made_of(self, told: tuple[int, ...], arm: str | None, finished: int) -> Prior:
        key = told, arm, finished
        if key not in self._priors:
            self._priors[key] = sibling_prior([self.alone[one] for one in told], arm, finished=finished)
        return self._priors[key]

    def past_like(self, places: Sequence[int], arm: str | None) -> tuple[list[int], bool]:
        """Which of these stand to the rest as they all stand to a run of `arm`: see `arms.past_like`. Of an arm's seeds
        it is the one with the lowest number, wherever it stands among them."""
        by_seed = sorted(places, key=lambda at: (self.curves[at].seed or 0, self.curves[at].name))
        like, known = past_like(self._arms, by_seed, arm)
        return sorted(like), known

    def mates_ended(self, at: int | None, compute: float, arm: str | None = None, *, but: int | None = None) -> Ends:
        """How the other seeds of its arm stood when they had spent so much, those that went as far.

        Args:
            arm: of a run that is not one of them; without a meaning for one that is.
            but: the place of one more run that tells nothing.
        """
        mates = self._seeds.get(self._arm_of(at, arm), ())
        apart = [self._first[one] for one in (at, but) if one is not None]
        told = [self.curves[one] for one in mates if one not in apart]
        stood = [stood_at(curve.compute, curve.reward, compute) for curve in told]
        return tuple(one for one in stood if one is not None)

    def mates_ahead(self, at: int | None, now: float, budget: float, arm: str | None = None) -> list[int]:
        """The places of the seeds of its arm that are not finished but far ahead of a run which has spent `now` of
        `budget`.

        Args:
            arm: of a run that is not one of them; without a meaning for one that is.
        """
        seeds = self._seeds.get(self._arm_of(at, arm), ())
        told, least = set(self.others(at)).intersection(seeds), least_far_ahead(now, budget)
        far = [one for one in sorted(told) if self.curves[one].now >= least]
        return [one for one in far if not is_finished(self.curves[one].now, budget)]

    def _arm_of(self, at: int | None, arm: str | None) -> str | None:
        """Of one of the runs its own, whatever is said of it."""
        return arm if at is None else self._arms[at]

    @cached_property
    def _seeds(self) -> dict[str | None, list[int]]:
        """The places of the seeds of each arm."""
        seeds: dict[str | None, list[int]] = {}
        for at in self._distinct:
            if self._arms[at] is not None:
                seeds.setdefault(self._arms[at], []).append(at)
        return seeds

    @cached_property
    def _first(self) -> list[int]:
        """For each the place of the first that is the same run."""
        places: dict[tuple[object, ...], int] = {}
        return [places.setdefault(curve.identity, at) for at, curve in enumerate(self.curves)]

    @cached_property
    def _distinct(self) -> list[int]:
        """The first of each run."""
        return list(dict.fromkeys(reversed(self._first)))

    @cached_property
    def _apart(self) -> list[list[int]]:
        """For each run the others that are other runs."""
        return [[other for other in self._distinct if other != own] for own in self._first]

    def _of_other_arms(self, at: int | None, arm: str | None) -> list[int]:
        return [other for other in self.others(at) if arm is None or self._arms[other] != arm]

    def _alone(self, curve: Curve) -> Fit:
        found = fit(curve, prior=FLAT)
        self._fitted()
        return found
