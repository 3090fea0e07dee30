"""What the service would have said of recorded runs that came one after another: its own forecasts, scored.

    python benchmarks/service.py FILES... [--unit U] [--order 0 | --as-filed] [--at-once 1 | --imported] [--runs N]

Runs of a file are put into a store of its own (an embedded Postgres) in a random order, each evaluation by evaluation;
seeds of an arm have recipes that differ in their seed alone. They are refitted by the worker's own code, with what the
store has by then: the runs before as prior, and what was forecast of those. So the first runs have nothing, the last
ones all others. Forecasts at 10, 25 and 50 % of the budget (the run's last compute) are scored against the mean of the
last 10 % of the evaluations, of runs with fewer than 3 before them, 3 to 8, and 9 or more; beside the fit of the run's
own evaluations alone.

With --at-once 4 four runs go at the same time, the first four begun a quarter of a run apart: so live runs are ahead of
one another, and fewer are over when one begins.

With --imported nothing was forecast of the runs before: they came in whole, when they were over.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import common
import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from forecurve.client.importing import import_body
from forecurve.curve_files import read_curves
from forecurve.science import Curve, fit, predict_mean
from forecurve.science.backtesting.one_run import early_part
from forecurve.science.fitting.outcome import Outcome
from server.forecasts.models import Forecast
from server.metrics.models import Evaluation
from server.metrics.past import import_run
from server.metrics.schemas import RunImport
from server.recipes.models import RecipeRow
from server.runs.models import Run
from server.settings import Settings
from worker.refit import refit

FRACTIONS = (0.1, 0.25, 0.5)
KNOWN = ((0, 3), (3, 9), (9, 10_000))
STEPS = 20  # refits a run, evenly spread over its compute
START = datetime(2026, 1, 1, tzinfo=UTC)

Row = dict[str, Any]


def main() -> None:
    """Run and print."""
    made = common.parser(__doc__)
    made.add_argument("files", nargs="+", type=Path, help="files of curves")
    made.add_argument("--unit", help="unit of compute, where the file has none")
    made.add_argument("--order", type=int, default=0, help="seed of the order in which the runs come")
    made.add_argument("--as-filed", action="store_true", help="in the order of the file, where arms come one by one")
    made.add_argument("--at-once", type=int, default=1, help="runs that go at the same time, their starts spread out")
    made.add_argument("--imported", action="store_true", help="the runs before came in whole, unseen until then")
    asked = made.parse_args()
    if asked.imported and asked.at_once > 1:
        made.error("--imported: runs that came in whole were over before the next began; leave --at-once out")
    found: dict[str, list[Row]] = {}
    with tempfile.TemporaryDirectory() as folder:
        server = embedded(Path(folder))
        try:
            for place, file in enumerate(asked.files):
                curves = read_curves(file, unit=asked.unit)
                every = len(curves)
                order = range(every) if asked.as_filed else np.random.default_rng(asked.order).permutation(every)
                store = store_of(server, f"set_{place}")
                chosen = [curves[at] for at in order[: asked.runs]]
                found[file.stem] = replayed(store, chosen, file.stem, asked.imported, asked.at_once)
        finally:
            server.cleanup()
    if asked.json:
        common.answer(found)
        return
    columns = ("set", "seen", "runs before", "n", "MAE", "coverage", "width", "alone: MAE", "coverage", "width")
    common.table(columns, (line for name, rows in found.items() for line in summed_up(name, rows)))


def embedded(folder: Path) -> Any:
    """A Postgres of our own."""
    from forecurve.cli.supervisor.postgres import embedded_server

    server = embedded_server(folder / "pg")
    server.start()
    return server


def store_of(server: Any, name: str) -> sessionmaker[Session]:
    """A new database with the service's tables."""
    import psycopg

    from server.database import make_engine, make_sessions
    from server.migrate import upgrade

    with psycopg.connect(server.get_uri(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    url = server.get_uri().replace("/postgres?", f"/{name}?")
    upgrade(url)
    return make_sessions(make_engine(url))


def replayed(
    store: sessionmaker[Session], curves: Sequence[Curve], task: str, imported: bool = False, at_once: int = 1
) -> list[Row]:
    """All runs, so many at once; a row for each forecast that is scored."""
    settings = Settings(database_url="postgresql://unused", redis_url="redis://unused", refit_every_s=0)
    rows: list[Row] = []
    waiting, over, tick = list(enumerate(curves)), 0, 0
    slots: list[Going | None] = [None] * at_once
    while waiting or any(slots):
        for slot, going in enumerate(slots):
            if going is None and waiting and tick >= slot * STEPS // at_once:
                number, curve = waiting.pop(0)
                run_id = _begin_own(store, curve, task) if imported else _begin(store, curve, task, number)
                going = slots[slot] = Going(run_id, curve, before=over)
            if going is None:
                continue
            _advance(store, settings, going, START + timedelta(days=tick))
            if going.step == STEPS:
                rows += [{"before": going.before, **row} for row in _ended(store, going)]
                if imported:
                    _in_its_place(store, going.curve, task)
                slots[slot], over = None, over + 1
                common.note(f"{task}: run {over} of {len(curves)}")
        tick += 1
    return rows


@dataclass
class Going:
    """A run on its way: so many runs were over when it began; its steps so far, and evaluations that were seen."""

    run_id: str
    curve: Curve
    before: int
    step: int = 0
    seen: int = 0


def _advance(store: sessionmaker[Session], settings: Settings, going: Going, now: datetime) -> None:
    curve = going.curve
    going.step += 1
    upto = int(np.searchsorted(curve.compute, going.step / STEPS * curve.now * (1 + 1e-9), side="right"))
    if upto > going.seen:
        _evaluate(store, going.run_id, curve, range(going.seen, upto), now)
        refit(store, settings, going.run_id, now + timedelta(seconds=upto))
        going.seen = upto


def _ended(store: sessionmaker[Session], going: Going) -> list[Row]:
    """It is over: what was shown of it, scored."""
    with store.begin() as session:
        session.get_one(Run, going.run_id).status = "succeeded"
    told = [_scored(store, going.run_id, going.curve, fraction) for fraction in FRACTIONS]
    return [row for row in told if row is not None]


def _begin(store: sessionmaker[Session], curve: Curve, task: str, number: int) -> str:
    seed = number if curve.seed is None else curve.seed
    body = {"name": curve.name, "seed": seed, "task": {"name": task}, "arm": curve.arm or curve.name}
    with store.begin() as session:
        recipe = RecipeRow(name=curve.name, digest=f"sha256:{number}", body=body)
        session.add(recipe)
        session.flush()
        return _added(session, curve, recipe_id=recipe.id, seed=seed)


def _begin_own(store: sessionmaker[Session], curve: Curve, task: str) -> str:
    with store.begin() as session:
        return _added(session, curve, task=task, arm=curve.arm, seed=curve.seed, executor="external")


def _added(session: Session, curve: Curve, **columns: Any) -> str:
    spends = {"compute_unit": curve.unit, "budget_compute": curve.now}
    run = Run(name=curve.name, changes={}, status="running", attempt=1, **spends, **columns)
    session.add(run)
    session.flush()
    return run.id


def _in_its_place(store: sessionmaker[Session], curve: Curve, task: str) -> None:
    """The run that was forecast is put away; the same one comes in whole. As one of the same task it would be known."""
    with store.begin() as session:
        for run in session.scalars(select(Run).where(Run.import_digest.is_(None))):
            run.archived_at, run.task = START, f"{task}, put away"
        body = RunImport.model_validate(import_body(curve, task))
        came = import_run(session, body, actor="benchmark", now=START)
        assert not came.was_there
        came.run.dirty_at = None


def _evaluate(store: sessionmaker[Session], run_id: str, curve: Curve, places: range, now: datetime) -> None:
    """As the ingest leaves it."""
    with store.begin() as session:
        for at in places:
            sizes = [None if column is None else int(column[at]) for column in (curve.prompts, curve.samples)]
            known = float(curve.noise.variance[at]) if curve.noise.source == "known" else None
            session.add(
                Evaluation(
                    run_id=run_id,
                    attempt=1,
                    step=at,
                    compute=float(curve.compute[at]),
                    reward=float(curve.reward[at]),
                    prompts=sizes[0],
                    samples=sizes[1],
                    variance=known,
                    time=now + timedelta(seconds=at),
                )
            )
        run = session.get_one(Run, run_id)
        run.last_step, run.last_compute = places[-1], float(curve.compute[places[-1]])
        run.last_reward, run.dirty_at = float(curve.reward[places[-1]]), now + timedelta(seconds=places[-1])


def _scored(store: sessionmaker[Session], run_id: str, curve: Curve, fraction: float) -> Row | None:
    """What was shown at this share of the run, and what came; None where nothing was, or it was withheld."""
    early, outcome = early_part(curve, fraction), Outcome.of(curve)
    with store() as session:
        told = select(Forecast).where(
            Forecast.run_id == run_id, Forecast.at_compute <= fraction * curve.now * (1 + 1e-9)
        )
        said = session.scalars(told.order_by(Forecast.at_compute.desc(), Forecast.id.desc()).limit(1)).first()
    at_budget = None if said is None else said.summary["at_budget"]
    if said is None or early is None or not at_budget or not at_budget.get("calibrated"):
        return None
    alone = predict_mean(fit(early), outcome.compute).to_dict()
    shown, prior = at_budget["calibrated"], said.summary["prior"]
    return {
        "run": curve.name,
        "fraction": fraction,
        "actual": outcome.reward,
        "prior": prior,
        "calibration": at_budget["conformal"]["calibration"],
        **{name: {**one, "covered": one["lower"] <= outcome.reward <= one["upper"]} for name, one in
           (("shown", shown), ("alone", alone))},
    }  # fmt: skip


def summed_up(name: str, rows: Sequence[Row]) -> list[list[Any]]:
    """A line for each share and how many runs were known."""
    lines: list[list[Any]] = []
    for fraction in FRACTIONS:
        for least, most in KNOWN:
            kept = [row for row in rows if row["fraction"] == fraction and least <= row["before"] < most]
            if kept:
                known = f"{least} or more" if most > 1000 else f"{least} to {most - 1}"
                lines.append(
                    [name, f"{fraction:g}", known, len(kept), *_figures(kept, "shown"), *_figures(kept, "alone")]
                )
    return lines


def _figures(rows: Sequence[Row], of: str) -> tuple[float, float, float]:
    errors = [abs(row[of]["median"] - row["actual"]) for row in rows]
    widths = [row[of]["upper"] - row[of]["lower"] for row in rows]
    return float(np.mean(errors)), float(np.mean([row[of]["covered"] for row in rows])), float(np.median(widths))


if __name__ == "__main__":
    main()
