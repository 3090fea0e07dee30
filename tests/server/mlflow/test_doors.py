"""MLflow's doors: how its runs begin, go on and end, what is read back, and who may ask."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.mlflow.endpoints import PREFIX, router
from server.mlflow.runs import QUIET_S
from server.runs.models import Attempt
from server.runs.states import Status
from tests.conftest import Clock
from tests.server.mlflow.logging import DOORS, Logger
from tests.server.reporting import external_run, move

BEGAN = 1_790_000_000_000


def test_parameters_that_come_at_once_are_all_kept(logger: Logger) -> None:
    run = logger.begin()

    def say(number: int) -> int:
        return logger.post("runs/log-parameter", run_id=run, key=f"p{number}", value="x").status_code

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(say, range(24))) == {200}
    assert len(logger.get("runs/get", run_id=run).json()["run"]["data"]["params"]) == 24


def test_what_comes_again_changes_nothing(logger: Logger) -> None:
    run = logger.begin(metric="val/acc")
    for _ in range(3):
        logger.log(run, 1, val__acc=0.5)
    assert logger.curve(run) == [(1, 1.0, 0.5)]


def test_runs_that_begin_in_one_moment_are_as_many(logger: Logger) -> None:
    assert len({logger.begin("grpo", start=BEGAN) for _ in range(3)}) == 3


def test_a_run_that_goes_on_gets_an_attempt_and_throws_its_old_branch_away(logger: Logger) -> None:
    run = logger.begin(metric="val/acc")
    for step in (0, 10, 20):
        logger.log(run, step, val__acc=0.1 + step / 100)
    assert logger.post("runs/update", run_id=run, status="RUNNING").json()["run_info"]["status"] == "RUNNING"
    assert logger.run(run)["attempt"] == 2
    assert logger.post("runs/update", run_id=run, status="RUNNING").status_code == 200
    assert logger.run(run)["attempt"] == 2  # it has logged nothing yet
    logger.log(run, 10, val__acc=0.5)
    assert [(step, round(reward, 2)) for step, _, reward in logger.curve(run)] == [(0, 0.1), (10, 0.5)]


@pytest.mark.parametrize(
    ("status", "outcome"), [("FINISHED", "succeeded"), ("FAILED", "failed"), ("KILLED", "stopped")]
)
def test_the_end_is_the_first_that_was_said(
    logger: Logger, sessions: sessionmaker[Session], status: str, outcome: str
) -> None:
    run = logger.begin()
    for said in (status, "FINISHED"):
        assert logger.post("runs/update", run_id=run, status=said, end_time=BEGAN + 5).status_code == 200
    assert logger.get("runs/get", run_id=run).json()["run"]["info"]["status"] == status
    with sessions() as session:
        assert session.scalars(select(Attempt.outcome).where(Attempt.run_id == run)).all() == [outcome]


def test_a_run_that_is_over_takes_no_numbers_and_does_not_go_on(
    logger: Logger, sessions: sessionmaker[Session], clock: Clock
) -> None:
    run = logger.begin()
    logger.post("runs/update", run_id=run, status="FINISHED")
    move(sessions, run, Status.SUCCEEDED, clock.now)
    assert logger.get("runs/get", run_id=run).json()["run"]["info"]["status"] == "FINISHED"
    for answer in (logger.log(run, 1, val__acc=0.5), logger.post("runs/update", run_id=run, status="RUNNING")):
        assert answer.status_code == 409
        assert answer.json()["code"] == "over"
    assert logger.post("runs/update", run_id=run, status="FINISHED").status_code == 200


def test_a_run_that_is_to_stop_says_so_by_a_tag(logger: Logger) -> None:
    run = logger.begin()

    def tags() -> dict[str, str]:
        data = logger.get("runs/get", run_id=run).json()["run"]["data"]
        return {tag["key"]: tag["value"] for tag in data["tags"]}

    assert "forecurve.stop" not in tags()
    logger.api.post(f"/v1/runs/{run}:stop", json={"reason": "plateau"}, headers=logger.headers["operate"])
    assert tags()["forecurve.stop"] == "plateau"


def test_silence_tells_nothing_for_three_of_the_longest_pauses(
    logger: Logger, sessions: sessionmaker[Session], clock: Clock
) -> None:
    run = logger.begin()
    patience = []
    for pause in (10, 1000, 20):
        clock.advance(pause)
        logger.log(run, pause, loss=1.0)
        with sessions() as session:
            patience.append(session.scalars(select(Attempt.patience_s).where(Attempt.run_id == run)).one())
    assert patience == [QUIET_S, pytest.approx(3000), pytest.approx(3000)]
    logger.post("runs/update", run_id=run, status="RUNNING")
    with sessions() as session:
        newest = select(Attempt.patience_s).where(Attempt.run_id == run, Attempt.number == 2)
        assert session.scalars(newest).one() == pytest.approx(3000)


def test_a_persons_tag_is_no_sign_of_life(logger: Logger, sessions: sessionmaker[Session], clock: Clock) -> None:
    run = logger.begin()
    clock.advance(400_000)
    move(sessions, run, Status.SUSPECT, clock.now)
    logger.post("runs/set-tag", run_id=run, key="note", value="it crashed")
    assert logger.run(run)["status"] == "suspect"
    logger.log(run, 1, loss=1.0)
    assert logger.run(run)["status"] == "running"
    with sessions() as session:  # nor tells the pause of a run that was taken for silent how long its pauses are
        assert session.scalars(select(Attempt.patience_s).where(Attempt.run_id == run)).one() == QUIET_S


def test_what_is_null_or_too_long_or_too_large_is_no_error(logger: Logger) -> None:
    run = logger.begin(metric="acc")
    told = {"metrics": [{"key": "acc", "value": 10**400, "step": 2**70, "timestamp": None}], "params": None}
    assert logger.post("runs/log-batch", run_id=run, run_uuid=None, **told).status_code == 200
    assert logger.post("runs/log-parameter", run_id=run, key="files", value="x" * 20_000).status_code == 200
    [param] = logger.get("runs/get", run_id=run).json()["run"]["data"]["params"]
    assert param["value"] == "x" * 8000
    assert logger.post("runs/log-inputs", run_id=run, datasets=[]).json() == {}
    assert logger.get("metrics/get-history", run_id=run, metric_key="acc", page_token="").json() == {"metrics": []}
    far = logger.get("metrics/get-history", run_id=run, metric_key="acc", page_token="9999999999")
    assert far.json() == {"metrics": []}


def test_what_is_no_request_is_told_in_mlflows_words(logger: Logger) -> None:
    answer = logger.post("runs/log-batch", run_id="x", metrics=7)
    assert (answer.status_code, answer.json()["error_code"]) == (422, "INVALID_PARAMETER_VALUE")
    assert answer.json()["message"].startswith("metrics: ")
    large = logger.post("runs/log-batch", run_id="x", tags=[{"key": "k", "value": "v" * 2_000_000}])
    assert (large.status_code, large.json()["error_code"]) == (413, "REQUEST_LIMIT_EXCEEDED")


def test_the_tag_of_the_name_renames_and_tags_are_dropped(logger: Logger) -> None:
    run = logger.begin("old", logger.experiment(), metric="acc")
    logger.post("runs/set-tag", run_id=run, key="mlflow.runName", value="new")
    assert logger.run(run)["name"] == "gsm8k/new"
    logger.post("runs/set-tag", run_id=run, key="note", value="x")
    assert logger.post("runs/delete-tag", run_id=run, key="note").json() == {}
    tags = {tag["key"]: tag["value"] for tag in logger.get("runs/get", run_id=run).json()["run"]["data"]["tags"]}
    assert tags == {"mlflow.runName": "new", "forecurve.metric": "acc"}
    logger.log(run, 1, acc=0.5)
    assert logger.post("runs/delete-tag", run_id=run, key="forecurve.metric").status_code == 409


def test_a_seed_that_is_told_late_is_taken(logger: Logger) -> None:
    run = logger.begin(metric="acc", task="gsm8k", arm="no-kl")
    logger.log(run, 1, acc=0.5)
    assert (logger.run(run)["arm"], logger.run(run)["seed"]) == (None, None)
    logger.post("runs/log-parameter", run_id=run, key="seed", value="3")
    assert (logger.run(run)["arm"], logger.run(run)["seed"]) == ("no-kl", 3)
    other = logger.begin(metric="acc", task="gsm8k", arm="no-kl", seed=3)
    logger.post("runs/delete-tag", run_id=other, key="forecurve.seed")
    logger.log(other, 1, acc=0.5)
    assert (logger.run(other)["arm"], logger.run(other)["seed"]) == (None, None)  # an arm is nothing without a seed


def test_the_newest_value_of_every_number_is_read_back(logger: Logger) -> None:
    run = logger.begin()
    logger.log(run, 1, loss=1.0, acc="Infinity")
    logger.log(run, 2, loss="NaN")
    logger.post("runs/log-parameter", run_id=run, key="lr", value="1e-6")
    logger.post("runs/log-parameter", run_id=run, key="lr", value="2e-6")
    data = logger.get("runs/get", run_id=run).json()["run"]["data"]
    assert [(one["key"], one["value"], one["step"]) for one in data["metrics"]] == [
        ("acc", "Infinity", 1),
        ("loss", "NaN", 2),
    ]
    assert data["params"] == [{"key": "lr", "value": "2e-6"}]


def test_history_is_read_in_pages(logger: Logger) -> None:
    run = logger.begin()
    for step in range(5):
        logger.log(run, step, loss=step / 2)
    first = logger.get("metrics/get-history", run_id=run, metric_key="loss", max_results=3).json()
    assert [one["value"] for one in first["metrics"]] == [0.0, 0.5, 1.0]
    rest = logger.get("metrics/get-history", run_id=run, metric_key="loss", page_token=first["next_page_token"]).json()
    assert ([one["step"] for one in rest["metrics"]], "next_page_token" in rest) == ([3, 4], False)


def test_experiments_are_found_by_id_and_name_and_are_there_once(logger: Logger) -> None:
    home = logger.experiment("maths")
    assert logger.get("experiments/get", experiment_id=home).json()["experiment"]["name"] == "maths"
    assert logger.get("experiments/get-by-name", experiment_name="maths").json()["experiment"]["experiment_id"] == home
    assert logger.get("experiments/get-by-name", experiment_name="Default").json()["experiment"]["experiment_id"] == "0"
    again = logger.post("experiments/create", name="maths")
    assert (again.status_code, again.json()["error_code"]) == (409, "RESOURCE_ALREADY_EXISTS")
    assert logger.post("experiments/create", name="Default").status_code == 409
    missing = logger.get("experiments/get-by-name", experiment_name="other")
    assert (missing.status_code, missing.json()["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")
    found = logger.post("experiments/search", max_results=10).json()["experiments"]
    assert {one["name"] for one in found} == {"maths", "Default"}
    assert logger.post("experiments/search", filter="name = 'x'").status_code == 422


def test_a_run_that_is_none_of_mlflows_is_not_its_to_change(logger: Logger) -> None:
    other = external_run(logger.api, logger.headers)
    for answer in (logger.log(other.run_id, 1, loss=1.0), logger.get("runs/get", run_id=other.run_id)):
        assert (answer.status_code, answer.json()["error_code"]) == (404, "RESOURCE_DOES_NOT_EXIST")


def test_every_door_asks_for_a_token_of_its_scope(logger: Logger) -> None:
    doors = [(route.path, next(iter(route.methods))) for route in router.routes[:-1]]  # type: ignore[attr-defined]
    assert len(doors) == 16
    run = external_run(logger.api, logger.headers)
    for path, method in doors:
        reads = method == "GET" or path.endswith("search")
        asked = {"metric_key": "x"} if path.endswith("history") else {}
        body = {"name": "x", "key": "x", "experiment_id": "0"}
        for secret, expected in (
            ({}, 401),
            ({"Authorization": f"Bearer {run.token}"}, 403),
            (logger.headers["read"], 403),
        ):
            answer = logger.api.request(method, path, params=asked, json=body, headers=secret)
            if secret == logger.headers["read"] and reads:
                assert answer.status_code in (200, 404), (path, answer.text)
            else:
                assert answer.status_code == expected, (path, answer.text)
                assert answer.json()["error_code"] == {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED"}[expected]


def test_what_else_mlflow_has_is_said_to_be_not_here(logger: Logger) -> None:
    answer = logger.post("logged-models")
    assert answer.status_code == 404
    assert "POST logged-models: " not in answer.json()["message"]
    assert "runs/log-batch" in answer.json()["message"]
    assert logger.api.get(f"{PREFIX}/model-versions/search").status_code == 401
    assert DOORS == PREFIX


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(name=st.text(max_size=300), key=st.text(min_size=1, max_size=250), value=st.text(max_size=30))
@example(name="\u00ad\u200b", key="\x00", value="\ud800")
def test_any_text_is_taken(logger: Logger, name: str, key: str, value: str) -> None:
    """An error would be raised into a training."""
    said = json.dumps({"experiment_id": "0", "run_name": name})
    doors, headers = logger.api, {**logger.headers["operate"], "Content-Type": "application/json"}
    run = doors.post(f"{DOORS}/runs/create", content=said, headers=headers).json()["run"]["info"]["run_id"]
    for door, body in (
        ("runs/update", {"run_name": name}),
        ("runs/log-parameter", {"key": key, "value": value}),
        ("runs/log-metric", {"key": key, "value": 1.0}),
        ("runs/set-tag", {"key": f"x{key}"[:250], "value": value}),
    ):
        answer = doors.post(f"{DOORS}/{door}", content=json.dumps({"run_id": run, **body}), headers=headers)
        assert answer.status_code == 200, answer.text
    assert logger.run(run)["name"].strip()
