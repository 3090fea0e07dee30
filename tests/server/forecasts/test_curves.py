"""CurveViews hold all that a chart needs, without doubled points, at the same few queries for any number of runs."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine
from sqlalchemy.orm import Session, sessionmaker

from server.alerts.service import open_alert
from server.checkpoints.models import Checkpoint
from server.forecasts.curves import run_curve
from server.forecasts.recommendations import recommend
from server.forecasts.schemas import CurveView
from server.metrics.curve import validation_curve, validation_curves
from server.runs.models import Run
from tests.server.counting import counted
from tests.server.forecasts.seeds import START, add_evaluations, make_forecast, make_run, make_sweep, sigmoid

Headers = dict[str, dict[str, str]]
Sessions = sessionmaker[Session]


def full_run(session: Session, name: str = "no-cispo", points: int = 21, **columns: Any) -> Run:
    """A run with a curve, checkpoints, an old (frozen) and a new forecast, an alert and advice."""
    run = make_run(session, name, **columns)
    compute = np.linspace(0, 40, points)
    add_evaluations(session, run, compute, sigmoid(compute))
    for step in (50, 100):
        session.add(
            Checkpoint(
                run_id=run.id, attempt=1, step=step, compute=step / 5, path="p", digest=f"sha256:{step}", size_bytes=1
            )
        )
    run.frozen_forecast_id = make_forecast(session, run, at_compute=35.0).id
    newest = make_forecast(session, run, at_compute=40.0)
    open_alert(
        session, run, kind="below_forecast", level="ALERT", title="fell", text="It fell.", now=START,
        since_compute=37.0, at_compute=39.0, attempt=1,
    )  # fmt: skip
    recommend(session, run, newest, action="continue", reason="It pays.", numbers={"gain": 0.1}, now=START)
    return run


def make_checkpoint(run: Run, step: int, compute: float) -> Checkpoint:
    where = {"run_id": run.id, "attempt": 1, "step": step, "compute": compute, "path": f"checkpoints/{step}"}
    return Checkpoint(**where, digest=f"sha256:{step}", size_bytes=1)


def without(view: dict[str, Any], *names: str) -> dict[str, Any]:
    return {key: value for key, value in view.items() if key not in names}


def test_a_curve_view_has_everything_the_contract_names(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    with sessions.begin() as session:
        run = full_run(session)
    answer = api.get(f"/v1/runs/{run.id}/curve", headers=headers["read"])
    assert answer.status_code == 200, answer.text
    view = answer.json()
    CurveView.model_validate(view)
    assert list(view) == [
        "run", "unit", "budget", "points", "forecast", "frozen", "checkpoints", "restarts", "refits", "alerts",
        "recommendation", "cursor",
    ]  # fmt: skip
    assert (view["run"]["id"], view["unit"], view["budget"]) == (run.id, "GPU-hours", 100.0)
    assert len(view["points"]) == 21
    assert without(view["points"][1], "time") == {
        "step": 10, "attempt": 1, "compute": 2.0, "reward": pytest.approx(float(sigmoid(2.0))), "se": 0.007746,
        "tokens": None,
    }  # fmt: skip
    forecast = view["forecast"]
    assert forecast["A"] == {"median": 0.78, "lower": 0.76, "upper": 0.81}
    assert {len(values) for values in forecast["band"].values()} == {80}
    assert forecast["at_budget"]["curve"]["upper"] == 0.81
    assert forecast["advice"]["action"] == "continue"
    assert (forecast["at_compute"], view["frozen"]["at_compute"]) == (40.0, 35.0)
    assert view["frozen"]["id"] == run.frozen_forecast_id
    assert [c["digest"] for c in view["checkpoints"]] == ["sha256:50", "sha256:100"]
    assert [r["id"] for r in view["refits"]] == [run.frozen_forecast_id, run.forecast_id]
    assert [(a["level"], a["since_compute"]) for a in view["alerts"]] == [("ALERT", 37.0)]
    assert (view["recommendation"]["action"], view["recommendation"]["numbers"]) == ("continue", {"gain": 0.1})
    assert view["restarts"] == []


def test_a_run_without_any_evaluation_has_an_empty_curve(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    with sessions.begin() as session:
        run = make_run(session, status="queued", budget_compute=None)
    view = api.get(f"/v1/runs/{run.id}/curve", headers=headers["read"]).json()
    emptied = (
        "points",
        "forecast",
        "frozen",
        "checkpoints",
        "restarts",
        "refits",
        "alerts",
        "recommendation",
        "budget",
    )
    assert not any(view[name] for name in emptied)


def test_unknown_runs_sweeps_and_forecasts_are_not_found(api: TestClient, headers: Headers) -> None:
    for path in ("/v1/runs/run_x/curve", "/v1/sweeps/swp_x/curves", "/v1/runs/run_x/forecasts", "/v1/forecasts/fct_x"):
        answer = api.get(path, headers=headers["read"])
        assert (answer.status_code, answer.json()["code"]) == (404, "not-found"), path


def test_the_cursor_comes_before_whatever_happens_next(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    with sessions.begin() as session:
        run = full_run(session)
    cursor = api.get(f"/v1/runs/{run.id}/curve", headers=headers["read"]).json()["cursor"]
    with sessions.begin() as session:
        open_alert(
            session, session.get_one(Run, run.id), kind="run_failed", level="ALERT", title="t", text="x", now=START
        )
    after = api.get(f"/v1/events?since={cursor}&run_id={run.id}", headers=headers["read"]).json()["items"]
    assert [e["kind"] for e in after] == ["alert"]


def test_a_resumed_attempt_supersedes_what_the_older_one_measured_beyond_it(session: Session) -> None:
    run = make_run(session, attempt=3)
    add_evaluations(session, run, range(10), np.linspace(0.1, 0.19, 10))  # steps 0 to 90
    add_evaluations(session, run, [4.5, 5.5], [0.55, 0.56], attempt=2, first_step=50)
    add_evaluations(session, run, [5.2, 6.2], [0.65, 0.66], attempt=3, first_step=60)
    points = validation_curve(session, run.id)
    assert [(p.step, p.attempt) for p in points] == [
        (0, 1),
        (10, 1),
        (20, 1),
        (30, 1),
        (40, 1),
        (50, 2),
        (60, 3),
        (70, 3),
    ]


def test_a_fall_that_a_resumed_attempt_has_thrown_away_is_no_mark_on_the_curve(session: Session) -> None:
    run = full_run(session)
    assert [alert.at_compute for alert in run_curve(session, run.id).alerts] == [39.0]
    add_evaluations(session, run, [36.0, 40.0], [0.7, 0.71], attempt=2, first_step=180)
    assert run_curve(session, run.id).alerts == []


def test_curves_of_many_runs_do_not_mix(session: Session) -> None:
    runs = [make_run(session, f"r{n}") for n in range(3)]
    for n, run in enumerate(runs[:2]):
        add_evaluations(session, run, range(5), [0.1 * n] * 5)
    curves = validation_curves(session, [run.id for run in runs])
    assert [[p.reward for p in curves[run.id]] for run in runs] == [[0.0] * 5, [0.1] * 5, []]
    assert validation_curves(session, []) == {}


@pytest.mark.parametrize(("with_checkpoint", "place"), [(True, (30, 6.0)), (False, (40, 8.0))])
def test_a_restart_is_marked_at_its_checkpoint_or_else_at_its_first_evaluation(
    api: TestClient, headers: Headers, sessions: Sessions, with_checkpoint: bool, place: tuple[int, float]
) -> None:
    with sessions.begin() as session:
        run = make_run(session, attempt=2)
        add_evaluations(session, run, [0, 2, 4, 6, 8], [0.1] * 5)
        add_evaluations(session, run, [8.0, 10.0], [0.2, 0.3], attempt=2, first_step=40)
        for step, compute in ((10, 2.0), (30, 6.0), (90, 18.0)) if with_checkpoint else ():
            session.add(make_checkpoint(run, step, compute))
    (restart,) = api.get(f"/v1/runs/{run.id}/curve", headers=headers["read"]).json()["restarts"]
    assert restart == {"attempt": 2, "step": place[0], "compute": place[1]}


def test_forecasts_of_a_run_are_listed_newest_first(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    with sessions.begin() as session:
        run = full_run(session)
        full_run(session, "other")
    page = api.get(f"/v1/runs/{run.id}/forecasts?limit=1", headers=headers["read"]).json()
    rest = api.get(f"/v1/runs/{run.id}/forecasts?cursor={page['next_cursor']}", headers=headers["read"]).json()
    assert [f["id"] for f in page["items"] + rest["items"]] == [run.forecast_id, run.frozen_forecast_id]
    one = api.get(f"/v1/forecasts/{run.forecast_id}", headers=headers["read"]).json()
    assert one == page["items"][0]


def test_a_sweep_of_fifty_runs_costs_as_many_queries_as_a_sweep_of_one(
    api: TestClient, headers: Headers, sessions: Sessions, engine: Engine
) -> None:
    with sessions.begin() as session:
        small, large = make_sweep(session).id, make_sweep(session).id
        full_run(session, "only", sweep_id=small)
        for number in range(50):
            full_run(session, f"arm {number}", points=80, sweep_id=large)
    api.get(f"/v1/sweeps/{small}/curves", headers=headers["read"])  # connection and token are fresh no more
    answers, queries = [], []
    for sweep in (small, large):
        with counted(engine) as statements:
            began = time.perf_counter()
            answers.append(api.get(f"/v1/sweeps/{sweep}/curves", headers=headers["read"]))
            took = time.perf_counter() - began
        queries.append(len(statements))
    assert queries[0] == queries[1]
    view = answers[1].json()
    assert (view["sweep"]["id"], view["unit"], len(view["runs"])) == (large, "GPU-hours", 50)
    assert [run["run"]["name"] for run in view["runs"]] == [f"arm {n}" for n in range(50)]
    assert {len(run["points"]) for run in view["runs"]} == {80}
    print(f"{queries[1]} queries, {took:.2f} s, {len(answers[1].content)} bytes")
    assert took < 5.0, f"{took:.2f} s for {len(answers[1].content)} bytes"


def test_frozen_forecasts_are_left_out_where_nobody_draws_them(
    api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    with sessions.begin() as session:
        sweep = make_sweep(session)
        first, second = (full_run(session, name, sweep_id=sweep.id) for name in ("a", "b"))
        second.frozen_forecast_id = second.forecast_id  # its newest is the frozen one
        some = f"run_id={first.id}&run_id={second.id}"
    for path in (f"/v1/sweeps/{sweep.id}/curves?", f"/v1/runs:curves?{some}&"):
        whole, drawn = (
            api.get(f"{path}frozen={asked}", headers=headers["read"]).json()["runs"] for asked in ("true", "false")
        )
        assert None not in [view["frozen"] for view in whole]
        assert [without(view, "frozen", "cursor") for view in whole] == [without(v, "frozen", "cursor") for v in drawn]


def test_runs_in_different_units_have_no_common_one(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    with sessions.begin() as session:
        sweep = make_sweep(session)
        make_run(session, "a", sweep_id=sweep.id)
        make_run(session, "b", sweep_id=sweep.id, compute_unit="CPU-seconds")
    view = api.get(f"/v1/sweeps/{sweep.id}/curves", headers=headers["read"]).json()
    assert view["unit"] is None
    assert [run["unit"] for run in view["runs"]] == ["GPU-hours", "CPU-seconds"]


def test_an_interval_without_an_end_is_null_in_json(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    with sessions.begin() as session:
        run = make_run(session)
        forecast = make_forecast(session, run)
        forecast.summary = {**forecast.summary, "C_mid": {"median": 50.0, "lower": 3.0, "upper": None}}
    view = api.get(f"/v1/runs/{run.id}/curve", headers=headers["read"]).json()
    assert view["forecast"]["C_mid"]["upper"] is None


def test_the_refits_of_a_batch_end_with_the_newest_forecast(
    api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    with sessions.begin() as session:
        run = make_run(session)
        newest = make_forecast(session, run, at_compute=72.0, id="fct_0", created_at=START)
        frozen = make_forecast(session, run, at_compute=36.0, id="fct_1", created_at=START)
        run.forecast_id, run.frozen_forecast_id = newest.id, frozen.id
    view = api.get(f"/v1/runs/{run.id}/curve", headers=headers["read"]).json()
    assert [refit["at_compute"] for refit in view["refits"]] == [36.0, 72.0]
