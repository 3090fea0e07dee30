"""What one refit costs the worker, beside so many past runs: CPU of its process and statements to the database.

    python benchmarks/refit_cost.py [--past 0 60] [--live 20] [--ahead 0] [--json]

Synthetic runs of one task in a store of its own (an embedded Postgres), refitted by the worker's own code. Every live
run is refitted once before it is measured: what a process keeps in memory is there. The CPU of the database is not in
it. Runs --ahead are live ones at four fifths of their budgets, each with one more evaluation before every refit that is
measured (nine of them; then they are through): their curves are read anew, and fitted anew where that is another stage.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import common
import numpy as np
from service import START, Settings, _begin, _evaluate, embedded, store_of
from sqlalchemy import event
from sqlalchemy.orm import Session, sessionmaker

from forecurve.science import Curve
from server.runs.models import Run
from worker.refit import refit

POINTS, SEEN, FAR, PAST_REFITS = 50, 20, 41, 10
SETTINGS = Settings(DATABASE_URL="postgresql://unused", REDIS_URL="redis://unused", refit_every_s=0)

Row = dict[str, Any]


def main() -> None:
    """Run and print."""
    made = common.parser(__doc__)
    made.add_argument("--past", type=int, nargs="*", default=[0, 60], help="past runs")
    made.add_argument("--live", type=int, default=20, help="live runs, each refitted once")
    made.add_argument("--ahead", type=int, default=0, help="live runs that are far ahead of these")
    asked = made.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = embedded(Path(folder))
        try:
            found = [measured(store_of(server, f"past_{past}"), past, asked.live, asked.ahead) for past in asked.past]
        finally:
            server.cleanup()
    if asked.json:
        common.answer(found)
        return
    columns = ("past runs", "CPU", "most", "statements")
    common.table(columns, ([row[name] for name in columns] for row in found))


def measured(store: sessionmaker[Session], past: int, live: int, ahead: int) -> Row:
    """Medians over the live runs."""
    for number in range(past):
        run_id = grown(store, number, POINTS, PAST_REFITS)
        with store.begin() as session:
            session.get_one(Run, run_id).status = "succeeded"
    runs = {number: grown(store, number, SEEN, 1) for number in range(past, past + live)}
    further = {number: grown(store, number, FAR, 1) for number in range(past + live, past + live + ahead)}
    sent: list[str] = []
    event.listen(store.kw["bind"], "before_cursor_execute", lambda *told: sent.append(told[2]))
    cpu, statements = [], []
    for upto, (number, run_id) in enumerate(runs.items(), start=FAR):
        for other, other_id in further.items() if upto < POINTS else ():
            _evaluate(store, other_id, curve_of(other), range(upto, upto + 1), START)
        _evaluate(store, run_id, curve_of(number), range(SEEN, SEEN + 1), START)
        sent.clear()
        began = time.process_time()
        refit(store, SETTINGS, run_id, START)
        cpu.append(time.process_time() - began)
        statements.append(len(sent))
    told = f"{1e3 * np.median(cpu):.0f} ms", f"{1e3 * max(cpu):.0f} ms"
    return {"past runs": past, "CPU": told[0], "most": told[1], "statements": float(np.median(statements))}


def grown(store: sessionmaker[Session], number: int, points: int, refits: int) -> str:
    """A run with so many evaluations, refitted as often on the way; its id."""
    curve = curve_of(number)
    run_id = _begin(store, curve, "synthetic", number)
    for part in np.array_split(np.arange(points), refits):
        _evaluate(store, run_id, curve, range(int(part[0]), int(part[-1]) + 1), START)
        refit(store, SETTINGS, run_id, START)
    return run_id


def curve_of(number: int) -> Curve:
    """Another run of the same kind."""
    rng = np.random.default_rng(number)
    compute = np.linspace(2.0, 100.0, POINTS)
    rate = 0.15 + (rng.normal(0.7, 0.03) - 0.15) / (1 + (rng.normal(14, 1.5) / compute) ** 1.5)
    reward = rng.binomial(1024, rate) / 1024
    return Curve(compute, reward, unit="GPU-hours", name=f"run {number}", prompts=256, samples=4, seed=number % 3)


if __name__ == "__main__":
    main()
