"""Numbers that MLflow's client logs become a curve by the tags of run and experiment, whenever these are said."""

from __future__ import annotations

import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.events.models import Event
from server.runs.states import Status
from tests.conftest import Clock
from tests.server.mlflow.logging import Logger
from tests.server.reporting import move

BEGAN = 1_790_000_000_000
HOUR = 3_600_000


def test_the_only_rate_on_held_out_prompts_is_the_curve_in_steps(logger: Logger) -> None:
    run = logger.begin("grpo", logger.experiment("gsm8k"))
    for step in (0, 20, 40):
        assert logger.log(run, step, loss=1.0, val__acc=step / 100, accuracy=0.9).json() == {}
    assert logger.curve(run) == [(0, 0.0, 0.0), (20, 20.0, 0.2), (40, 40.0, 0.4)]
    shown = logger.run(run)
    assert (shown["name"], shown["status"], shown["compute_unit"]) == ("gsm8k/grpo", "running", "steps")
    assert shown["budget_compute"] is None


def test_tags_of_a_run_go_before_those_of_its_experiment(logger: Logger) -> None:
    home = logger.experiment(
        metric="val/acc", per_step=0.5, unit="GPU-hours", budget=400, task="gsm8k", prompts=1319, samples=8
    )
    run = logger.begin("grpo", home, budget=200, arm="no-kl", seed=3)
    logger.log(run, 10, val__acc=0.25, val__score=0.5)
    shown = logger.run(run)
    assert (shown["compute_unit"], shown["budget_compute"], shown["task"]) == ("GPU-hours", 200.0, "gsm8k")
    assert (shown["arm"], shown["seed"]) == ("no-kl", 3)
    items = logger.api.get(f"/v1/runs/{run}/evaluations", headers=logger.headers["read"]).json()["items"]
    assert [(one["compute"], one["prompts"], one["samples"]) for one in items] == [(5.0, 1319, 8)]


def test_rewards_of_another_range_are_made_shares(logger: Logger) -> None:
    run = logger.begin(range="-1,1", metric="eval/reward")
    logger.log(run, 1, eval__reward=0.5)
    assert logger.curve(run) == [(1, 1.0, 0.75)]


def test_compute_that_was_logged_is_taken_from_its_step_or_the_last_before(logger: Logger) -> None:
    run = logger.begin(compute="perf/gpu_hours", metric="val/acc")
    logger.log(run, 0, val__acc=0.1)
    assert logger.curve(run) == []
    assert "its compute is perf/gpu_hours, and for no val/acc that is logged yet" in logger.run(run)["sentence"]
    logger.log(run, 0, perf__gpu_hours=0.0)
    logger.log(run, 5, perf__gpu_hours=2.5, val__acc=0.2)
    logger.log(run, 8, perf__gpu_hours=4.0)
    logger.log(run, 9, val__acc=0.3)
    assert logger.curve(run) == [(0, 0.0, 0.1), (5, 2.5, 0.2)]  # that of step 9 may still come
    logger.log(run, 9, perf__gpu_hours=4.5)
    logger.log(run, 12, val__acc=0.4)
    assert logger.curve(run)[2:] == [(9, 4.5, 0.3)]
    logger.post("runs/update", run_id=run, status="FINISHED")
    assert logger.curve(run)[3:] == [(12, 4.5, 0.4)]
    assert logger.run(run)["compute_unit"] == "GPU-hours"


def test_of_a_resume_compute_goes_on_from_where_it_was(logger: Logger) -> None:
    """Also at the evaluation that a trainer makes before it trains on."""
    run = logger.begin(compute="hours", metric="acc", unit="GPU-hours")
    for step in (0, 10, 20):
        logger.log(run, step, hours=step, acc=step / 100)
    logger.log(run, 25, acc=0.30)  # waits for its compute, and is thrown away
    logger.post("runs/update", run_id=run, status="RUNNING")
    logger.log(run, 25, acc=0.31)
    logger.log(run, 26, hours=26.0)
    logger.log(run, 30, hours=30.0, acc=0.4)
    assert logger.curve(run) == [(0, 0.0, 0.0), (10, 10.0, 0.1), (25, 20.0, 0.31), (30, 30.0, 0.4)]


def test_before_training_nothing_is_spent_and_a_later_rate_without_compute_is_told(
    logger: Logger, sessions: sessionmaker[Session]
) -> None:
    run = logger.begin(compute="hours", metric="acc", unit="GPU-hours")
    logger.log(run, 0, acc=0.1)
    logger.log(run, 1, acc=0.15)
    for step in (2, 3):
        logger.log(run, step, hours=step, acc=0.2)
    assert logger.curve(run) == [(0, 0.0, 0.1), (2, 2.0, 0.2), (3, 3.0, 0.2)]
    with sessions() as session:
        told = session.scalars(select(Event.reason).where(Event.kind == "numbers.left_out")).all()
    assert told == ["Left out: numbers that are pass rates before any compute was logged."]


def test_the_compute_is_not_guessed_to_be_the_curve(logger: Logger) -> None:
    run = logger.begin(compute="val/acc", unit="steps")
    for step in range(4):
        assert logger.log(run, step, val__acc=step / 4).status_code == 200
    assert logger.curve(run) == []
    for step in range(4, 7):
        assert logger.log(run, step, val__acc=step / 8, val__score=0.5).status_code == 200
    assert [reward for *_, reward in logger.curve(run)] == [0.5, 0.5, 0.5]


@pytest.mark.parametrize(
    ("tags", "hours"),
    [({"per_step": 100}, 1e308), ({"per_step": 1e-4}, 1e-322), ({"per_step": 1e40}, 1.0), ({}, float("1e300"))],
)
def test_compute_beyond_what_a_number_can_hold_is_none(logger: Logger, tags: dict[str, float], hours: float) -> None:
    run = logger.begin(compute="hours", metric="acc", unit="GPU-hours", **tags)
    for step in (1, 2**31 - 1):
        assert logger.log(run, step, hours=hours, acc=0.5, loss=1.0).status_code == 200
    assert logger.log(run, 5, hours=1.0, loss=1.0).status_code == 200


def test_numbers_have_the_compute_of_their_step_once_it_is_known_how_it_is_counted(logger: Logger) -> None:
    def spent(run: str) -> list[float | None]:
        asked = {"metric": "loss"}
        found = logger.api.get(f"/v1/runs/{run}/metrics", params=asked, headers=logger.headers["read"]).json()
        return [point["compute"] for point in found["points"]]

    home = logger.experiment()
    priced, counted = logger.begin("priced", home), logger.begin("counted", home, compute="hours", unit="GPU-hours")
    for step in (10, 20):
        for run in (priced, counted):
            logger.log(run, step, loss=1.0, hours=step / 2, acc=step / 100)
    assert spent(priced) == [None, None]
    for key, value in (("metric", "acc"), ("unit", "GPU-hours"), ("per_step", "0.5")):
        body = {"experiment_id": home, "key": f"forecurve.{key}", "value": value}
        logger.post("experiments/set-experiment-tag", **body)
    for run in (priced, counted):
        logger.log(run, 30, loss=1.0)
        logger.log(run, 30, hours=15.0)
    assert spent(priced) == [10.0, 20.0, 30.0]  # in steps, which `unit` alone did not say yet
    assert spent(counted) == [5.0, 10.0, 15.0]


def test_time_since_the_run_began_is_compute_by_its_price(logger: Logger) -> None:
    run = logger.begin(start=BEGAN, compute="_runtime", per_step=8 / 3600, unit="GPU-hours", metric="val/acc")
    logger.log(run, 3, BEGAN + 2 * HOUR, val__acc=0.2)
    assert logger.curve(run) == [(3, pytest.approx(16.0), 0.2)]


def test_which_number_is_the_curve_may_be_said_when_all_is_logged(logger: Logger) -> None:
    home = logger.experiment()
    run = logger.begin("verl", home)
    for step in (0, 10):
        logger.log(run, step, val__acc=0.1 + step / 100, val__reward=0.5)
    assert logger.curve(run) == []
    said = logger.run(run)["sentence"]
    assert said == (
        "No evaluation yet (several numbers could be its pass rate, and tag `forecurve.metric` names none; there are "
        "val/acc, val/reward)."
    )
    logger.post("experiments/set-experiment-tag", experiment_id=home, key="forecurve.metric", value="val/acc")
    assert logger.curve(run) == [(0, 0.0, 0.1), (10, 10.0, pytest.approx(0.2))]


def test_tags_are_set_one_by_one_and_hold_together_when_all_are_there(logger: Logger) -> None:
    home = logger.experiment()
    run = logger.begin("verl", home, metric="val/acc")
    logger.log(run, 10, val__acc=0.5)  # in steps, as nothing else is said
    later = logger.begin("later", home, metric="val/acc")
    for key, value in (("per_step", "0.5"), ("unit", "GPU-hours")):
        body = {"experiment_id": home, "key": f"forecurve.{key}", "value": value}
        assert logger.post("experiments/set-experiment-tag", **body).status_code == 200
        logger.log(later, 10, val__acc=0.5)
        assert logger.curve(later) == ([(10, 5.0, 0.5)] if key == "unit" else [])
        if key == "per_step":
            assert (
                "`forecurve.unit` must say in what compute is counted"
                in logger.run(logger.begin("now", home))["sentence"]
            )
    assert logger.curve(run) == [(10, 10.0, 0.5)]


def test_a_run_that_is_over_gets_its_curve_by_a_tag_too(
    logger: Logger, sessions: sessionmaker[Session], clock: Clock
) -> None:
    run = logger.begin()
    logger.log(run, 4, solved=0.5)
    assert "no number looks like a pass rate" in logger.run(run)["sentence"]
    assert logger.post("runs/update", run_id=run, status="FINISHED").status_code == 200
    move(sessions, run, Status.SUCCEEDED, clock.now)
    assert logger.post("runs/set-tag", run_id=run, key="forecurve.metric", value="solved").json() == {}
    assert logger.curve(run) == [(4, 4.0, 0.5)]


def test_two_names_of_the_same_numbers_are_one(logger: Logger) -> None:
    run = logger.begin()
    for step, reward in ((0, 0.0), (1, 0.0), (2, 0.0)):
        logger.log(run, step, eval_reward=reward, eval_rewards__correct__mean=reward)
        assert logger.curve(run) == []  # all begin at 0
    logger.log(run, 3, eval_reward=0.25, eval_rewards__correct__mean=0.25)
    assert logger.curve(run) == [(0, 0.0, 0.0), (1, 1.0, 0.0), (2, 2.0, 0.0), (3, 3.0, 0.25)]
    other = logger.begin("other")
    for step in range(4):
        logger.log(other, step, eval_reward=step / 4, eval_rewards__correct__mean=step / 8)
    assert logger.curve(other) == []


def test_a_number_is_guessed_when_it_is_logged_again(logger: Logger) -> None:
    """Who logs one number a request has then logged all of a step."""
    run = logger.begin()
    logger.log(run, 1, val__acc=0.5)
    assert "val/acc is taken as its pass rate when it is logged again" in logger.run(run)["sentence"]
    logger.log(run, 1, val__score=0.5)
    logger.log(run, 2, val__acc=0.6)
    assert logger.curve(run) == []
    assert "several numbers could be its pass rate" in logger.run(run)["sentence"]


def test_a_rate_that_names_no_held_out_prompts_is_not_guessed(logger: Logger) -> None:
    run = logger.begin()
    for step in range(3):
        logger.log(run, step, accuracy=0.5)
    assert "no number looks like a pass rate on held-out prompts" in logger.run(run)["sentence"]


def test_what_evaluations_were_made_by_does_not_change(logger: Logger) -> None:
    run = logger.begin(metric="val/acc")
    logger.log(run, 2, val__acc=0.25)
    same = logger.post("runs/set-tag", run_id=run, key="forecurve.metric", value="val/acc")
    assert same.status_code == 200
    other = logger.post("runs/set-tag", run_id=run, key="forecurve.unit", value="GPU-hours")
    assert other.status_code == 409
    assert other.json()["error_code"] == "RESOURCE_CONFLICT"
    assert "forecurve.unit: run" in other.json()["message"]
    assert logger.run(run)["compute_unit"] == "steps"


@pytest.mark.parametrize(
    ("tags", "field", "said"),
    [
        ({"metrik": "x"}, "forecurve.metrik", "no such tag; there are forecurve.metric, "),
        ({"budget": "many"}, "forecurve.budget", "must be a number"),
        ({"per_step": 0}, "forecurve.per_step", "must be above 0"),
        ({"per_step": 2}, "tags", "`forecurve.unit` must say in what compute is counted"),
        ({"unit": "dollars"}, "forecurve.unit", "GPU-hours"),
        ({"range": "1"}, "forecurve.range", ""),
        ({"range": "0,inf"}, "forecurve.range", "must be the least and the greatest reward"),
        ({"range": "1,0"}, "forecurve.range", "must be the least and the greatest reward"),
        ({"metric": "x", "compute": "x"}, "tags", "another number than `forecurve.metric`"),
        ({"compute": "_timestamp"}, "forecurve.compute", "it is a date and no compute"),
        ({"seed": -1}, "forecurve.seed", "must be at least 0"),
    ],
)
def test_a_tag_that_does_not_hold_is_refused_by_name(logger: Logger, tags: dict, field: str, said: str) -> None:
    body = {"experiment_id": "0", "tags": [{"key": f"forecurve.{name}", "value": str(tags[name])} for name in tags]}
    answer = logger.post("runs/create", **body)
    assert answer.status_code == 422, answer.text
    problem = answer.json()
    assert problem["error_code"] == "INVALID_PARAMETER_VALUE"
    assert problem["errors"][0]["field"] == field
    assert said in problem["message"]
    assert logger.api.get("/v1/runs", headers=logger.headers["read"]).json()["items"] == []


def test_tags_of_an_experiment_that_contradict_a_runs_own_stop_no_training(logger: Logger) -> None:
    home = logger.experiment()
    run = logger.begin("grpo", home, metric="acc")
    for key, value in (("unit", "steps"), ("compute", "acc")):
        body = {"experiment_id": home, "key": f"forecurve.{key}", "value": value}
        assert logger.post("experiments/set-experiment-tag", **body).status_code == 200
    assert logger.log(run, 1, acc=0.5).status_code == 200
    assert logger.curve(run) == []
    assert "Its tags do not say what its curve is: tags: `forecurve.compute` must" in logger.run(run)["sentence"]


def test_numbers_that_cannot_be_kept_are_left_out_and_told(logger: Logger, sessions: sessionmaker[Session]) -> None:
    run = logger.begin(metric="val/acc")
    numbers = [
        {"key": "x" * 201, "value": 1.0, "step": 1},
        {"key": "system/gpu_0_power", "value": 300.0, "step": 9},
        {"key": "val/acc", "value": 0.5, "step": -1},
        {"key": "val/acc", "value": "NaN", "step": 1},
        {"key": "val/acc", "value": 0.5, "step": 2},
        {"key": "val/acc", "value": 0.6, "step": 2},
        {"key": "val/acc", "value": 60.0, "step": 3},
    ]
    for _ in range(2):
        assert logger.post("runs/log-batch", run_id=run, metrics=numbers).status_code == 200
    assert logger.curve(run) == [(2, 2.0, 0.6)]
    with sessions() as session:
        events = session.scalars(select(Event.reason).where(Event.kind == "numbers.left_out").order_by(Event.id)).all()
    assert sorted(reason.removeprefix("Left out: numbers ") for reason in events) == [
        "of the machine (`system/...`), which have steps of their own.",
        "that are no pass rate within `forecurve.range`.",
        "whose name is longer than 200 characters or has control characters.",
        "whose step is below 0 or beyond 2,147,483,647.",
    ]


def test_compute_that_goes_backwards_gives_no_evaluation(logger: Logger) -> None:
    run = logger.begin(compute="hours", metric="acc", unit="GPU-hours")
    for step, hours in ((1, 5.0), (2, 4.0), (3, 6.0)):
        logger.log(run, step, hours=hours, acc=0.5)
    assert [step for step, _, _ in logger.curve(run)] == [1, 3]


_NUMBERS = st.lists(
    st.tuples(
        st.sampled_from(["val/acc", "spent", "loss"]),
        st.integers(-2, 6),
        st.one_of(st.floats(-0.5, 1.5), st.just(math.nan), st.integers(0, 9)),
    ),
    max_size=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20)
@given(batches=st.lists(_NUMBERS, max_size=4))
def test_however_numbers_come_none_is_refused_and_the_curve_holds(
    logger: Logger, batches: list[list[tuple[str, int, float]]]
) -> None:
    """And once all of them are there, what is sent again changes nothing."""
    run = logger.begin(metric="val/acc", compute="spent", unit="steps")
    curves = []
    for numbers in batches * 3:
        metrics = [
            {"key": name, "step": step, "value": "NaN" if math.isnan(value) else value} for name, step, value in numbers
        ]
        assert logger.post("runs/log-batch", run_id=run, metrics=metrics).status_code == 200
        curves.append(logger.curve(run))
    assert curves[2 * len(batches) - 1 :] == curves[2 * len(batches) - 1 :][:1] * (len(batches) + 1 if batches else 0)
    curve = logger.curve(run)
    steps, spent = [one[0] for one in curve], [one[1] for one in curve]
    assert steps == sorted(set(steps))
    assert spent == sorted(spent)
    assert all(0 <= reward <= 1 for _, _, reward in curve)
