"""What the forecasts room takes and gives over HTTP."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from forecurve.science.backtesting.track_record import Scored
from server.bodies import Body
from server.runs.schemas import Ending, RunView

from .ending import is_withheld
from .models import Forecast
from .service import Said

Action = Literal["stop", "continue", "scale", "undecided"]


class EstimateView(BaseModel):
    """Posterior median with its 90 % interval; an end is null where it is infinite."""

    median: float | None
    lower: float | None
    upper: float | None


class BandView(BaseModel):
    """The predicted curve on a grid of compute: median, 50 % and 90 % band. Lists of equal length."""

    compute: list[float]
    median: list[float]
    lower50: list[float]
    upper50: list[float]
    lower90: list[float]
    upper90: list[float]


class QuantilesView(BaseModel):
    """A posterior as a chart draws it: below each of the values lies that share of it. Lists of equal length."""

    probabilities: list[float]
    values: list[float]


class ConformalView(BaseModel):
    """What past runs say of the interval: where in it outcomes are to be expected, and how far it has to reach."""

    calibration: str = Field(
        description="`posterior` as it is, `adjusted (n past runs)` (3 to 8), or `conformal (n past runs)`."
    )
    shift: float = Field(description="By how much the end is expected above the posterior's median.")
    factor: float = Field(description="How many half widths of the posterior's interval reach to either side of there.")
    runs: int
    even: float = Field(0.0, description="How far the narrower half counts as wide as the wider, from 0 to 1.")
    seeds: int = Field(
        0, description="Other finished seeds of its arm to whose ends it was drawn, as far as that helps."
    )
    lean: float = Field(
        0.0,
        description="By how much more the end is expected, as seeds of its arm tell that are still on their way, far "
        "ahead; the interval reaches as much further on that side.",
    )
    ahead: int = Field(0, description="How many these are.")


class AtBudget(BaseModel):
    """The forecast at the budget: of the curve itself, of one noisy evaluation, and of the mean that is scored."""

    compute: float
    curve: EstimateView
    evaluation: EstimateView
    ending: EstimateView | None = Field(None, description="Mean of the last 10 % of the evaluations, by the posterior.")
    calibrated: EstimateView | None = Field(None, description="`ending`, moved and stretched by `conformal`.")
    conformal: ConformalView | None = None


class MilestoneView(BaseModel):
    """When the run's level, its pass rate without noise, is at a target for the first time: median and 90 % interval of
    the compute. Null means never."""

    target: float
    median: float | None
    lower: float | None
    upper: float | None
    p_never: float = Field(description="Probability that it never is.")
    p_by_budget: float | None = Field(description="Probability that it is by the budget; null without one.")


class PriorView(BaseModel):
    """What other runs told before the run's own data: past ones, and those that are at least as far."""

    name: str = Field(description="E.g. `8 siblings`: so many runs are in it.")
    seeds: int = Field(description="How many of them are seeds of the run's own arm.")
    ahead: int = Field(
        0, description="How many have not ended at this run's budget, but told of it all the same: see Past runs."
    )
    runs: list[str] = Field([], description="Their ids, newest first; none in forecasts that were made before it was.")


class CutoffView(BaseModel):
    """An early regime that the curve does not describe: its evaluations tell nothing of the ceiling."""

    compute: float = Field(description="Of the first evaluation after it.")
    evaluations: int = Field(description="How many belong to it.")
    probability: float = Field(description="That there is one, at least .5.")


class Advice(BaseModel):
    action: Action
    reason: str


class SaidView(BaseModel):
    """What a forecast says, from the evaluations up to `at_compute`."""

    at_compute: float
    at_step: int
    points: int
    unit: str
    A: EstimateView
    B: EstimateView
    C_mid: EstimateView
    R0: EstimateView
    identified: dict[str, float] = Field(description="Share of each parameter's precision that comes from the data.")
    ceiling_known: bool = Field(
        description="A is worth saying: identified by the run's own data, or known narrowly by past runs."
    )
    ceiling_quantiles: QuantilesView | None = Field(description="Of A; null in forecasts that were made before it was.")
    prior: PriorView | None = Field(description="Null where the fit rests on the run's own data alone.")
    misfit: str | None
    withheld: bool = Field(description="The misfit forbids a forecast: `band` is not to be drawn beyond the data.")
    cutoff: CutoffView | None = Field(description="The early regime that the fit set apart, if any.")
    outliers: list[float] = Field(description="Compute of evaluations, far off both sides, that hardly count.")
    sentence: str
    band: BandView
    at_budget: AtBudget | None
    milestones: list[MilestoneView] = Field(
        description="The next round levels, 5 at most; none where a forecast is withheld or the budget is spent, nor "
        "in forecasts that are older than these."
    )
    advice: Advice | None
    seconds: float = Field(description="How long the fit took.")

    @classmethod
    def made(cls, forecast: Forecast | Said, **kept: Any) -> Self:
        """`kept`: what else is known of a forecast that is kept."""
        said = forecast.summary
        return cls(
            **kept,
            at_compute=forecast.at_compute,
            at_step=forecast.at_step,
            points=forecast.points,
            unit=forecast.unit,
            sentence=forecast.sentence,
            seconds=forecast.seconds,
            band=BandView.model_validate(forecast.band),
            withheld=is_withheld(said),
            cutoff=said.get("cutoff"),
            outliers=said.get("outliers") or [],
            **{name: said[name] for name in ("A", "B", "C_mid", "R0", "identified", "misfit")},
            ceiling_known=bool(said.get("ceiling_known")),
            ceiling_quantiles=said.get("ceiling_quantiles"),
            prior=said.get("prior"),
            at_budget=said.get("at_budget"),
            milestones=said.get("milestones") or [],
            advice=said.get("advice"),
        )


class ForecastView(SaidView):
    """What was said of a run at one moment, and is kept."""

    id: str
    run_id: str
    created_at: datetime

    @classmethod
    def of(cls, forecast: Forecast) -> Self:
        return cls.made(forecast, id=forecast.id, run_id=forecast.run_id, created_at=forecast.created_at)


class ScoredView(BaseModel):
    """A forecast of how a run would end and how it did: the mean of its last 10 % of evaluations."""

    forecast: str
    run: str
    run_name: str
    fraction: float = Field(description="Share of what the run spent in the end that was spent when it was said.")
    predicted: float
    lower: float
    upper: float
    actual: float
    error: float = Field(description="predicted - actual")
    covered: bool
    withheld: bool = Field(description="A misfit was found.")
    calibration: str
    last_value: float = Field(description="The pass rate of the last evaluation that it had seen.")

    @classmethod
    def of(cls, one: Scored, run_name: str, last_value: float) -> ScoredView:
        return cls(**one.to_dict(), run_name=run_name, last_value=last_value)


class TrackLine(BaseModel):
    """Forecasts made in one range of the share spent. Each run counts as much as any other."""

    above: float
    upto: float | None
    forecasts: int
    runs: int
    mae: float
    median: float
    max: float
    coverage: float = Field(description="Share of 90 % intervals that held what came.")
    coverage_lower: float = Field(description="What so few runs leave open of `coverage`, 90 %.")
    coverage_upper: float
    held: int = Field(description="Intervals that held what came, however many are of one run.")
    last_value: float = Field(description="Mean error of who expects no change: of the last values seen.")
    width: float = Field(description="Median width of the intervals.")
    withheld: int


class TrackRecordView(BaseModel):
    """Forecasts of finished runs, scored: `table` begins with the earliest range, `forecasts` with the newest."""

    sentence: str
    table: list[TrackLine]
    scored: int
    waiting: int = Field(description="Forecasts of runs that are not over.")
    forecasts: list[ScoredView]


class RecommendationView(BaseModel):
    """Advice that a person may accept or dismiss."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    run_id: str
    forecast_id: str
    action: Action
    reason: str
    numbers: dict[str, Any]
    status: Literal["open", "accepted", "dismissed", "superseded"]
    decided_by: str | None
    decided_reason: str | None
    decided_at: datetime | None
    created_at: datetime


class Acceptance(Body):
    reason: str | None = Field(None, max_length=1000)


class Dismissal(Body):
    """Why the advice is not followed; later advice is judged against it."""

    reason: str = Field(min_length=1, max_length=1000, pattern=r"\S")


class PointView(BaseModel):
    step: int
    attempt: int = Field(description="0 for what a fork has of its parent's curve.")
    compute: float
    reward: float
    se: float | None = Field(description="Standard error of the reward, to four significant digits.")
    time: datetime
    tokens: float | None = Field(description="Sampled in training so far: `details.tokens` of the evaluation.")


class CheckpointMark(BaseModel):
    step: int
    compute: float | None
    digest: str


class RestartMark(BaseModel):
    """Where an attempt after the first took up: its checkpoint where one is known, else its first evaluation.

    Attempt 1 stands where a fork begins that goes on with its parent's curve.
    """

    attempt: int
    step: int
    compute: float


class RefitMark(BaseModel):
    id: str
    at_compute: float
    created_at: datetime


class AlertMark(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    id: str
    kind: str
    level: Literal["WARN", "ALERT"]
    title: str
    text: str
    since_compute: float | None
    back_since: float | None
    at_compute: float | None
    opened_at: datetime
    acknowledged_at: datetime | None
    resolved_at: datetime | None


class CurveView(BaseModel):
    """All that the chart of a run needs, as of `cursor`."""

    run: RunView
    unit: str
    budget: float | None
    points: list[PointView]
    forecast: ForecastView | None
    frozen: ForecastView | None
    checkpoints: list[CheckpointMark]
    restarts: list[RestartMark]
    refits: list[RefitMark]
    alerts: list[AlertMark]
    recommendation: RecommendationView | None
    cursor: int = Field(description="Everything up to this place in the stream is in here.")


class MetricCurve(BaseModel):
    """A metric of a run over compute, and its forecast, as of `cursor`. `reward` of a point is the metric's value."""

    run_id: str
    metric: str
    low: float
    high: float
    logged: int = Field(description="Finite values, each step once, by the newest attempt.")
    lost: int = Field(description="How many of them are left out because nobody says how much compute they took.")
    thinned: bool = Field(description="Whether `points` are means of neighbours.")
    unit: str
    budget: float | None
    points: list[PointView]
    restarts: list[RestartMark]
    forecast: SaidView | None
    ending: Ending | None = Field(description="Where it is expected to end; null where nothing is said of that.")
    past: list[str] = Field(description="Comparable runs that logged the metric too, newest first.")
    sentence: str = Field(description="The forecast's; without one, why there is none.")
    cursor: int = Field(description="Everything up to this place in the stream is in here.")


class SweepRef(BaseModel):
    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str


class RunsCurves(BaseModel):
    """The curves of several runs; `unit` is null when they are not in one unit."""

    unit: str | None
    runs: list[CurveView]


class OthersView(BaseModel):
    """The runs of a sweep whose curves are not given one by one, summed up along compute: lists of one length. At each
    place a run counts once, by the mean of its evaluations there."""

    runs: int = Field(description="How many they are.")
    compute: list[float] = Field(description="16 places to a factor of ten; 0 is the start.")
    evaluated: list[int] = Field(description="How many of them were evaluated there, which the figures are of.")
    median: list[float]
    lower50: list[float] = Field(description="Half of the runs lie between this and `upper50`.")
    upper50: list[float]
    lower90: list[float]
    upper90: list[float]


class SweepCurves(RunsCurves):
    """The curves of a sweep's runs: of all of them, or of some, and the others summed up."""

    sweep: SweepRef
    said: str | None = Field(description="Which runs these are, where the service chose them; null for all.")
    others: OthersView | None = Field(description="Null where `runs` has all of the sweep.")
