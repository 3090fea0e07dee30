"""The advice to stop, replayed: compute saved and reward lost against running every run to its budget.

Synthetic runs (advice_cases.py) have a budget of 16,000 GPU-hours, 40 evaluations, AR noise with sd .006 and
correlation .7 on top of white noise of sd .0035. `siblings` are ablations of the paper's recipe (C_mid about 2,600
GPU-hours, as its runs of 14k to 16k GPU-hours); `table` has the spread of all of Table 1, whose slow rows (C_mid about
11k) got far larger budgets in the paper and have much left to gain at 16k; `better, slower` end .06 above the siblings
and are 1.7 times as slow; `sparse` are siblings with 32,000 GPU-hours and only 12 evaluations of 500 prompts, one
sample each; `fell` are siblings that lose 40 to 100 % of their gain at 25 to 60 % of the budget and recover or stay
down; `at 0` never start, or start after 5 to 80 % of the budget. FILES (series,compute,reward...) are recorded runs of
at least 10 evaluations; their budget is their last evaluation.

From --start of the budget on the run is fitted at every evaluation and ends at the first advice to stop. --prior
siblings gives the fits past runs: 8 other runs of the kind (healthy siblings for `better`, `fell` and `at 0`), or the
other series of the file at full length; how forecasts of theirs turned out moves the gain. Lost is the reward at the
budget minus that at the stop: of the true curve, or of recorded runs the mean of a tenth of their evaluations (at least
1, at most 30) up to either point. `surely` counts losses above 0.02 by more than two standard errors of such a
difference, from how each evaluation of the second half lies aside of its two neighbours.

The level asked: 20 % or more of the compute saved at delta 0.01 and no loss above 0.02. Beside it a constant cut: every
run stopped at one share of its budget, so that as much is saved; and the largest saving at which a constant cut, known
only afterwards, would have lost 0.02 at most (or no more than the advice did, where that is more). `oracle` stops where
the true rest falls below delta: more cannot be saved without losing more than delta (recorded runs: their own noise is
part of it).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from advice_cases import KINDS, Case, recorded, synthetic
from common import answer, note, parser, table

from forecurve.science import CurveError
from forecurve.science.checks import MIN_POINTS

DELTAS = (0.01, 0.02)
ALLOWED = 0.02
ASKED = 0.2
PRIORS = ("none", "siblings")


class Ending(NamedTuple):
    """Where a run was ended: the share of the budget spent, the reward lost."""

    share: float
    lost: float
    noise: float  # standard error of the loss, 0 where the truth is known


def main() -> None:
    """Run and print."""
    made = parser(__doc__, runs=60)
    made.add_argument("files", nargs="*", type=Path, help="recorded runs")
    made.add_argument("--start", type=float, default=0.2, help="share of the budget before the first advice")
    made.add_argument("--prior", choices=PRIORS, default="none", help="siblings: past runs of the same kind or file")
    made.add_argument("--kinds", nargs="*", default=[], choices=tuple(KINDS), help="of simulated runs; all by default")
    asked = made.parse_args()
    rows = []
    kinds = (
        recorded(asked.files, asked.prior, asked.runs)
        if asked.files
        else synthetic(asked.prior, asked.runs, asked.kinds)
    )
    for name, cases in kinds:
        note(f"{name}: {len(cases)} runs")
        ended = [_end_by_advice(case, asked.start) for case in cases]
        for at, delta in enumerate(DELTAS):
            rows.append(_row(name, delta, cases, [each[at] for each in ended], asked.start))
    if asked.json:
        answer(
            {"asked": {"saved": ASKED, "most_lost": ALLOWED, "delta": DELTAS[0]}, "prior": asked.prior, "rows": rows}
        )
    else:
        _show(asked.prior, rows)


def _end_by_advice(case: Case, start: float) -> list[Ending]:
    """For each delta at the first advice to stop, else at the budget. At most 100 checks a run, evenly spaced."""
    curve, budget = case.curve, case.curve.now
    checks = [at for at in range(MIN_POINTS - 1, curve.points - 1) if curve.compute[at] >= start * budget]
    ended: dict[float, Ending] = {}
    for at in checks[:: max(len(checks) // 100, 1)]:
        open_deltas = [delta for delta in DELTAS if delta not in ended]
        if not open_deltas:
            break
        try:
            advised = case.advised(float(curve.compute[at]), open_deltas)
        except CurveError:
            continue
        ended |= {delta: _ending(case, at) for delta, action in advised.items() if action == "stop"}
    return [ended.get(delta, _ending(case, curve.points - 1)) for delta in DELTAS]


def _end_by_share(case: Case, share: float) -> Ending:
    """At the first evaluation from this share of the budget on."""
    at = int(np.searchsorted(case.curve.compute, share * case.curve.now * (1 - 1e-9)))
    return _ending(case, min(at, case.curve.points - 1))


def _oracle(case: Case, delta: float, start: float) -> Ending:
    """At the first evaluation from which the rest is below delta for good."""
    curve = case.curve
    allowed = [at for at in range(curve.points) if curve.compute[at] >= start * curve.now]
    worth = np.array([case.worth(at) for at in allowed])
    small = np.flatnonzero(worth[-1] - worth >= delta)
    return _ending(case, allowed[int(small[-1]) + 1 if len(small) else 0])


def _ending(case: Case, at: int) -> Ending:
    curve = case.curve
    lost = case.worth(curve.points - 1) - case.worth(at)
    return Ending(float(curve.compute[at]) / curve.now, lost, case.noise)


def _row(name: str, delta: float, cases: list[Case], ended: list[Ending], start: float) -> dict[str, Any]:
    saved = 1 - float(np.mean([each.share for each in ended]))
    most = max(each.lost for each in ended)
    same = [_end_by_share(case, 1 - saved) for case in cases]
    return {
        "runs": name,
        "n": len(cases),
        "delta": delta,
        "stopped": float(np.mean([each.share < 1 for each in ended])),
        "saved": saved,
        "oracle_saves": 1 - float(np.mean([_oracle(case, delta, start).share for case in cases])),
        "mean_lost": float(np.mean([each.lost for each in ended])),
        "most_lost": most,
        "above": float(np.mean([each.lost > ALLOWED for each in ended])),
        "surely_above": float(np.mean([each.lost - 2 * each.noise > ALLOWED for each in ended])),
        "cut_mean_lost": float(np.mean([each.lost for each in same])),
        "cut_most_lost": max(each.lost for each in same),
        "cut_saves_at_same_worst": _best_cut(cases, max(most, ALLOWED)),
        "reached": (saved >= ASKED and most <= ALLOWED) if delta == DELTAS[0] else None,
    }


def _best_cut(cases: list[Case], most: float) -> float:
    """The most that a constant cut saves with no loss above `most`."""
    for share in np.arange(0.05, 1.0, 0.025):
        ended = [_end_by_share(case, float(share)) for case in cases]
        if max(each.lost for each in ended) <= most:
            return 1 - float(np.mean([each.share for each in ended]))
    return 0.0


def _show(prior: str, rows: list[dict[str, Any]]) -> None:
    print(f"Prior {prior}. Asked at delta {DELTAS[0]}: saved at least {ASKED}, most lost at most {ALLOWED}\n")
    columns = [
        "runs",
        "n",
        "delta",
        "stopped",
        "saved",
        "oracle",
        "mean lost",
        "most lost",
        f"lost > {ALLOWED}",
        "surely",
    ]
    columns += ["cut: mean lost", "cut: most lost", "cut saves at same worst", "reached"]
    keys = ("n", "delta", "stopped", "saved", "oracle_saves", "mean_lost", "most_lost", "above", "surely_above")
    keys += ("cut_mean_lost", "cut_most_lost", "cut_saves_at_same_worst")
    verdict = {True: "yes", False: "no", None: "-"}
    table(columns, [[row["runs"], *(row[key] for key in keys), verdict[row["reached"]]] for row in rows])


if __name__ == "__main__":
    main()
