"""False alarms and delays of the watch on simulated runs, beside a pointwise band, CUSUM and the Gaussian e-process.

Each synthetic curve (the spread of siblings in ScaleRL's Table 1) is evaluated at 108 even places up to 16,000
GPU-hours with white noise 0.0035, fitted up to 4,000 and frozen; 80 evaluations follow. Futures are drawn

- from the frozen forecast's own predictive ("own"): one draw of curve, noise scale and wandering part, then its noise;
- from the true curve ("true").

For both the noise is also 20 % and 50 % larger than assumed; for the second it also has Student-t tails with 5 degrees
of freedom. Changes begin at evaluation 31: a drop of 0.02, a collapse of 0.004 an evaluation, a plateau, a slow decline
of 0.001 an evaluation; a drop of 0.02 also at evaluation 11. Delay 1: found at the first evaluation that is affected.
"since off" is the median error of "since compute", in evaluations, where the alarm is raised.

    python benchmarks/watch.py [--runs 5000] [--json]
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from itertools import accumulate

import common
import numpy as np
from scipy.linalg import solve_triangular

from forecurve.science import Curve, FrozenForecast, fit, freeze, revision, watch
from forecurve.science.posterior.sigmoid import reward_at
from forecurve.science.watching.evidence import Evidence, e_process, likely_start
from forecurve.science.watching.standing import CLIP
from forecurve.science.watching.surprise import Mixture, innovations
from forecurve.science.watching.watch import ALERT_THRESHOLD, OTHERS, WARN_THRESHOLD

COMPUTE = np.linspace(0, 16_000, 108)[1:]
PAST, LATER = COMPUTE[COMPUTE <= 4000], COMPUTE[COMPUTE > 4000][:80]
SIZE = len(LATER)
SD = 0.0035
CHANGE = 30
FUTURES = 40  # of each kind, per frozen forecast
RULES = ("WARN", "ALERT", "one Gaussian", "pointwise 95 %", "CUSUM k .5 h 5.4")


@dataclass(frozen=True)
class Case:
    """Futures of one kind: (R, H) given a frozen forecast, and where a change begins."""

    name: str
    draw: Callable[[FrozenForecast, np.ndarray, np.random.Generator], np.ndarray]
    change: int | None = None


def own(scale: float) -> Callable[[FrozenForecast, np.ndarray, np.random.Generator], np.ndarray]:
    """Futures from the forecast's own predictive."""

    def draw(frozen: FrozenForecast, _: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        k = rng.integers(0, len(frozen.A), FUTURES)
        curves = reward_at(LATER, frozen.A[k], frozen.B[k], frozen.C_mid[k], frozen.R0[k]).T
        eta, rho = np.array(frozen.hypotheses)[frozen.hypothesis[k]].T
        sd = scale * np.sqrt(frozen.scale[k])
        known = np.maximum(frozen.state_variance[frozen.hypothesis[k]], 0.0) * frozen.scale[k]
        state = frozen.state[k] + np.sqrt(known) * rng.normal(size=FUTURES)
        wandering = np.empty((FUTURES, SIZE))
        for t in range(SIZE):
            state = rho * state + np.sqrt(eta * (1 - rho**2)) * sd * rng.normal(size=FUTURES)
            wandering[:, t] = state
        sampling = np.sqrt(frozen.last_share) * sd[:, None] * rng.normal(size=(FUTURES, SIZE))
        return curves + wandering + sampling

    return draw


def true(scale: float = 1.0, tails: bool = False, fall: Callable[[np.ndarray], np.ndarray] | None = None):
    """Futures of the true curve, with a fall taken off."""

    def draw(_: FrozenForecast, curve: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        size = (FUTURES, SIZE)
        noise = rng.standard_t(5, size) / np.sqrt(5 / 3) if tails else rng.normal(size=size)
        return curve - (0 if fall is None else fall(curve)) + scale * SD * noise

    return draw


SINCE = np.maximum(np.arange(SIZE) - CHANGE + 1, 0)
CASES = (
    *(Case(f"own, noise x{scale:g}", own(scale)) for scale in (1.0, 1.2, 1.5)),
    *(Case(f"true, noise x{scale:g}", true(scale)) for scale in (1.0, 1.2, 1.5)),
    Case("true, t5 tails", true(tails=True)),
    Case("drop .02", true(fall=lambda _: 0.02 * (SINCE > 0)), CHANGE),
    Case("drop .02 at 11", true(fall=lambda _: 0.02 * (np.arange(SIZE) >= 10)), 10),
    Case("collapse .004", true(fall=lambda _: 0.004 * SINCE), CHANGE),
    Case("plateau", true(fall=lambda curve: np.maximum(curve - curve[CHANGE - 1], 0) * (SINCE > 0)), CHANGE),
    Case("decline .001", true(fall=lambda _: 0.001 * SINCE), CHANGE),
)


def frozen_run(rng: np.random.Generator) -> tuple[FrozenForecast, np.ndarray, Curve]:
    """A frozen forecast, the true curve at the evaluations after it, and the past."""
    truth = [np.array([v]) for v in (rng.normal(0.619, 0.02), np.exp(rng.normal(0.61, 0.15)))]
    truth += [np.array([np.exp(rng.normal(7.84, 0.25))]), np.array([0.2])]
    past = reward_at(PAST, *truth)[:, 0] + rng.normal(0, SD, len(PAST))
    curve = Curve(PAST, np.clip(past, 0, 1), prompts=1000, samples=16, start=0.2)
    found = fit(curve)
    if found.withheld:  # there is no forecast to judge by: the next run
        return frozen_run(rng)
    return freeze(found, horizon=SIZE), reward_at(LATER, *truth)[:, 0], curve


def first_alarms(forecast: Mixture, reward: np.ndarray) -> dict[str, tuple[np.ndarray, np.ndarray | None]]:
    """For each rule, whether it speaks at each evaluation, (R, H); and the innovations that say since when."""
    mean, sd = forecast.moments()
    below = reward < mean
    sharp, robust = innovations(forecast, reward), innovations(forecast, reward, clip=CLIP)
    plain = gaussian_innovations(forecast, reward)
    cusum = np.zeros_like(plain)
    for t in range(SIZE):
        cusum[:, t] = np.maximum((cusum[:, t - 1] if t else 0) - plain[:, t] - 0.5, 0)
    return {
        "WARN": (below & (e_process(sharp, SIZE) >= np.log(WARN_THRESHOLD)), sharp),
        "ALERT": (alerts(robust, below), robust),
        "one Gaussian": (below & (e_process(plain, SIZE) >= np.log(WARN_THRESHOLD)), None),
        "pointwise 95 %": (reward < mean - 1.96 * sd, None),
        "CUSUM k .5 h 5.4": (cusum > 5.4, None),
    }


def alerts(z: np.ndarray, below: np.ndarray) -> np.ndarray:
    """Whether ALERT is reached by each evaluation, (R, H); leaving evaluations out is tried only where all would do."""
    speaks = below & (e_process(z, SIZE) >= np.log(ALERT_THRESHOLD))
    for run in np.flatnonzero(speaks.any(axis=1)):
        others = without_any_one(z[run], below[run]) >= OTHERS
        speaks[run] = np.logical_or.accumulate(speaks[run]) & others
    return speaks


def without_any_one(z: np.ndarray, below: np.ndarray) -> np.ndarray:
    """The evidence by each evaluation, the least there is whichever one is left out, (H,)."""
    looks = accumulate(
        zip(z.tolist(), below.tolist(), strict=True),
        lambda so_far, one: so_far.then(one[0], counts=one[1]),
        initial=Evidence.none_yet(SIZE, singly=True),
    )
    return np.array([look.others for look in looks][1:])


def gaussian_innovations(forecast: Mixture, reward: np.ndarray) -> np.ndarray:
    """As if the forecast were one Gaussian with a known noise: the plain form."""
    mean, scale = forecast.mean @ forecast.weight, forecast.dof / (forecast.dof - 2)
    inner = scale * np.einsum("j,jhi->hi", forecast.weight, covariance(forecast))
    centred = forecast.mean - mean[:, None]
    factor = np.linalg.cholesky(inner + np.einsum("j,hj,ij->hi", forecast.weight, centred, centred))
    return solve_triangular(factor, (reward - mean).T, lower=True).T


def covariance(forecast: Mixture) -> np.ndarray:
    """Of each piece, written out, (J, H, H)."""
    size, pieces, _ = forecast.loading.shape
    whole, parts = np.empty((pieces, size, size)), forecast.start
    for t, at in enumerate(forecast.loading):
        parts = parts * forecast.carried[t] ** 2 + forecast.fresh[t]
        faded = np.cumprod(np.vstack([np.ones_like(forecast.carried[t]), forecast.carried[t + 1 :]]), axis=0)
        whole[:, t, t:] = np.einsum("jn,hn,hjn->jh", parts * at, faded, forecast.loading[t:])
        whole[:, t:, t] = whole[:, t, t:]
        whole[:, t, t] += forecast.sampling[t]
    return whole


def simulate(runs: int) -> tuple[dict[tuple[str, str], list[np.ndarray]], list[bool], int]:
    """First alarm of every run under each case and rule (SIZE where none), its "since"; revisions; disagreements."""
    found: dict[tuple[str, str], list[np.ndarray]] = defaultdict(list)
    revised, disagree = [], 0
    for seed in range(-(-runs // FUTURES)):
        rng = np.random.default_rng(seed)
        frozen, curve, past = frozen_run(rng)
        forecast = frozen.mixture(LATER, np.full(SIZE, frozen.last_variance), frozen.clock(LATER))
        for case in CASES:
            reward = case.draw(frozen, curve, rng)
            for rule, (speaks, z) in first_alarms(forecast, reward).items():
                first = np.where(speaks.any(axis=1), speaks.argmax(axis=1), SIZE)
                since = [
                    likely_start(z[r, : t + 1], SIZE) if z is not None and t < SIZE else -1 for r, t in enumerate(first)
                ]
                found[case.name, rule].append(np.stack([first, since], axis=1))
            if case.name == "drop .02":  # the public door says the same
                alarm = found[case.name, "ALERT"][-1][0, 0] < SIZE
                disagree += int((watch(frozen, LATER, reward[0]).level == "ALERT") != alarm)
            if case.name == "true, noise x1":
                whole = Curve(np.r_[past.compute, LATER], np.r_[past.reward, reward[0]], prompts=1000, samples=16)
                revised.append(revision(frozen, fit(whole), 16_000) is not None)
    return found, revised, disagree


def summary(case: Case, rule: str, rows: np.ndarray) -> dict[str, float | str | None]:
    """Share of false alarms, or of changes found with their delay."""
    first, since = rows.T
    body: dict[str, float | str | None] = {"case": case.name, "rule": rule, "runs": len(first)}
    if case.change is None:
        return {**body, "alarms": float((first < SIZE).mean())}
    fair = first >= case.change  # an alarm before it is a false one
    hit = fair & (first < SIZE)
    delay = first[hit] - case.change + 1
    body |= {"found": float(hit.sum() / fair.sum()), "alarms": float((~fair).mean())}
    body |= {"delay": float(np.median(delay)), "delay 95 %": float(np.quantile(delay, 0.95))} if len(delay) else {}
    if rule in ("WARN", "ALERT") and hit.any():
        body["since off"] = float(np.median(np.abs(since[hit] - case.change)))
    return body


LEVELS = (
    ("own, noise x1", "WARN", "alarms", "<=", 0.05),
    ("true, noise x1", "WARN", "alarms", "<=", 0.05),
    *((f"{where}, noise x{s}", "ALERT", "alarms", "<=", 0.01) for where in ("own", "true") for s in ("1", "1.2")),
    ("drop .02", "WARN", "found", ">=", 0.95),
    ("drop .02", "WARN", "delay", "<=", 3.0),
)


def main() -> None:
    """Simulate and print."""
    arguments = common.parser(__doc__, runs=5000).parse_args()
    found, revised, disagree = simulate(arguments.runs)
    rows = [summary(case, rule, np.concatenate(found[case.name, rule])) for case in CASES for rule in RULES]
    by = {(row["case"], row["rule"]): row for row in rows}
    levels = [
        {"case": case, "rule": rule, "what": what, "asked": f"{sign} {level:g}", "reached": by[case, rule][what]}
        for case, rule, what, sign, level in LEVELS
    ]
    revisions = float(np.mean(revised))
    if arguments.json:
        common.answer({"rows": rows, "levels": levels, "revised": revisions, "disagreements": disagree})
        return
    columns = ("case", "rule", "runs", "alarms", "found", "delay", "delay 95 %", "since off")
    common.table(columns, [[row.get(name) for name in columns] for row in rows])
    print()
    common.table(("case", "rule", "what", "asked", "reached"), [list(row.values()) for row in levels])
    print(f"\nhealthy runs whose forecast was revised by the end: {revisions:.3f} of {len(revised)}")
    print(f"runs in which watch() and the simulation disagree: {disagree}")


if __name__ == "__main__":
    main()
