"""How long pages and the API take with a sweep of thousands of runs in the store.

    python benchmarks/large_sweeps.py [--runs 2000] [--evaluations 100] [--points 500] [--times 5] [--keep] [--json]

An embedded Postgres of its own is filled by SQL: a sweep of so many runs, four seeds an arm, and one of 100, each run
with its evaluations, its last two forecasts, and so many points of a metric of training. The forecasts are those that
the worker's own code made of a few runs, which the others are copies of but for noise. Then a server is started as
`forecurve up` starts one, and every door is asked `--times` times over HTTP; the first, which fills caches, is not
counted. `--keep` leaves the server running until Enter, to look at its pages.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import common
import httpx
import numpy as np
from service import START, Settings, _evaluate, embedded, store_of
from sqlalchemy import select, text
from sqlalchemy.orm import Session, sessionmaker

from forecurve.recipes import SCALERL, with_changes
from forecurve.science import Curve
from server.access.service import mint, mint_login_code
from server.database import new_id
from server.recipes.service import store as stored
from server.runs.models import Attempt, Run
from worker.refit import refit

ROOT = Path(__file__).resolve().parent.parent
SEEDS, SMALL, TEMPLATES = 4, 100, 40
BUDGET = 400.0
SETTINGS = Settings(DATABASE_URL="postgresql://unused", REDIS_URL="redis://unused", refit_every_s=0)

Row = dict[str, Any]


def main() -> None:
    """Run and print."""
    made = common.parser(__doc__, runs=2000)
    made.add_argument("--evaluations", type=int, default=100, help="of each run")
    made.add_argument("--points", type=int, default=500, help="of one metric of training, of each run")
    made.add_argument("--times", type=int, default=5, help="each door is asked")
    made.add_argument("--keep", action="store_true", help="leave the server running until Enter")
    asked = made.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = embedded(Path(folder))
        try:
            store = store_of(server, "large")
            ids = filled(store, asked.runs, asked.evaluations, asked.points)
            with serving(store, Path(folder)) as url, visitor(store, url) as api:
                rows = [timed(api, name, path, asked.times) for name, path in doors(ids).items()]
                shown(rows, asked.json)
                if asked.keep:
                    common.note(f"{login(store, url, ids['large'])}\nEnter ends it.")
                    input()
        finally:
            server.cleanup()


def shown(rows: list[Row], as_json: bool) -> None:
    """The table, or the rows as JSON."""
    if as_json:
        common.answer(rows)
        return
    columns = ("door", "median", "least", "most", "kB", "kB sent")
    common.table(columns, ([row[name] for name in columns] for row in rows))


def doors(ids: Row) -> dict[str, str]:
    """What is asked for, by what it is called."""
    chosen = [("run_id", id_) for id_ in ids["runs"][:20]]
    some = str(httpx.QueryParams(chosen))
    large, small, run = ids["large"], ids["small"], ids["runs"][1]
    return {
        "page of the sweep": f"/sweeps/{large}",
        "page of the sweep, sorted": f"/sweeps/{large}?sort=-end",
        "page of a sweep of 100": f"/sweeps/{small}",
        "GET /v1/sweeps/{id}": f"/v1/sweeps/{large}",
        "GET /v1/sweeps/{id}/curves": f"/v1/sweeps/{large}/curves",
        "the same, sweep of 100": f"/v1/sweeps/{small}/curves",
        "page of sweeps": "/sweeps",
        "GET /v1/sweeps": "/v1/sweeps",
        "page of runs": "/runs",
        "page of runs, sorted": "/runs?sort=-ceiling",
        "GET /v1/runs": "/v1/runs",
        "GET /v1/runs, 1,000 of them": "/v1/runs?limit=1000",
        "page of a run": f"/runs/{run}",
        "GET /v1/runs/{id}/curve": f"/v1/runs/{run}/curve",
        "comparison of 20 runs": f"/compare?{some.replace('run_id', 'run')}",
        "GET /v1/runs:curves, 20 runs": f"/v1/runs:curves?{some}",
        "track record of 300 runs": "/v1/track-record?runs=300",
    }


def timed(api: httpx.Client, name: str, path: str, times: int) -> Row:
    """How long so many answers took, and their size as written and as sent."""
    took = []
    for _ in range(times + 1):
        began = time.perf_counter()
        with api.stream("GET", path) as answer:
            sent = sum(map(len, answer.iter_raw()))
        took.append(time.perf_counter() - began)
        if answer.status_code != 200:
            raise SystemExit(f"{path} answers {answer.status_code}")
    whole = len(api.get(path).content)
    milliseconds = [1e3 * each for each in took[1:]]
    shares = {"median": np.median(milliseconds), "least": min(milliseconds), "most": max(milliseconds)}
    figures = {share: f"{value:.0f} ms" for share, value in shares.items()}
    common.note(f"{name}: {figures['median']}")
    return {"door": name, **figures, "kB": f"{whole / 1e3:,.0f}", "kB sent": f"{sent / 1e3:,.0f}"}


@contextmanager
def serving(store: sessionmaker[Session], folder: Path) -> Iterator[str]:
    """A process that serves, as `forecurve up` starts it."""
    database = store.kw["bind"].url.render_as_string(hide_password=False)
    environment = os.environ | {"DATABASE_URL": database, "FORECURVE_DATA_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        descriptor = listener.fileno()
        command = [sys.executable, "-m", "web.serve", str(descriptor)]
        process = subprocess.Popen(command, cwd=ROOT, env=environment, pass_fds=(descriptor,))
    try:
        _wait_for(f"{url}/healthz")
        yield url
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            httpx.get(url).raise_for_status()
            return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise SystemExit("the server did not start")


def visitor(store: sessionmaker[Session], url: str) -> httpx.Client:
    """Somebody who may read."""
    with store.begin() as session:
        _, secret = mint(session, kind="api", name="benchmark", scopes=["read"], now=datetime.now(UTC))
    return httpx.Client(base_url=url, headers={"Authorization": f"Bearer {secret}"}, timeout=120)


def filled(store: sessionmaker[Session], runs: int, evaluations: int, points: int) -> Row:
    """The ids of the large sweep, of the small one, and of the runs of the large one."""
    for number in range(TEMPLATES):
        _template(store, number, evaluations)
    common.note("templates are forecast")
    ids = {"large": _sweep(store, "large", runs, points), "small": _sweep(store, "small", SMALL, 0)}
    with store.begin() as session:
        mine = select(Run.id).where(Run.sweep_id == ids["large"]).order_by(Run.id)
        ids["runs"] = list(session.scalars(mine))
    with store.kw["bind"].connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))  # as the server's own housekeeping does in time
    common.note("the store is filled")
    return ids


def login(store: sessionmaker[Session], url: str, sweep: str) -> str:
    """Where a browser sees the sweep."""
    with store.begin() as session:
        code = mint_login_code(session, datetime.now(UTC))
    return f"{url}/login?code={code} and then {url}/sweeps/{sweep}"


def _template(store: sessionmaker[Session], number: int, evaluations: int) -> None:
    """A run forecast twice by the worker, at a half of its evaluations and at all of them."""
    curve = _curve(number, evaluations)
    run_id = _begin(store, curve, number)
    for part in np.array_split(np.arange(evaluations), 2):
        _evaluate(store, run_id, curve, range(int(part[0]), int(part[-1]) + 1), START)
        refit(store, SETTINGS, run_id, START)


def _begin(store: sessionmaker[Session], curve: Curve, number: int) -> str:
    recipe = with_changes(SCALERL, {"seed": number, "budget.compute": BUDGET, "budget.unit": curve.unit})
    told = {"name": curve.name, "seed": number, "compute_unit": curve.unit, "budget_compute": BUDGET}
    with store.begin() as session:
        row, _ = stored(session, recipe)
        run = Run(**told, recipe_id=row.id, changes={}, status="running", attempt=1)
        session.add(run)
        session.flush()
        session.add(Attempt(run_id=run.id, number=1, last_heartbeat_at=START))
        return run.id


def _curve(number: int, evaluations: int) -> Curve:
    rng = np.random.default_rng(number)
    compute = np.linspace(2.0, 0.5 * BUDGET, evaluations)
    rate = 0.15 + (rng.uniform(0.4, 0.85) - 0.15) / (1 + (rng.normal(40, 4) / compute) ** 1.5)
    reward = rng.binomial(1024, rate) / 1024
    return Curve(compute, reward, unit="GPU-hours", name=f"template {number}", prompts=256, samples=4, seed=number)


def _sweep(store: sessionmaker[Session], name: str, runs: int, points: int) -> str:
    """A sweep of copies of the templates; the first arm is the control, and half of the runs are over."""
    sweep_id = new_id("swp")
    values = {"sweep": sweep_id, "name": name, "runs": runs, "seeds": SEEDS, "kinds": TEMPLATES, "points": points}
    with store.begin() as session:
        for statement in COPY:
            session.execute(text(statement), values)
    return sweep_id


_ID = "'{0}_' || lpad(to_hex(c.n) || substr(:sweep, 15, 8), 26, '0')"
_MOVED = "jsonb_set({0}, '{{{1}}}', pg_temp.moved({0} #> '{{{1}}}', c.noise))"
_SUMMARY = _MOVED.format(_MOVED.format("f.summary", "A"), "at_budget,curve")
_BAND = "f.band"
for _column in ("median", "lower50", "upper50", "lower90", "upper90"):
    _BAND = _MOVED.format(_BAND, _column)
COPY = (
    # The numbers of a list or of an object, all moved by as much: each arm has a level of its own.
    """CREATE OR REPLACE FUNCTION pg_temp.moved(said jsonb, far float) RETURNS jsonb LANGUAGE sql AS $$
       SELECT CASE jsonb_typeof(said)
         WHEN 'array' THEN (SELECT jsonb_agg(v::float + far) FROM jsonb_array_elements(said) v)
         ELSE (SELECT jsonb_object_agg(key, value::float + far) FROM jsonb_each(said)) END $$""",
    # Which run is which: its number, its arm, and the template that it is a copy of.
    "CREATE TEMP TABLE IF NOT EXISTS copies (n int, arm int, template text, noise float)",
    "TRUNCATE copies",
    """INSERT INTO copies SELECT n, arm, t.id, level + 0.01 * (random() - 0.5)
       FROM (SELECT arm, 0.1 * (random() - 0.5) AS level FROM generate_series(0, :runs / :seeds) arm) a
       JOIN generate_series(0, :runs - 1) n ON n / :seeds = arm
       JOIN (SELECT id, row_number() OVER (ORDER BY id) - 1 AS kind FROM runs WHERE name LIKE 'template %') t
       ON t.kind = arm % :kinds""",
    """INSERT INTO sweeps (id, name, base_recipe_id, design, plan_hash, policy)
       SELECT :sweep, :name, (SELECT min(id) FROM recipes), '{"kind": "grid"}', 'none', 'advise'""",
    f"""INSERT INTO runs (id, name, sweep_id, recipe_id, arm, changes, is_control, seed, executor, compute_unit,
          budget_compute, desired_state, status, version, attempt, created_at, updated_at, started_at, finished_at,
          last_step, last_compute, last_reward, forecast_id, frozen_forecast_id)
       SELECT {_ID.format("run")}, 'arm ' || c.arm || ' s' || c.n % :seeds, :sweep, r.recipe_id, 'arm ' || c.arm,
          CASE WHEN c.arm = 0 THEN '{{}}'::jsonb ELSE jsonb_build_object('optimizer.learning_rate', c.arm * 1e-6) END,
          c.arm = 0, c.n % :seeds, 'ray', r.compute_unit, r.budget_compute, 'run',
          CASE WHEN c.n % 2 = 0 THEN 'running' ELSE 'succeeded' END, 1, 1, now(), now(), now(),
          CASE WHEN c.n % 2 = 0 THEN NULL ELSE now() END, r.last_step, r.last_compute, r.last_reward + c.noise,
          {_ID.format("fct")} || '1', {_ID.format("fct")} || '0'
       FROM copies c JOIN runs r ON r.id = c.template""",
    f"""INSERT INTO attempts (id, run_id, number, progress, last_heartbeat_at)
       SELECT {_ID.format("att")}, {_ID.format("run")}, 1, '{{"step": 50, "compute": 200.0}}', now() FROM copies c""",
    f"""INSERT INTO evaluations (run_id, attempt, step, compute, reward, prompts, samples, variance, details, time)
       SELECT {_ID.format("run")}, 1, e.step, e.compute,
          least(1, greatest(0, e.reward + c.noise + 0.02 * (random() - 0.5))), e.prompts, e.samples, e.variance,
          jsonb_build_object('tokens', 1e6 * (e.step + 1)), e.time
       FROM copies c JOIN evaluations e ON e.run_id = c.template""",
    f"""INSERT INTO forecasts (id, run_id, created_at, at_compute, at_step, points, unit, summary, band, state,
          sentence, seconds)
       SELECT {_ID.format("fct")} || (f.place - 1), {_ID.format("run")}, now(), f.at_compute, f.at_step, f.points,
          f.unit, {_SUMMARY}, {_BAND}, f.state, f.sentence, f.seconds
       FROM copies c JOIN (SELECT *, row_number() OVER (PARTITION BY run_id ORDER BY at_compute) AS place
                           FROM forecasts WHERE run_id IN (SELECT template FROM copies)) f
       ON f.run_id = c.template""",
    f"""INSERT INTO metric_points (run_id, metric, attempt, step, compute, value, time)
       SELECT {_ID.format("run")}, 'train/reward', 1, step, step * 0.4, random(), now()
       FROM copies c CROSS JOIN generate_series(1, :points) step""",
)


if __name__ == "__main__":
    main()
