"""fit(curve) -> Fit: the posterior of a run's curve, and what can be read off it."""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from .. import checks, errors
from ..arrays import FloatArray
from ..curves.averaging import MOST_FITTED
from ..curves.curve import Curve
from ..curves.evaluation import Evaluation
from ..departures.degenerate import degenerate, lost_all, lost_at_last
from ..departures.drift import drift
from ..departures.finding import find_misfit
from ..departures.late_start import LateStart, begins_late, late_start
from ..departures.misfit import HOLDS, Misfit, Name
from ..departures.other_rise import OtherRise, other_rise
from ..posterior.drawing import Posterior, draw, over_cells
from ..posterior.draws import Draws
from ..posterior.integral import Table, integrate, log_sum
from ..posterior.point import PointFit, least_squares
from ..posterior.prior import Prior, named_prior
from ..posterior.problem import Problem, Setting
from ..posterior.streaming import Stream, updated
from ..values import Band, Estimate, Reach, band_at, estimate_of
from .aftermath import Change
from .cutoff import Cutoff
from .evaluations import evaluations_on_curve
from .identification import identified_shares
from .preparing import problem_of

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from ..past.hindsight import Hindsight

IDENTIFIED = 0.75  # share of the precision from the data: they at least halve the prior's sd
_MORE_PROBABLE = 0.5
_NARROW = 0.1  # of the range: a ceiling that a prior knows this well is worth saying, with its source


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """The posterior of one run's curve. Intervals are 90 %.

    Attributes:
        curve: what was fitted, with the sizes of evaluations that the prior tells.
        prior: what was assumed.
        seconds: what the fit cost.
        setting, table, last: of the quadrature; `last` is the noise filter's state at the last evaluation, (H, 3).
    """

    curve: Curve
    prior: Prior
    seconds: float
    setting: Setting
    table: Table
    last: FloatArray

    @cached_property
    def posterior(self) -> Posterior:
        """Equally weighted draws, in the scale where rewards lie in [0, 1]."""
        return draw(self.setting, self.table, self.last[self.table.alive])

    @cached_property
    def problem(self) -> Problem:
        """The evaluations as the noise model sees them."""
        return problem_of(self.curve, self.prior)

    @cached_property
    def stream(self) -> Stream:
        """Where the sums stand, for `update`."""
        return Stream.of(self)

    def update(self, point: Evaluation | tuple[float, ...]) -> Fit:
        """The fit with one more evaluation: the same as a refit, at a cost that does not grow with the run.

        Args:
            point: an `Evaluation`, or (compute, reward) of an evaluation of the same size as the last one.

        Draws are made when something is read off. Beyond 400 evaluations a refit averages neighbours and this does not.

        Raises:
            CurveError: as for a whole curve.
        """
        began = time.perf_counter()
        curve = self.curve.extended(Evaluation.of(point))
        taken = updated(self, curve, MOST_FITTED)
        if taken is None:
            return fit(curve, prior=self.prior)
        made = Fit(curve, self.prior, time.perf_counter() - began, taken.setting, taken.table, taken.last)
        made.__dict__["stream"] = taken.stream
        return made

    @cached_property
    def A(self) -> Estimate:
        """The ceiling."""
        return estimate_of(self.all_draws.A)

    @cached_property
    def B(self) -> Estimate:
        """The exponent."""
        return self._of_nodes(self.posterior.B, self.posterior.cells[0])

    @cached_property
    def C_mid(self) -> Estimate:
        """The midpoint, in the curve's unit of compute."""
        return self._of_nodes(self.posterior.C_mid, self.posterior.cells[1])

    @cached_property
    def R0(self) -> Estimate:
        """The start."""
        return estimate_of(self.all_draws.R0)

    @cached_property
    def identified(self) -> dict[str, float]:
        """For each parameter, the share of its precision that comes from the data, 0 to 1.

        For A the reference is "somewhere above what is reached now": knowing only that gives 0.
        """
        return identified_shares(self)

    @cached_property
    def misfit_detail(self) -> Misfit | None:
        """Why one sigmoid is the wrong curve, or None."""
        found = self.departure
        if (found is not None and found.withheld) or self.late_start is None:
            return found
        evidence = log_sum(self.table_of_problem.masses.nodes)
        return begins_late(self.late_start, evidence, self.curve.width) or found

    @cached_property
    def departure(self) -> Misfit | None:
        """Why one sigmoid is the wrong curve, wherever it begins, or None."""
        found = degenerate(self.curve)
        if found is not None:
            return found
        found = find_misfit(self.problem, self.posterior, self._scale[1])
        if found is not None and found.withheld:
            return found
        return lost_all(self.curve) or lost_at_last(self.curve) or found

    @cached_property
    def change(self) -> Change | None:
        """Where it fell, broke or rose anew, None where it did not."""
        found = self.misfit_detail
        since = None if found is None or not found.withheld else found.since
        return None if since is None else Change(self.curve, since, self.prior)

    @cached_property
    def late_start(self) -> LateStart | None:
        """The evaluations as a run that began to rise late, None where nothing speaks for it."""
        return late_start(self.posterior, self.problem)

    @cached_property
    def table_of_problem(self) -> Table:
        """The table of the very evaluations that `problem` has, to weigh other laws against: a long stream's own holds
        some one by one that a refit averages."""
        alike = self.setting.points == self.problem.setting.points
        return self.table if alike else integrate(self.problem)

    @cached_property
    def other_rise(self) -> OtherRise | None:
        """How evaluations to come look to another law of the rise; None where past runs tell how it goes on."""
        return other_rise(self)

    @property
    def likelier_law(self) -> OtherRise | None:
        """Other laws, where they are together more probable than the sigmoid as far as no past run tells: advice takes
        all of them."""
        other = self.other_rise
        return other if other is not None and other.share >= _MORE_PROBABLE else None

    @property
    def cutoff(self) -> Cutoff | None:
        """The early regime that the fit most likely set apart, or None where there is hardly one."""
        count, early = self.posterior.cut, self.posterior.early
        if not count:
            return None
        evaluations = int(self.problem.begins[count])
        return Cutoff(float(self.curve.compute[evaluations]), evaluations, float(sum(early.values())))

    @property
    def outliers(self) -> FloatArray:
        """Compute of the evaluations that lie far off what is on both sides and were given hardly any weight."""
        return self.curve.compute[self.problem.outliers]

    @property
    def stretches(self) -> list[FloatArray]:
        """Compute of the outliers that are neighbours, two or more together."""
        at = self.problem.outliers
        groups = np.split(at, np.flatnonzero(np.diff(at) > 1) + 1)
        return [self.curve.compute[group] for group in groups if len(group) > 1]

    @property
    def state_variance(self) -> FloatArray:
        """Variance of the wandering part at the last evaluation under each hypothesis, in units of alpha v; (H,)."""
        return self.last[:, 0]

    @cached_property
    def headroom(self) -> Estimate:
        """How far the ceiling lies above the curve at the last evaluation: never below 0, whatever that one's noise."""
        return estimate_of(self.all_draws.A - self.all_draws.reward_at(np.array([self.curve.now]))[0])

    @property
    def points(self) -> int:
        """Evaluations that were fitted."""
        return self.curve.points

    @property
    def averaged(self) -> bool:
        """Whether neighbouring evaluations were averaged, because there are more than the fit needs."""
        return self.curve.points > MOST_FITTED

    @property
    def unit(self) -> str:
        """Unit of compute."""
        return self.curve.unit

    @property
    def misfit(self) -> Name | None:
        """Why one sigmoid is the wrong curve, see `Misfit`, or None."""
        return None if self.misfit_detail is None else self.misfit_detail.name

    @property
    def withheld(self) -> bool:
        """Whether a misfit forbids to say where the run goes."""
        return self.misfit not in HOLDS

    @property
    def widening(self) -> float:
        """How much wider intervals at later compute are to be about their median, 1 or more: `shape`."""
        found = self.misfit_detail
        return 1.0 if found is None or found.widening is None else found.widening

    @cached_property
    def best(self) -> PointFit:
        """The least-squares curve; computed when it is first asked for."""
        return least_squares(self.curve)

    @property
    def ceiling_identified(self) -> bool:
        """Whether the data at least halve what was unknown of A."""
        return self.identified["A"] >= IDENTIFIED

    @property
    def ceiling_known(self) -> bool:
        """Whether A is worth saying: identified by the data, or known by the prior to a tenth of the range."""
        told = self.prior.informative and self.A.width < _NARROW * self.curve.width
        return not self.withheld and (self.ceiling_identified or told)

    @property
    def all_draws(self) -> Draws:
        """Every draw of the posterior, in the reward's own scale."""
        low, width = self._scale
        p = self.posterior
        return Draws(low + width * p.A, p.B, p.C_mid, low + width * p.R0, self.setting.burr, self.setting.begins)

    def draws(self, n: int, seed: int) -> Draws:
        """n draws with replacement, reproducible by seed.

        Raises:
            CurveError: n or seed is no whole number, or is negative.
        """
        for name, value in (("n", n), ("seed", seed)):
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
                raise errors.CurveError(name, checks.short(value), "a whole number is needed", "give one from 0 on")
        chosen = np.random.default_rng(seed).integers(0, len(self.posterior.A), n)
        every = self.all_draws
        return Draws(every.A[chosen], every.B[chosen], every.C_mid[chosen], every.R0[chosen], every.burr, every.begins)

    def predict(self, compute: npt.ArrayLike) -> Band:
        """The band of the curve itself, without the noise of an evaluation."""
        x = checks.computes_of("compute", compute)
        return band_at(x, self.all_draws.reward_at)

    def predict_evaluation(
        self, compute: npt.ArrayLike, prompts: float | None = None, samples: float | None = None
    ) -> Band:
        """The band of one future evaluation: the curve, the wandering part and sampling noise; where no past run tells
        how such a run goes on, also that runs leave their curves (`drift`). Never narrower than the curve's own band:
        near the last of a few evaluations noise and curve make up for one another, which is more than is known of the
        noise.

        Args:
            compute: where.
            prompts, samples: size of that evaluation; that of the last one when left out.

        Raises:
            CurveError: a compute or a size that cannot be.
        """
        x = checks.computes_of("compute", compute)
        other = self.other_rise

        def drawn(place: FloatArray) -> FloatArray:
            draws = evaluations_on_curve(self, place, prompts, samples)
            if other is not None:
                draws = other.mixed(draws, lambda law: evaluations_on_curve(law, place, prompts, samples))
            return np.asarray(np.clip(draws + drift(self, place), *self.curve.bounds))

        return band_at(x, drawn).around(self.predict(x))

    def compute_to_reach(self, target: float, budget: float | None = None, hindsight: Hindsight | None = None) -> Reach:
        """Compute at which the run's level is at `target` for the first time, and the probability that it never is.

        It allows for what the forecast of the end does (`predict_mean`) but for noise. Of a forecast that is withheld
        it is what its curve would say.

        Args:
            target: a reward in the curve's own scale.
            budget: the probability that it is there by this compute is told too, and what past runs tell is heeded.
            hindsight: how forecasts of past runs at this share of the budget turned out.

        Raises:
            CurveError: a target or a budget that cannot be.
        """
        from ..advice.reaching import compute_to_reach

        return compute_to_reach(self, target, budget, hindsight)

    def decide_at(self) -> float | None:
        """Compute at which A will be identified if evaluations go on as now; None when nothing near would do."""
        return self._decide_at

    @cached_property
    def _decide_at(self) -> float | None:
        """Advice, its sentence and its figures all ask for it, and it costs more than a fit."""
        from .horizon import decide_at

        return decide_at(self)

    def sentence(
        self,
        now: float | None = None,
        budget: float | None = None,
        target: float | None = None,
        hindsight: Hindsight | None = None,
    ) -> str:
        """One line that a colleague could say. Arguments as in `advise`."""
        from ..advice.sentence import sentence

        return sentence(self, now=now, budget=budget, target=target, hindsight=hindsight)

    def to_dict(
        self, budget: float | None = None, target: float | None = None, hindsight: Hindsight | None = None
    ) -> dict[str, Any]:
        """The object that `forecurve fit --json` prints for a series; JSON-safe. Arguments as in `advise`."""
        from ..advice.report import to_dict

        return to_dict(self, budget=budget, target=target, hindsight=hindsight)

    def plot(self, budget: float | None = None) -> go.Figure:
        """A plotly figure: evaluations, median, 50 % and 90 % band. Needs plotly."""
        from .plot import plot

        return plot(self, budget=budget)

    def __repr__(self) -> str:
        share = self.identified["A"]
        note = "" if self.misfit is None else f", misfit {self.misfit}"
        return (
            f"Fit({self.curve.name!r}: {self.points} evaluations to {self.curve.now:g} {self.unit}, "
            f"A {self.A.median:.3f} ({self.A.lower:.3f} to {self.A.upper:.3f}; {share:.0%} identified), "
            f"B {self.B.median:.2f}, C_mid {self.C_mid.median:.3g}, R0 {self.R0.median:.3f}{note})"
        )

    def _of_nodes(self, values: FloatArray, cell: FloatArray) -> Estimate:
        """Of a parameter whose draws lie on the lattice: each stands for its whole cell."""
        return estimate_of(np.exp(over_cells(np.log(values), cell)))

    @property
    def _scale(self) -> tuple[float, float]:
        return self.curve.bounds[0], self.curve.width


def fit(curve: Curve, *, prior: str | Prior = "none") -> Fit:
    """Fit R(C) = R0 + (A - R0) / (1 + (C_mid / C)^B) with its full posterior.

    Args:
        curve: at least 3 evaluations.
        prior: "none" (proper, flat), "paper" (ScaleRL's Table 1 for A and B) or a `Prior`.

    Raises:
        CurveError: by `Curve`. PriorError: an unknown prior, or one that does not fit the curve's unit or range.

    >>> compute = [c / 2 for c in range(1, 25)]
    >>> exact = [0.2 + 0.4 / (1 + (3.0 / c) ** 1.5) for c in compute]
    >>> result = fit(Curve(compute, exact, prompts=1000, samples=16, start=0.2))
    >>> abs(result.A.median - 0.6) < 0.01 and result.A.lower < 0.6 < result.A.upper
    True
    """
    began = time.perf_counter()
    checks.check_kind("curve", curve, Curve, "pass Curve(compute, reward)", errors.CurveError)
    known = named_prior(prior)
    curve = curve.of_answers(known.answers)
    return fit_of_problem(problem_of(curve, known), curve, known, began)


def fit_of_problem(problem: Problem, curve: Curve, prior: Prior, began: float) -> Fit:
    """Of the curve's problem under that prior."""
    table = integrate(problem)
    posterior = draw(problem.setting, table, problem.filtered.last[table.alive])
    made = Fit(curve, prior, time.perf_counter() - began, problem.setting, table, problem.filtered.last)
    made.__dict__.update(posterior=posterior, problem=problem)  # the cached properties, known already
    return made
