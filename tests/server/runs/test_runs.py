"""Runs over HTTP: created, read, told to stop."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import event, select
from sqlalchemy.orm import Session, sessionmaker

from forecurve.recipes import preset
from server.alerts.service import open_alert
from server.events.models import Event, OutboxMessage
from server.forecasts.models import Forecast
from server.runs.models import Run
from server.runs.service import get_run
from server.runs.states import Status
from server.runs.views import run_views
from tests.conftest import Clock
from tests.server.reporting import Headers, evaluation, external_run, faults, launch, move, queued_run

Sessions = sessionmaker[Session]


def test_a_run_is_queued_with_the_budget_of_its_recipe(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    body = {"preset": "scalerl", "changes": {"seed": 7, "budget.compute": 12.5}}
    answer = api.post("/v1/runs", json=body, headers=headers["operate"])
    assert answer.status_code == 201, answer.text
    run = answer.json()
    assert (run["status"], run["desired_state"], run["executor"]) == ("queued", "run", "ray")
    assert (run["compute_unit"], run["budget_compute"], run["seed"]) == ("CPU-seconds", 12.5, 7)
    assert (run["name"], run["ingest_token"]) == ("scalerl-testbed", None)
    assert run["sentence"] == "Waiting for a place on the cluster."
    with sessions() as session:
        assert session.scalars(select(OutboxMessage.task)).all() == ["worker.tasks.admit"]
    assert api.get(f"/v1/runs/{run['id']}", headers=headers["read"]).json() == {
        key: value for key, value in run.items() if key != "ingest_token"
    }


def test_an_external_run_gets_its_token_once_and_no_place_on_the_cluster(
    api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    body = {"executor": "external", "name": "mine", "compute_unit": "GPU-hours", "budget_compute": 40}
    run = api.post("/v1/runs", json=body, headers=headers["operate"]).json()
    assert run["ingest_token"].startswith("fc_ingest_")
    assert (run["attempt"], run["status"], run["budget_compute"]) == (1, "queued", 40)
    assert run["sentence"].startswith("Waiting for its first report since 20")
    assert "ingest_token" not in api.get(f"/v1/runs/{run['id']}", headers=headers["read"]).json()
    (attempt,) = api.get(f"/v1/runs/{run['id']}/attempts", headers=headers["read"]).json()["items"]
    assert attempt["number"] == 1
    assert api.get(f"/v1/runs/{run['id']}/recipe", headers=headers["read"]).status_code == 404
    with sessions() as session:
        assert session.scalars(select(OutboxMessage.task)).all() == []


def test_an_external_run_may_have_a_recipe(api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers, preset="scalerl", compute_unit=None)
    view = api.get(f"/v1/runs/{run.run_id}", headers=headers["read"]).json()
    assert (view["compute_unit"], view["budget_compute"]) == ("CPU-seconds", preset("scalerl").budget.compute)
    read = api.get(f"/v1/runs/{run.run_id}/recipe", headers={"Authorization": f"Bearer {run.token}"})
    assert read.json()["digest"] == preset("scalerl").digest
    other = external_run(api, headers, preset="scalerl")
    assert (
        api.get(f"/v1/runs/{run.run_id}/recipe", headers={"Authorization": f"Bearer {other.token}"}).status_code == 403
    )


BAD: dict[str, tuple[dict[str, Any], int, str]] = {
    "no recipe": ({}, 422, "recipe"),
    "two recipes": ({"preset": "scalerl", "recipe": {}}, 422, "preset"),
    "a recipe that is not there": ({"recipe_id": "rec_nowhere"}, 404, "recipe_id"),
    "an unknown key in the recipe": ({"recipe": {"modle": {}}}, 422, "modle"),
    "an unknown key in the request": ({"preset": "scalerl", "budget": 3}, 422, "budget"),
    "a budget beside the recipe's": ({"preset": "scalerl", "budget_compute": 3}, 422, "budget_compute"),
    "an external run without a unit": ({"executor": "external"}, 422, "compute_unit"),
    "an unknown unit": ({"executor": "external", "compute_unit": "FLOPs"}, 422, "compute_unit"),
    "a budget of nothing": (
        {"executor": "external", "compute_unit": "steps", "budget_compute": 0},
        422,
        "budget_compute",
    ),
    "a budget that no fit takes": (
        {"executor": "external", "compute_unit": "steps", "budget_compute": 1e41},
        422,
        "budget_compute",
    ),
    "a recipe's budget that no fit takes": (
        {"preset": "scalerl", "changes": {"budget.compute": 1e308}},
        422,
        "budget.compute",
    ),
    "a step that is never stored": (
        {"preset": "scalerl", "changes": {"budget.max_steps": 2**31}},
        422,
        "budget.max_steps",
    ),
    "a blank name": ({"preset": "scalerl", "name": "   "}, 422, "name"),
    "a name that cannot be seen": ({"preset": "scalerl", "name": "\u200b"}, 422, "name"),
    "a blank name in the recipe": ({"recipe": {"name": " \t"}}, 422, "name"),
    "an unknown executor": ({"preset": "scalerl", "executor": "slurm"}, 422, "executor"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_run_is_named_and_nothing_is_stored(
    case: str, api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    body, status, field = BAD[case]
    answer = api.post("/v1/runs", json=body, headers=headers["operate"])
    assert answer.status_code == status, answer.text
    assert field in faults(answer)
    with sessions() as session:
        assert session.scalars(select(Run.id)).all() == []


def test_a_name_is_kept_without_the_space_around_it(api: TestClient, headers: Headers) -> None:
    run = api.post("/v1/runs", json={"preset": "scalerl", "name": "  two words "}, headers=headers["operate"])
    assert run.json()["name"] == "two words"
    body = {"preset": "scalerl", "design": {"kind": "leave_one_out"}, "name": "  "}
    for path in ("/v1/sweeps", "/v1/sweeps:plan"):
        assert "name" in faults(api.post(path, json=body, headers=headers["operate"]))
    fork = api.post(f"/v1/runs/{run.json()['id']}/forks", json={"name": " "}, headers=headers["operate"])
    assert "name" in faults(fork)


def test_runs_are_listed_newest_first_and_filtered(
    api: TestClient, headers: Headers, sessions: Sessions, clock: Clock
) -> None:
    first = queued_run(api, headers, name="first")
    queued_run(api, headers, name="second")
    external_run(api, headers, name="third").send(1, evaluation(10))
    move(sessions, first, Status.STOPPED, clock.now)

    def names(query: str) -> list[str]:
        answer = api.get(f"/v1/runs?{query}", headers=headers["read"])
        assert answer.status_code == 200, answer.text
        return [run["name"] for run in answer.json()["items"]]

    assert sorted(names("")) == ["first", "second", "third"]
    assert names("status=stopped") == ["first"]
    assert sorted(names("status=stopped&status=queued")) == ["first", "second"]
    assert names("arm=none") == []
    assert names("name=second") == ["second"]
    assert names("name=Second") == []
    assert "queued" in faults(api.get("/v1/runs?status=waiting", headers=headers["read"]))["status"]
    page = api.get("/v1/runs?limit=1", headers=headers["read"]).json()
    assert page["next_cursor"] == page["items"][0]["id"]


def test_runs_are_counted_by_status(api: TestClient, headers: Headers) -> None:
    assert api.get("/v1/runs:count", headers=headers["read"]).json() == {"statuses": {}}
    runs = [external_run(api, headers) for _ in range(3)]
    runs[0].send(1, evaluation(10))
    assert api.get("/v1/runs:count", headers=headers["read"]).json() == {"statuses": {"queued": 2, "running": 1}}


def test_a_sweep_lists_its_runs(api: TestClient, headers: Headers) -> None:
    body = {"preset": "scalerl", "design": {"kind": "leave_one_out", "ingredients": ["cispo"]}}
    sweep = api.post("/v1/sweeps", json=body, headers=headers["operate"]).json()
    queued_run(api, headers)
    listed = api.get(f"/v1/runs?sweep_id={sweep['id']}&arm=no-cispo", headers=headers["read"]).json()["items"]
    assert [run["changes"] for run in listed] == [{"algorithm.loss": "dapo"}]


def test_stop_says_what_is_wanted_and_leaves_the_rest_to_the_reconciler(
    api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    run_id = queued_run(api, headers)
    answer = api.post(f"/v1/runs/{run_id}:stop", json={"reason": "too dear"}, headers=headers["operate"])
    assert answer.status_code == 200, answer.text
    assert (answer.json()["desired_state"], answer.json()["status"], answer.json()["version"]) == ("stop", "queued", 2)
    again = api.post(f"/v1/runs/{run_id}:stop", headers=headers["operate"])
    assert again.json() == answer.json()
    with sessions() as session:
        (said,) = session.scalars(select(Event).where(Event.kind == "run.desired"))
        assert (said.from_state, said.to_state, said.reason, said.run_id) == ("run", "stop", "too dear", run_id)
        assert said.actor.startswith("tok_")
        asked = session.scalars(select(OutboxMessage).where(OutboxMessage.task == "worker.tasks.reconcile_run")).all()
        assert [message.args for message in asked] == [[run_id]]


def test_cancel_is_stronger_than_stop(api: TestClient, headers: Headers) -> None:
    run_id = queued_run(api, headers)
    for verb, wanted in (("stop", "stop"), ("cancel", "cancel"), ("stop", "cancel")):
        answer = api.post(f"/v1/runs/{run_id}:{verb}", headers=headers["operate"])
        assert answer.json()["desired_state"] == wanted


def test_a_run_that_is_over_cannot_be_stopped(
    api: TestClient, headers: Headers, sessions: Sessions, clock: Clock
) -> None:
    run_id = queued_run(api, headers)
    move(sessions, run_id, Status.FAILED, clock.now, "out of memory")
    for verb in ("stop", "cancel"):
        answer = api.post(f"/v1/runs/{run_id}:{verb}", headers=headers["operate"])
        assert (answer.status_code, answer.json()["code"], answer.json()["state"]) == (409, "over", "failed")
        assert "out of memory" in answer.json()["detail"]
    with sessions() as session:
        assert session.get_one(Run, run_id).desired_state == "run"


@pytest.mark.parametrize("path", ["", "/recipe", "/attempts", "/events", "/checkpoints", "/evaluations", "/metrics"])
def test_an_unknown_run_is_404_at_every_door(path: str, api: TestClient, headers: Headers) -> None:
    answer = api.get(f"/v1/runs/run_nowhere{path}", headers=headers["read"])
    assert answer.status_code == 404
    assert "GET /v1/runs" in faults(answer)["run_id"]


def test_the_view_tells_of_forecast_alerts_and_progress(
    api: TestClient, headers: Headers, sessions: Sessions, clock: Clock
) -> None:
    run = external_run(api, headers, budget_compute=100)
    run.send(1, evaluation(10, 10.0, 0.4))
    run.beat(step=11, compute=10.5, message="warming up")
    with sessions.begin() as session:
        _forecast(session, get_run(session, run.run_id))
        open_alert(
            session,
            get_run(session, run.run_id),
            kind="below_forecast",
            level="WARN",
            title="low",
            text="low",
            now=clock.now,
        )
    view = api.get(f"/v1/runs/{run.run_id}", headers=headers["read"]).json()
    assert view["ceiling"] == {"median": 0.78, "lower": 0.76, "upper": 0.81}
    assert view["at_budget"] == {"median": 0.77, "lower": 0.75, "upper": 0.79}
    assert (view["identified"], view["misfit"], view["open_alerts"]) == (0.93, None, 1)
    assert view["advice"] == {"action": "continue", "reason": "it still rises"}
    assert view["sentence"] == "Ceiling 0.78."
    assert (view["last_step"], view["last_compute"], view["last_reward"]) == (10, 10.0, 0.4)
    progress = view["progress"]
    assert (progress["step"], progress["compute"], progress["message"]) == (11, 10.5, "warming up")
    assert progress["heartbeat_at"]


def test_many_views_cost_no_more_queries_than_one(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    runs = [external_run(api, headers) for _ in range(5)]
    with sessions.begin() as session:
        for run in runs:
            _forecast(session, get_run(session, run.run_id))
    with sessions() as session:
        rows = session.scalars(select(Run)).all()
        assert _queries(session, rows[:1]) == _queries(session, rows)
        assert len(run_views(session, rows)) == 5
        assert run_views(session, []) == []


def test_the_audit_log_is_read_newest_first(api: TestClient, headers: Headers) -> None:
    run = external_run(api, headers)
    run.send(1, evaluation(10))
    api.post(f"/v1/runs/{run.run_id}:stop", headers=headers["operate"])
    first = api.get(f"/v1/runs/{run.run_id}/events?limit=2", headers=headers["read"]).json()
    kinds = [item["kind"] for item in first["items"]]
    rest = api.get(f"/v1/runs/{run.run_id}/events?cursor={first['next_cursor']}", headers=headers["read"]).json()
    kinds += [item["kind"] for item in rest["items"]]
    assert kinds == ["run.desired", "evaluation", "run.status", "run.created"]


@pytest.mark.parametrize(
    ("action", "known", "advised", "ceiling"),
    [
        ("continue", True, None, "Ceiling 0.78 (90 %: 0.76 to 0.81)."),
        ("scale", False, "scale", "It ended before its ceiling was identified (0.76 to 0.81)."),
    ],
)
def test_of_a_run_that_is_over_nothing_is_expected_and_only_more_is_advised(
    api: TestClient,
    headers: Headers,
    sessions: Sessions,
    clock: Clock,
    action: str,
    known: bool,
    advised: str | None,
    ceiling: str,
) -> None:
    run = external_run(api, headers, budget_compute=100)
    run.send(1, evaluation(10, 10.0, 0.4))
    with sessions.begin() as session:
        _forecast(session, get_run(session, run.run_id))
        forecast = session.get_one(Forecast, get_run(session, run.run_id).forecast_id)
        advice = {"action": action, "reason": "it still rises"}
        forecast.summary = forecast.summary | {"advice": advice, "ceiling_known": known}
    move(sessions, run.run_id, Status.SUCCEEDED, clock.now, "30 steps reached")
    for view in (
        api.get(f"/v1/runs/{run.run_id}", headers=headers["read"]).json(),
        api.get("/v1/runs", headers=headers["read"]).json()["items"][0],
    ):
        assert view["sentence"] == f"Succeeded after 10 GPU-hours at pass rate 0.40: 30 steps reached. {ceiling}"
        assert (view["advice"] or {}).get("action") == advised
        assert view["ending"] is None


def test_a_run_that_its_sweep_stopped_is_not_advised_to_go_on_with_more(
    api: TestClient, headers: Headers, sessions: Sessions, clock: Clock
) -> None:
    run = external_run(api, headers, budget_compute=100)
    run.send(1, evaluation(10, 10.0, 0.4))
    with sessions.begin() as session:
        row = get_run(session, run.run_id)
        _forecast(session, row)
        forecast = session.get_one(Forecast, row.forecast_id)
        forecast.summary = forecast.summary | {"advice": {"action": "scale", "reason": "it still rises"}}
        row.allocated = True
    move(sessions, run.run_id, Status.STOPPED, clock.now, "its sweep can drop it")
    assert api.get(f"/v1/runs/{run.run_id}", headers=headers["read"]).json()["advice"] is None


def test_status_words_without_a_forecast(api: TestClient, headers: Headers, sessions: Sessions, clock: Clock) -> None:
    run_id = queued_run(api, headers)
    said = []

    def look() -> None:
        said.append(api.get(f"/v1/runs/{run_id}", headers=headers["read"]).json()["sentence"])

    attempt = launch(api, sessions, run_id, clock.now)
    look()
    attempt.beat()
    look()
    attempt.beat(step=0, compute=0.0, message="waits for room on the cluster")
    look()
    attempt.send(1, evaluation(0, reward=0.25))
    look()
    move(sessions, run_id, Status.FAILED, clock.now, "out of memory")
    look()
    assert said == [
        "Being launched.",
        "No evaluation yet.",
        "No evaluation yet: waits for room on the cluster.",
        "Pass rate 0.25; no forecast yet, its evaluations are waiting to be fitted.",
        "Failed after 0 CPU-seconds at pass rate 0.25: out of memory. No forecast was made.",
    ]


def _forecast(session: Session, run: Run) -> None:
    estimate = {"median": 0.78, "lower": 0.76, "upper": 0.81}
    forecast = Forecast(
        run_id=run.id,
        at_compute=10.0,
        at_step=10,
        points=5,
        unit=run.compute_unit,
        summary={
            "A": estimate,
            "identified": {"A": 0.93},
            "ceiling_known": True,
            "misfit": None,
            "at_budget": {"compute": 100.0, "curve": {"median": 0.77, "lower": 0.75, "upper": 0.79}},
            "advice": {"action": "continue", "reason": "it still rises"},
        },
        band={},
        state={},
        sentence="Ceiling 0.78.",
        seconds=0.01,
    )
    session.add(forecast)
    session.flush()
    run.forecast_id = forecast.id


def _queries(session: Session, rows: Any) -> int:
    seen: list[str] = []
    connection = session.connection()
    listener = lambda *args: seen.append(args[2])  # noqa: E731
    event.listen(connection, "before_cursor_execute", listener)
    run_views(session, rows)
    event.remove(connection, "before_cursor_execute", listener)
    return len(seen)
