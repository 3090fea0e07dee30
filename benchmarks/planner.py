"""The planner beside ASHA, successive halving, the median rule, a constant cut and best-so-far, on replayed sweeps.

Sweeps of 8 arms are drawn from the spread of the paper's Table 1 (`table`) or from that of one-field ablations
(`siblings`), 40 evaluations a run, with AR or white noise; FILES (series,compute,reward...) give recorded sweeps, each
a random choice of at most 8 arms of a file (or of a group of it, --group), cut to the shortest. Every policy sees the
same evaluations. Compute is counted until the choice is made, as a share of running every arm to its end; regret is
the best arm's final value minus that of the chosen one (recorded: the mean of the last tenth of evaluations).

ASHA and the median rule are Optuna's pruners (ASHA: every pair of min_resource 1, 2, 4, 8 evaluations and reduction
factor 2, 3, 4, all arms side by side, ended as soon as one arm is left). Successive halving is the synchronous one.
Ours chooses before each step the look with the largest knowledge gradient per unit of compute and knows nothing of
the sweep beforehand (prior "none").

The level asked: the regret of ASHA at half its compute or less. For every setting of ASHA and of halving the table
shows its mean compute and regret; our regret at half that mean compute; the same where each sweep is given half of
what the rival spent on that very sweep (its compute differs from sweep to sweep, and is low where it was lucky); the
paired difference of each with its standard error over sweeps; and the compute from which on our mean regret is as low.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import optuna
from common import answer, note, parser, table
from optuna_policies import Pruned
from recorded import ARMS, recorded_sweeps, takes_recorded

from forecurve.science.simulator import (
    BestSoFar,
    ConstantCut,
    EqualForecast,
    Forecasting,
    Policy,
    Replay,
    SuccessiveHalving,
    Sweep,
    replay,
    synthetic_sweep,
)
from forecurve.science.simulator.policies import Forecasts

SHARES = (0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.5, 0.75, 1.0)
CELLS = (("table", "ar"), ("table", "white"), ("siblings", "ar"))
OURS = "forecurve"
MOST_EQUAL = 0.3  # of the full compute, for the constant cut whose winner our forecast picks: the rest costs time only
SEED = 20_000  # of the sweeps reported; development used others


def main() -> None:
    """Run and print."""
    made = parser(__doc__, runs=24)
    takes_recorded(made)
    made.add_argument("--most", type=float, default=0.35, help="share of the full compute that our policy may use")
    asked = made.parse_args()
    recorded = recorded_sweeps(asked.files, asked.group, asked.runs, SEED)
    sweeps_of = recorded if asked.files else _synthetic(asked.runs)
    results = [_cell(name, sweeps, asked.most) for name, sweeps in sweeps_of]
    if asked.json:
        answer({"cells": results})
        return
    for result in results:
        _show(result)


# --- the sweeps ---


def _synthetic(runs: int) -> Iterator[tuple[str, list[Sweep]]]:
    for spread, noise in CELLS:
        sweeps = [synthetic_sweep(SEED + at, arms=ARMS, spread=spread, noise=noise) for at in range(runs)]
        yield f"{spread}, {noise} noise", sweeps


# --- the policies ---


def _others() -> dict[str, Callable[[int], Policy]]:
    """Every policy but ours, by name: from a seed to a fresh one."""
    made: dict[str, Callable[[int], Policy]] = {"constant cut": lambda seed: ConstantCut()}
    made["best so far"] = lambda seed: BestSoFar(first=5)
    made["median rule"] = lambda seed: Pruned(
        optuna.pruners.MedianPruner(n_startup_trials=2, n_warmup_steps=3), together=False, seed=seed
    )
    for eta in (2, 3, 4):
        for first in (1, 2, 4, 8):
            made[f"ASHA {eta}, {first}"] = lambda seed, eta=eta, first=first: Pruned(
                optuna.pruners.SuccessiveHalvingPruner(min_resource=first, reduction_factor=eta),
                together=True,
                seed=seed,
            )
            made[f"halving {eta}, {first}"] = lambda seed, eta=eta, first=first: SuccessiveHalving(first, eta)
    return made


def _replays(sweep: Sweep, seed: int, most: float) -> dict[str, Replay]:
    found = {name: replay(sweep, make(seed)) for name, make in _others().items()}
    forecasts = Forecasts()
    found[OURS] = replay(sweep, Forecasting(forecasts), most=most * sweep.full_cost)
    found["cut + forecast"] = replay(sweep, EqualForecast(forecasts), most=min(most, MOST_EQUAL) * sweep.full_cost)
    return found


# --- the figures ---


def _cell(name: str, sweeps: list[Sweep], most: float) -> dict[str, Any]:
    replays: dict[str, list[Replay]] = {}
    for at, sweep in enumerate(sweeps):
        for policy, found in _replays(sweep, at, most).items():
            replays.setdefault(policy, []).append(found)
        note(f"{name}: sweep {at + 1} of {len(sweeps)}")
    full = np.array([sweep.full_cost for sweep in sweeps])
    halves = [
        _against(policy, found, replays[OURS], full, most) for policy, found in replays.items() if policy[-1].isdigit()
    ]
    anytime = [policy for policy in replays if not policy[-1].isdigit() and policy != "median rule"]
    until = {OURS: most, "cut + forecast": min(most, MOST_EQUAL)}
    curves = {policy: _curve(replays[policy], full, until.get(policy, 1.0)) for policy in anytime}
    own = replays[OURS]
    stop = np.array([each.settled for each in own])
    stopped = np.array([each.regret_at(at) for each, at in zip(own, stop, strict=True)])
    median = replays["median rule"]
    return {
        "sweeps": name,
        "runs": len(sweeps),
        "blind": float(np.mean([each.blind for each in own])),
        "curves": curves,
        "rivals": halves,
        "median_rule": {
            "compute": _mean([r.total for r in median] / full),
            "regret": _mean([r.regret[-1] for r in median]),
        },
        "own_stop": {"compute": _mean(stop / full), "regret": _mean(stopped)},
    }


def _curve(found: list[Replay], full: np.ndarray, until: float) -> list[dict[str, float]]:
    """Mean regret at each share of the full compute that the policy was let run to."""
    return [
        {"share": share, **_mean([each.regret_at(share * cost) for each, cost in zip(found, full, strict=True)])}
        for share in SHARES
        if share <= until
    ]


def _against(policy: str, found: list[Replay], ours: list[Replay], full: np.ndarray, most: float) -> dict[str, Any]:
    """A rival's end, ours in the same sweeps at half its compute, and where our mean regret is first as low."""
    compute = np.array([each.total for each in found])
    regret = np.array([each.regret[-1] for each in found])
    share = float(np.mean(compute / full))
    half = np.array([each.regret_at(share * cost / 2) for each, cost in zip(ours, full, strict=True)])
    own_half = np.array([each.regret_at(at / 2) for each, at in zip(ours, compute, strict=True)])
    shares = np.arange(0.02, most + 1e-9, 0.005)
    curve = np.array(
        [np.mean([each.regret_at(at * cost) for each, cost in zip(ours, full, strict=True)]) for at in shares]
    )
    # from there on, not merely somewhere: a lucky dip of the curve does not count
    as_low = np.flatnonzero(np.maximum.accumulate(curve[::-1])[::-1] <= regret.mean() + 1e-12)
    same = float(shares[as_low[0]]) if len(as_low) else None
    return {
        "policy": policy,
        "compute": share,
        "regret": _mean(regret),
        "ours_at_half": _mean(half),
        "difference": _mean(half - regret),
        "difference_own": _mean(own_half - regret),
        "same_regret_at": same,
        "ratio": None if same is None else same / share,
    }


def _mean(values: Any) -> dict[str, float]:
    x = np.asarray(values, dtype=float)
    return {"mean": float(x.mean()), "se": float(x.std(ddof=1) / np.sqrt(len(x))) if len(x) > 1 else 0.0}


# --- the tables ---


def _show(result: dict[str, Any]) -> None:
    print(f"\n== {result['sweeps']}: {result['runs']} sweeps; a choice at random loses {result['blind']:.4f}")
    print("\nMean regret at a share of the full compute (standard error)")
    rows = [
        [policy, *(f"{each['mean']:.4f} ({each['se']:.4f})" for each in curve), *[None] * (len(SHARES) - len(curve))]
        for policy, curve in result["curves"].items()
    ]
    table(["policy", *(f"{share:.1%}" for share in SHARES)], rows)
    own, median = result["own_stop"], result["median_rule"]
    for name, row in (("ours, stopped when settled", own), ("median rule", median)):
        compute, regret = row["compute"], row["regret"]
        print(f"{name}: compute {compute['mean']:.3f}, regret {regret['mean']:.4f} ({regret['se']:.4f})")
    print("\nAsked: at most the rival's regret at half its compute")
    columns = [
        "rival (factor, first)",
        "compute",
        "regret",
        "ours at half",
        "difference (se)",
        "half of each sweep's (se)",
        "same regret at",
        "ratio",
        "reached",
    ]
    table(columns, [_row(each) for each in result["rivals"]])


def _row(each: dict[str, Any]) -> list[Any]:
    difference, own = each["difference"], each["difference_own"]
    return [
        each["policy"],
        each["compute"],
        each["regret"]["mean"],
        each["ours_at_half"]["mean"],
        f"{difference['mean']:+.4f} ({difference['se']:.4f})",
        f"{own['mean']:+.4f} ({own['se']:.4f})",
        each["same_regret_at"],
        each["ratio"],
        "yes" if difference["mean"] <= 0 else "no",
    ]


if __name__ == "__main__":
    main()
