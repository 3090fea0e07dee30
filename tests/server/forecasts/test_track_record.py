"""The track record: every forecast of a finished run against what came, and what new forecasts learn from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from forecurve.science import Conformal
from server.forecasts.track_lines import share_interval, track_view
from server.forecasts.track_record import told
from server.metrics.curve import inherit
from server.recipes.models import RecipeRow
from server.runs.models import Run
from tests.server.forecasts.seeds import add_evaluations, learned, make_forecast, make_run, make_sweep, sigmoid

Headers = dict[str, dict[str, str]]
Sessions = sessionmaker[Session]

COMPUTE = np.linspace(0.0, 100.0, 21)  # the last tenth are two evaluations, at 95 and 100


def finished(session: Session, offset: float = 0.0, last: int = 21, **columns: Any) -> Run:
    """A finished run that ended `offset` above the stored forecasts' own curve."""
    run = make_run(session, **({"status": "succeeded"} | columns))
    add_evaluations(session, run, COMPUTE[:last], sigmoid(COMPUTE[:last]) + offset)
    return run


def test_a_forecast_is_scored_against_the_mean_of_the_last_tenth(sessions: Sessions) -> None:
    with sessions.begin() as session:
        run = finished(session, offset=0.01)
        said = make_forecast(session, run, at_compute=40.0)
        record = told(session).record
    (one,) = record.scored
    assert (one.forecast.id, one.forecast.run, one.forecast.fraction) == (said.id, run.id, 0.4)
    assert one.actual == pytest.approx(float(sigmoid(np.array([95.0, 100.0])).mean()) + 0.01)
    assert one.error == pytest.approx(-0.01, abs=1e-4)
    assert one.covered
    assert one.forecast.estimate.width == pytest.approx(0.04, abs=1e-6)
    assert one.forecast.calibration == "posterior"


def test_what_was_said_of_a_branch_that_was_thrown_away_counts_nowhere(sessions: Sessions) -> None:
    """A run fell, and resumed from before: by step and by compute its second attempt measured anew what it was said of.
    Of what came then alone it is known how it ended."""
    with sessions.begin() as session:
        sweep = make_sweep(session)
        run = make_run(session, status="succeeded", sweep_id=sweep.id)
        fallen = sigmoid(COMPUTE[:12]) - 0.3 * (COMPUTE[:12] > 22.0)
        add_evaluations(session, run, COMPUTE[:12], fallen)
        add_evaluations(session, run, COMPUTE[4:], sigmoid(COMPUTE[4:]), first_step=40, attempt=2)
        said = {}
        for name, at, last in (("before", 15.0, sigmoid(15.0)), ("fallen", 40.0, fallen[8]), ("off", 41.0, 0.6),
                               ("anew", 50.0, sigmoid(50.0)), ("old", 60.0, None)):  # fmt: skip
            said[name] = make_forecast(session, run, at_compute=at)
            if last is not None:
                said[name].summary = said[name].summary | {"last": float(last)}
        session.flush()
        last_values = {said["before"].id: 15.0, said["anew"].id: 50.0, said["old"].id: 60.0}
        assert told(session).last == pytest.approx({key: float(sigmoid(at)) for key, at in last_values.items()})
        live = make_run(session, sweep_id=sweep.id, last_compute=40.0)
        assert [one.fraction for one in learned(session, live)] == [0.5]


def test_a_forecast_of_one_of_several_evaluations_at_the_same_compute_counts(sessions: Sessions) -> None:
    """A unit that counts in coarse steps, say: whichever of them it had seen last, it is of this curve."""
    with sessions.begin() as session:
        sweep = make_sweep(session)
        run = make_run(session, status="succeeded", sweep_id=sweep.id)
        compute, reward = COMPUTE.copy(), sigmoid(COMPUTE)
        compute[9:11] = compute[8]
        add_evaluations(session, run, compute, reward)
        said = [make_forecast(session, run, at_compute=compute[8]) for _ in range(3)]
        for at, forecast in enumerate(said, start=8):
            forecast.summary = forecast.summary | {"last": float(reward[at])}
        session.flush()
        assert told(session).last == {one.id: one.summary["last"] for one in said}
        live = make_run(session, sweep_id=sweep.id, last_compute=40.0)
        assert [one.fraction for one in learned(session, live)] == [0.4]


def test_it_is_scored_by_what_it_said_of_where_the_run_did_end(sessions: Sessions) -> None:
    """Between two ends that were foretold, in the logarithm of compute; the run's budget plays no part in it."""
    ends = {
        "compute": [40, 50, 200, 1000],
        "median": [0.4, 0.6, 0.7, 0.9],
        "lower": [0.3] * 4,
        "upper": [0.8, 0.8, 1, 1],
    }
    scored = []
    with sessions.begin() as session:
        for budget in (60.0, 100.0, None):
            run = finished(session, budget_compute=budget)
            forecast = make_forecast(session, run)
            forecast.summary = forecast.summary | {"ends_ahead": ends}
        session.flush()
        scored = told(session).record.scored
    assert [one.forecast.estimate.median for one in scored] == pytest.approx([0.65] * 3)
    assert [one.forecast.estimate.upper for one in scored] == pytest.approx([0.9] * 3)


def test_a_scaled_forecast_is_scored_as_it_was_said_and_taught_as_the_posterior_had_it(sessions: Sessions) -> None:
    conformal = Conformal(shift=0.01, factor=0.2, runs=12)
    with sessions.begin() as session:
        sweep = make_sweep(session)
        run = finished(session, sweep_id=sweep.id)
        forecast = make_forecast(session, run)
        at_budget = forecast.summary["at_budget"] | {"conformal": conformal.to_dict()}
        forecast.summary = forecast.summary | {"at_budget": at_budget}
        session.flush()
        (one,) = told(session).record.scored
        live = make_run(session, sweep_id=sweep.id, last_compute=40.0)
        (past,) = learned(session, live)
    assert one.forecast.calibration == "conformal (12 past runs)"
    assert one.error == pytest.approx(0.01, abs=1e-4)
    assert one.forecast.estimate.width == pytest.approx(2 * 0.2 * 0.02, abs=1e-6)
    assert not one.covered
    assert past.estimate.median == pytest.approx(past.actual, abs=1e-4)
    assert past.estimate.width == pytest.approx(0.04, abs=1e-6)
    assert past.course is not None
    assert past.course.compute.tolist() == COMPUTE.tolist()


def test_what_cannot_be_scored_is_left_out(sessions: Sessions) -> None:
    with sessions.begin() as session:
        run = finished(session)
        make_forecast(session, run, at_compute=95.0)  # has seen part of the end
        short = finished(session, last=3)
        make_forecast(session, short, at_compute=2.0)
        live = make_run(session)
        make_forecast(session, live)
        beyond = finished(session)
        less = make_forecast(session, beyond)
        ends = less.summary["ends_ahead"]
        less.summary = less.summary | {"ends_ahead": {name: values[:40] for name, values in ends.items()}}
        session.flush()
        record = told(session).record
    assert record.scored == ()
    assert record.waiting == 1


def test_a_run_that_was_stopped_early_is_scored_where_it_ended(sessions: Sessions) -> None:
    with sessions.begin() as session:
        run = finished(session, status="stopped", last=11)  # to 50 of 100; the last tenth is one evaluation
        make_forecast(session, run, at_compute=20.0)
        (one,) = told(session).record.scored
    assert one.forecast.fraction == 0.4
    assert one.actual == pytest.approx(float(sigmoid(50.0)))


def test_compute_beyond_what_64_bits_count_is_scored(sessions: Sessions) -> None:
    large = 10**36  # 1e38 comes back from JSON in the store as an integer of that size
    with sessions.begin() as session:
        run = make_run(session, status="succeeded", budget_compute=100.0 * large, last_compute=100.0 * large)
        add_evaluations(session, run, COMPUTE * large, sigmoid(COMPUTE))
        forecast = make_forecast(session, run, at_compute=40.0 * large)
        ends = forecast.summary["ends_ahead"] | {
            "compute": [round(one) * large for one in np.geomspace(1.0, 125.0, 80)]
        }
        forecast.summary = forecast.summary | {"ends_ahead": ends}
        session.flush()
        session.expire(forecast)
        (one,) = told(session).record.scored
    assert one.forecast.fraction == pytest.approx(0.4)


def test_the_api_answers_with_table_list_and_waiting(api: TestClient, headers: Headers, sessions: Sessions) -> None:
    with sessions.begin() as session:
        sweep = make_sweep(session)
        for offset in (0.0, 0.01, 0.03):
            run = finished(session, offset, sweep_id=sweep.id)
            for at in (10.0, 15.0, 50.0):
                make_forecast(session, run, at_compute=at)
        make_forecast(session, finished(session), at_compute=50.0)  # of no sweep
        make_forecast(session, make_run(session, sweep_id=sweep.id))
    answer = api.get("/v1/track-record", headers=headers["read"], params={"sweep_id": sweep.id, "limit": 2})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    early, middle = body["table"]
    assert (early["above"], early["upto"], early["forecasts"], early["runs"]) == (0.0, 0.175, 6, 3)
    assert early["mae"] == pytest.approx(0.04 / 3, abs=1e-4)
    assert early["coverage"] == pytest.approx(2 / 3)
    assert (middle["forecasts"], middle["withheld"]) == (3, 0)
    assert (body["scored"], body["waiting"], len(body["forecasts"])) == (9, 1, 2)
    assert body["forecasts"][0]["fraction"] == 0.5  # the newest first
    assert body["forecasts"][0]["run_name"] == "no-cispo"
    assert body["forecasts"][0]["last_value"] == pytest.approx(float(sigmoid(50.0)) + 0.03)
    every = api.get("/v1/track-record", headers=headers["read"]).json()
    assert every["scored"] == 10
    assert api.get("/v1/track-record", headers=headers["read"], params={"runs": 1}).json()["scored"] == 1


def test_a_line_says_what_few_runs_leave_open_and_how_far_off_the_last_values_were(sessions: Sessions) -> None:
    with sessions.begin() as session:
        for offset, times in ((0.0, (25.0, 30.0)), (0.03, (25.0,))):
            run = finished(session, offset)
            for at in times:
                make_forecast(session, run, at_compute=at)
        view = track_view(told(session), limit=0)
    (line,) = view.table
    end = float(sigmoid(np.array([95.0, 100.0])).mean())
    missed = [end - float(sigmoid(at)) for at in (25.0, 30.0)]
    assert line.last_value == pytest.approx((sum(missed) / 2 + missed[0]) / 2)  # each run counts as much
    assert (line.held, line.forecasts, line.coverage) == (2, 3, 0.5)
    assert (line.coverage_lower, line.coverage_upper) == pytest.approx(share_interval(0.5, 2))
    assert view.forecasts == []
    made = "Of 3 forecasts made at about a quarter of what their runs spent the 90 % interval held 2"
    assert view.sentence == f"{made}; they missed by 0.000 at the median."


@pytest.mark.parametrize(("share", "runs"), [(0.0, 1), (1.0, 1), (0.9, 10), (0.5, 300)])
def test_what_few_runs_leave_open_of_a_share_holds_it_and_is_a_share(share: float, runs: int) -> None:
    lower, upper = share_interval(share, runs)
    assert 0.0 <= lower <= share <= upper <= 1.0
    assert upper - lower > 0.05
    wider = share_interval(share, max(1, runs // 3))
    assert wider[1] - wider[0] >= upper - lower


def test_one_forecast_is_told_as_one(sessions: Sessions) -> None:
    with sessions.begin() as session:
        make_forecast(session, finished(session, offset=0.1), at_compute=50.0)
        said = track_view(told(session), limit=1).sentence
    made = "One forecast was made at about a half of what its run spent"
    assert said == f"{made}: the 90 % interval did not hold what came, it missed by 0.100."


def test_an_empty_store_has_an_empty_record(api: TestClient, headers: Headers) -> None:
    body = api.get("/v1/track-record", headers=headers["read"]).json()
    said = "No forecast can be scored yet."
    assert body == {"sentence": said, "table": [], "scored": 0, "waiting": 0, "forecasts": []}


def test_a_forecast_learns_from_comparable_runs_only(sessions: Sessions) -> None:
    with sessions.begin() as session:
        sweep = make_sweep(session)
        comparable = finished(session, 0.01, sweep_id=sweep.id)
        for other in (
            finished(session, sweep_id=sweep.id, compute_unit="steps"),
            finished(session, sweep_id=sweep.id, status="failed"),
            finished(session, sweep_id=sweep.id, last=12, status="stopped"),  # cut short
            finished(session),  # another sweep, no recipe
            comparable,
        ):
            make_forecast(session, other, at_compute=20.0)
            make_forecast(session, other, at_compute=25.0)
        live = make_run(session, sweep_id=sweep.id, last_compute=24.0)
        past = learned(session, live)
    assert [(one.run, one.fraction) for one in past] == [(comparable.id, 0.25)]  # the nearest of the two
    assert past[0].actual - past[0].estimate.median == pytest.approx(0.01, abs=1e-4)


def test_runs_of_the_same_task_are_comparable_across_sweeps(sessions: Sessions) -> None:
    with sessions.begin() as session:
        recipes = [
            RecipeRow(name=f"r{at}", digest=f"sha256:{at}", body={"task": {"name": task}})
            for at, task in enumerate(("maze", "maze", "maths"))
        ]
        session.add_all(recipes)
        session.flush()
        same, other = (finished(session, recipe_id=recipe.id) for recipe in recipes[1:])
        for run in (same, other):
            make_forecast(session, run, at_compute=25.0)
        live = make_run(session, recipe_id=recipes[0].id, last_compute=25.0)
        past = learned(session, live)
    assert [one.run for one in past] == [same.id]


def test_what_is_learnt_goes_by_the_budget_also_where_a_run_went_beyond_it(sessions: Sessions) -> None:
    with sessions.begin() as session:
        sweep = make_sweep(session)
        beyond = finished(session, sweep_id=sweep.id, budget_compute=80.0)  # and ended at 100
        make_forecast(session, beyond, at_compute=20.0)
        (past,) = learned(session, make_run(session, sweep_id=sweep.id, last_compute=25.0))
        (scored,) = told(session).record.scored
    assert past.fraction == 0.25
    assert scored.forecast.fraction == 0.2


def family(session: Session) -> tuple[Run, list[Run]]:
    """A finished stranger; and of one task a parent, two forks that inherited its curve, and a fork of one of them."""
    recipe = RecipeRow(name="r", digest="sha256:0", body={"task": {"name": "maze"}})
    session.add(recipe)
    session.flush()

    def inheriting(parent: Run) -> Run:
        lineage = {"parent_run_id": parent.id, "parent_checkpoint_id": "ckp_0", "parent_step": 50}
        fork = make_run(session, recipe_id=recipe.id, status="succeeded", **lineage)
        inherit(session, fork.id, parent_id=parent.id, attempt=1, step=50)
        add_evaluations(session, fork, COMPUTE[6:], sigmoid(COMPUTE[6:]), first_step=60)
        return fork

    stranger = finished(session, 0.01, recipe_id=recipe.id)
    parent = finished(session, recipe_id=recipe.id)
    one, two = inheriting(parent), inheriting(parent)
    related = [parent, one, two, inheriting(one)]
    for run in (stranger, *related):
        make_forecast(session, run, at_compute=50.0)
    return stranger, related


@pytest.mark.parametrize("member", range(4))
def test_a_run_does_not_learn_from_runs_whose_curve_is_partly_its_own(sessions: Sessions, member: int) -> None:
    with sessions.begin() as session:
        stranger, related = family(session)
        past = learned(session, related[member])
    assert [one.run for one in past] == [stranger.id]


def test_a_fork_that_took_another_course_learns_from_its_parent(sessions: Sessions) -> None:
    with sessions.begin() as session:
        _, (parent, *_) = family(session)
        lineage = {"parent_run_id": parent.id, "parent_checkpoint_id": "ckp_0", "parent_step": 50}
        fork = make_run(session, recipe_id=parent.recipe_id, **lineage)
        add_evaluations(session, fork, COMPUTE[6:11], sigmoid(COMPUTE[6:11]), first_step=60)
        past = learned(session, fork)
    assert parent.id in [one.run for one in past]


def test_a_run_without_a_budget_or_evaluations_has_nothing_to_learn_from(sessions: Sessions) -> None:
    with sessions.begin() as session:
        assert learned(session, make_run(session, budget_compute=None, last_compute=3.0)) == []
        assert learned(session, make_run(session, last_compute=None)) == []
