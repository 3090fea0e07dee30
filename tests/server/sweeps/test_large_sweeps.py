"""Sweeps of more than a hundred runs: a few curves one by one, the others summed up, and none left unsaid."""

from __future__ import annotations

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, delete
from sqlalchemy.orm import Session, sessionmaker

from server.forecasts.schemas import SweepCurves
from server.metrics.models import Evaluation
from server.runs.models import Run
from tests.server.counting import counted
from tests.server.forecasts.seeds import add_evaluations, make_run, make_sweep, sigmoid
from tests.server.reporting import Headers, faults
from tests.server.sweeps.large import COMPUTE, SEEDS, Large, ceiling, large_sweep

Sessions = sessionmaker[Session]


@pytest.fixture
def large(sessions: Sessions) -> Large:
    with sessions.begin() as session:
        return large_sweep(session)


def curves(api: TestClient, headers: Headers, path: str) -> SweepCurves:
    answer = api.get(f"/v1/sweeps/{path}", headers=headers["read"])
    assert answer.status_code == 200, answer.text
    return SweepCurves.model_validate(answer.json())


def test_the_control_the_best_the_middle_and_the_last_arm_stand_for_a_large_sweep(
    api: TestClient, headers: Headers, large: Large
) -> None:
    view = curves(api, headers, f"{large.id}/curves")
    best = [f"arm {number}" for number in range(29, 11, -2)]
    assert [one.run.arm for one in view.runs] == ["control", *best, "arm 1", "arm 28"]
    assert [one.run.seed for one in view.runs] == [1] * 12  # of four seeds that rise, the second
    few = "the control, the 9 arms forecast highest, the one in the middle and the lowest"
    assert view.said == f"{few}, each by its middle run"
    assert view.others
    assert view.others.runs == len(large.runs) - 12


def test_what_is_not_drawn_is_summed_up_along_compute(api: TestClient, headers: Headers, large: Large) -> None:
    view = curves(api, headers, f"{large.id}/curves")
    shown = {one.run.id for one in view.runs}
    numbers = {"control": 0} | {f"arm {number}": number for number in range(1, 30)}
    left = [
        sigmoid(np.array(COMPUTE), A=ceiling(numbers[arm]) + 0.001 * seed)
        for arm, ids in large.arms.items()
        for seed, id_ in enumerate(ids)
        if id_ not in shown
    ]
    others = view.others
    assert others
    assert others.compute == pytest.approx(COMPUTE)
    assert set(others.evaluated) == {len(left)}
    for column, share in (("lower90", 0.05), ("lower50", 0.25), ("median", 0.5), ("upper50", 0.75), ("upper90", 0.95)):
        assert getattr(others, column) == pytest.approx(np.quantile(left, share, axis=0)), column


def test_any_runs_of_a_sweep_are_drawn_when_they_are_asked_for(
    api: TestClient, headers: Headers, sessions: Sessions, large: Large
) -> None:
    asked = [large.arms["arm 7"][3], large.arms["control"][0]]
    view = curves(api, headers, f"{large.id}/curves?run_id={asked[0]}&run_id={asked[1]}")
    assert [one.run.id for one in view.runs] == asked
    assert view.said is None
    assert view.others
    assert view.others.runs == len(large.runs) - 2
    with sessions.begin() as session:
        stray = make_run(session, "of no sweep").id
    refused = api.get(f"/v1/sweeps/{large.id}/curves?run_id={stray}", headers=headers["read"])
    assert refused.status_code == 422
    assert "is no run of sweep" in faults(refused)["run_id"]
    many = "&".join(f"run_id={id_}" for id_ in large.runs[:21])
    assert "at most 20" in faults(api.get(f"/v1/sweeps/{large.id}/curves?{many}", headers=headers["read"]))["run_id"]


def test_a_sweep_of_a_hundred_runs_is_given_whole(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    with sessions.begin() as session:
        small = large_sweep(session, arms=25)
    view = curves(api, headers, f"{small.id}/curves")
    assert [one.run.id for one in view.runs] == small.runs
    assert view.others is None
    assert view.said is None


def test_before_anything_is_evaluated_the_first_arms_are_drawn(
    api: TestClient, headers: Headers, sessions: Sessions, large: Large
) -> None:
    with sessions.begin() as session:
        session.execute(delete(Evaluation))
        for id_ in large.runs:
            run = session.get_one(Run, id_)
            run.last_reward = run.forecast_id = None
    view = curves(api, headers, f"{large.id}/curves")
    assert view.runs[0].run.is_control
    assert len(view.runs) == 12
    assert view.others
    assert view.others.compute == []


def test_what_a_resumed_attempt_superseded_counts_nowhere(
    api: TestClient, headers: Headers, sessions: Sessions
) -> None:
    with sessions.begin() as session:
        sweep = make_sweep(session)
        shown = make_run(session, "shown", sweep_id=sweep.id)
        resumed = make_run(session, "resumed", sweep_id=sweep.id, attempt=2)
        add_evaluations(session, resumed, [1.0, 10.0, 100.0], [0.1, 0.2, 0.9])
        add_evaluations(session, resumed, [10.0], [0.3], attempt=2, first_step=10)
    view = curves(api, headers, f"{sweep.id}/curves?run_id={shown.id}")
    assert view.others
    assert (view.others.compute, view.others.median) == ([1.0, 10.0], [0.1, 0.3])


@pytest.mark.parametrize("path", ["", pytest.param("/curves", marks=pytest.mark.slow)])
def test_twice_as_many_runs_cost_as_many_statements(
    path: str, api: TestClient, headers: Headers, sessions: Sessions, engine: Engine, large: Large
) -> None:
    with sessions.begin() as session:
        larger = large_sweep(session, arms=60)
    for sweep in (large, larger):  # connection and token are fresh no more, and what forecasts say is remembered
        api.get(f"/v1/sweeps/{sweep.id}/curves", headers=headers["read"])
    sent = []
    for sweep in (large, larger):
        with counted(engine) as statements:
            assert api.get(f"/v1/sweeps/{sweep.id}{path}", headers=headers["read"]).status_code == 200
        sent.append(len(statements))
    assert sent[0] == sent[1]


def test_stopping_thousands_of_runs_is_a_few_statements(
    api: TestClient, headers: Headers, engine: Engine, large: Large
) -> None:
    with counted(engine) as statements:
        stopped = api.post(f"/v1/sweeps/{large.id}:stop", headers=headers["operate"]).json()
    assert {run["desired_state"] for run in stopped["runs"]} == {"stop"}
    assert len(stopped["runs"]) == 30 * SEEDS
    assert len(statements) < 30
