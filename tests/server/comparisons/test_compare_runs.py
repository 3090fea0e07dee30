"""Any runs held against one of them: who belongs, who is a seed of whom, what is said, what it may cost."""

from __future__ import annotations

import threading
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from forecurve.science import Curve, compare
from server.comparisons import service
from server.comparisons.find import Found
from server.comparisons.kept import Kept
from server.database import new_id
from server.metrics.curve import inherit
from server.problems import Unavailable
from server.recipes.models import RecipeRow
from server.runs.models import Run
from server.sweeps.models import Sweep
from tests.server.forecasts.seeds import START, add_evaluations, make_run, make_sweep, sigmoid
from tests.server.reporting import faults

Headers = dict[str, dict[str, str]]
Sessions = sessionmaker[Session]
COMPUTE = np.linspace(0.0, 100.0, 51)


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_KEPT", Kept())


def noisy(ceiling: float, seed: int) -> Any:
    noise = np.random.default_rng([seed, int(100 * ceiling)])
    return sigmoid(COMPUTE, A=ceiling) + noise.normal(0.0, 6e-5**0.5, len(COMPUTE))


def recipe(session: Session, **body: Any) -> str:
    row = RecipeRow(name="r", digest=new_id("sha256"), body={"name": "r", "task": {"kind": "maze"}} | body)
    session.add(row)
    session.flush()
    return row.id


def ran(session: Session, name: str, ceiling: float, seed: int = 0, *, points: int = 51, **columns: Any) -> Run:
    """A run that was evaluated; of no sweep and without a recipe unless `columns` say otherwise."""
    run = make_run(session, name, **({"seed": seed, "arm": None} | columns))
    add_evaluations(session, run, COMPUTE[:points], noisy(ceiling, seed)[:points])
    return run


def asked(api: TestClient, headers: Headers, runs: list[Run], **more: str) -> Any:
    return api.get("/v1/runs:compare", params={"run_id": [run.id for run in runs], **more}, headers=headers["read"])


def answered(api: TestClient, headers: Headers, runs: list[Run], **more: str) -> dict[str, Any]:
    answer = asked(api, headers, runs, **more)
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


def test_runs_of_different_sweeps_are_compared_as_compare_would(
    sessions: Sessions, api: TestClient, headers: Headers
) -> None:
    with sessions.begin() as session:
        runs = []
        for name, ceiling in (("base", 0.78), ("lower", 0.55)):
            sweep, body = make_sweep(session), {"loss": name}
            runs += [
                ran(session, name, ceiling, seed, sweep_id=sweep.id, recipe_id=recipe(session, seed=seed, **body))
                for seed in (0, 1)
            ]
    body = answered(api, headers, runs, control=runs[1].id)
    variance = np.full(len(COMPUTE), 6e-5)
    curves = {
        name: [
            Curve(COMPUTE, noisy(ceiling, seed), name=name, variance=variance, prompts=256, samples=4)
            for seed in (0, 1)
        ]
        for name, ceiling in (("base", 0.78), ("lower", 0.55))
    }
    expected = compare(curves, "base")
    (arm,) = body["comparison"]["arms"]
    assert (arm["arm"], arm["verdict"], arm["direction"], arm["seeds"]) == ("lower", "ceiling", "down", 2)
    assert arm["difference"]["median"] == pytest.approx(expected.arms[0].difference.median, abs=1e-3)  # type: ignore[union-attr]
    assert body["comparison"]["control_seeds"] == 2
    assert body["control"] == runs[1].id
    assert [run["id"] for run in body["runs"]] == [runs[1].id, runs[0].id, runs[2].id, runs[3].id]
    assert body["arms"] == {run.id: run.name for run in runs}
    assert body["sentence"].startswith("4 runs: 4 running. Best at 100 GPU-hours: base (")
    assert body["sentence"].endswith(f"Against base: ceiling down: lower ({expected.arms[0].difference.median:+.2f}).")  # type: ignore[union-attr]
    assert body["differences"] == [
        {"field": "seed", "values": {run.id: run.seed for run in runs}},
        {"field": "loss", "values": {run.id: run.name for run in runs}},
    ]


def test_without_a_control_the_first_that_is_one_is_taken(
    sessions: Sessions, api: TestClient, headers: Headers
) -> None:
    with sessions.begin() as session:
        runs = [ran(session, "a", 0.7), ran(session, "b", 0.7, 1, is_control=True), ran(session, "c", 0.6, 2)]
    assert answered(api, headers, runs)["control"] == runs[1].id
    assert answered(api, headers, [runs[0], runs[2]])["control"] == runs[0].id
    refused = asked(api, headers, runs[:2], control=runs[2].id)
    assert refused.status_code == 422
    assert "is none of the runs" in faults(refused)["control"]


def test_runs_without_a_recipe_are_arms_of_their_own_and_said_to_be(
    sessions: Sessions, api: TestClient, headers: Headers
) -> None:
    with sessions.begin() as session:
        runs = [ran(session, "mine", 0.78), ran(session, "mine", 0.60, 1), ran(session, "theirs", 0.70, 2)]
    body = answered(api, headers, runs)
    names = [body["arms"][run.id] for run in runs]
    assert names == [f"mine ({runs[0].id[-4:]})", f"mine ({runs[1].id[-4:]})", "theirs"]
    assert body["without_recipe"] == [run.id for run in runs]
    assert body["differences"] == []
    assert [arm["arm"] for arm in body["comparison"]["arms"]] == names[1:]


def test_arms_of_one_name_are_told_apart_by_their_sweeps(sessions: Sessions, api: TestClient, headers: Headers) -> None:
    with sessions.begin() as session:
        runs = []
        for at, ceiling in enumerate((0.7, 0.6)):
            sweep = make_sweep(session)
            sweep.name = f"sweep {at}"
            body = recipe(session, seed=0, loss=at)
            runs.append(ran(session, "control", ceiling, at, arm="control", sweep_id=sweep.id, recipe_id=body))
    assert list(answered(api, headers, runs)["arms"].values()) == ["control (sweep 0)", "control (sweep 1)"]


def test_what_is_not_judged_alike_is_refused_by_name(sessions: Sessions, api: TestClient, headers: Headers) -> None:
    with sessions.begin() as session:
        control = ran(session, "base", 0.7, recipe_id=recipe(session))
        steps = ran(session, "in steps", 0.7, 1, compute_unit="steps")
        other = ran(session, "maths", 0.7, 2, recipe_id=recipe(session, task={"kind": "maths"}))
        fine = ran(session, "fine", 0.7, 3, recipe_id=recipe(session, loss="dapo"))
    refused = asked(api, headers, [control, steps, other, fine])
    assert refused.status_code == 422
    problem = refused.json()
    assert [fault["value"] for fault in problem["errors"]] == [steps.id, other.id]
    assert "`in steps` counts compute in steps, the control `base` in GPU-hours" in problem["detail"]
    assert "`maths` is judged by another task than the control `base`: `task.kind` differs" in problem["detail"]
    assert asked(api, headers, [control, fine]).status_code == 200


def test_where_nothing_tells_the_controls_task_the_others_have_to_agree(
    sessions: Sessions, api: TestClient, headers: Headers
) -> None:
    with sessions.begin() as session:
        control = ran(session, "mine", 0.7)
        mazes = [ran(session, f"maze {at}", 0.7, 1 + at, recipe_id=recipe(session, loss=at)) for at in range(2)]
        maths = ran(session, "maths", 0.7, 3, recipe_id=recipe(session, task={"kind": "maths"}))
    assert asked(api, headers, [control, *mazes], control=control.id).status_code == 200
    refused = asked(api, headers, [control, *mazes, maths], control=control.id)
    assert "`maths` is judged by another task than `maze 0`: `task.kind` differs" in refused.json()["detail"]


def test_runs_that_name_other_tasks_are_refused_and_those_that_name_none_are_said(
    sessions: Sessions, api: TestClient, headers: Headers
) -> None:
    with sessions.begin() as session:
        control, alike, other = (
            ran(session, name, 0.7, at, task=task)
            for at, (name, task) in enumerate((("one", "gsm8k"), ("two", "gsm8k"), ("three", "humaneval")))
        )
        silent = ran(session, "silent", 0.7, 3)
        recipes = [ran(session, f"own {at}", 0.7, 4 + at, recipe_id=recipe(session, loss=at)) for at in range(2)]
    refused = asked(api, headers, [control, alike, other])
    assert "`three` is of task `humaneval`, the control `one` of `gsm8k`" in faults(refused)["run_id"]
    refused = asked(api, headers, [silent, control, other], control=silent.id)
    assert "`three` is of task `humaneval`, `one` of `gsm8k`" in faults(refused)["run_id"]
    assert answered(api, headers, [control, alike])["untold"] == []
    assert answered(api, headers, recipes)["untold"] == []
    assert answered(api, headers, [control, silent, recipes[0]])["untold"] == [silent.id, recipes[0].id]


def test_what_is_not_compared_is_named(sessions: Sessions, api: TestClient, headers: Headers) -> None:
    with sessions.begin() as session:
        runs = [ran(session, "base", 0.7), ran(session, "lower", 0.5, 1), ran(session, "young", 0.7, 2, points=3)]
        runs.append(make_run(session, "queued", arm=None))
    body = answered(api, headers, runs)
    assert body["left_out"] == {
        runs[2].id: "it has 3 evaluations, and 4 are needed",
        runs[3].id: "it has no evaluation, and 4 are needed",
    }
    assert body["sentence"].endswith(" Not compared: young, queued.")


@pytest.mark.parametrize(
    ("short", "said"),
    [
        (0, "Nothing is compared: the control ended with fewer than 4 evaluations; choose another one."),
        (1, "Nothing is compared: no arm beside the control came to 4 evaluations."),
    ],
)
def test_runs_that_are_over_are_not_waited_for(
    sessions: Sessions, api: TestClient, headers: Headers, short: int, said: str
) -> None:
    with sessions.begin() as session:
        runs = [
            ran(session, name, 0.7, at, points=3 if at == short else 51, status="failed")
            for at, name in enumerate(("base", "other"))
        ]
    assert answered(api, headers, runs)["note"] == said


def test_where_the_control_fell_no_fork_would_tell(sessions: Sessions, api: TestClient, headers: Headers) -> None:
    with sessions.begin() as session:
        control = make_run(session, "base", seed=0, arm=None, status="succeeded")
        fell = noisy(0.7, 0) - np.where(COMPUTE > 50, 0.4, 0.0)
        add_evaluations(session, control, COMPUTE, fell)
        others = [ran(session, "one", 0.7, 1, status="succeeded"), ran(session, "two", 0.6, 2, status="succeeded")]
    body = answered(api, headers, [control, *others])
    way_out = "Nothing can be compared with base: no ceiling can be read from base (collapse). Choose another control."
    assert body["sentence"].endswith(way_out)
    assert "undecided" not in body["sentence"]
    healthy = answered(api, headers, [others[0], control])
    assert healthy["sentence"].endswith("Against one: undecided: base (collapse). More seeds of them would tell.")


def test_a_run_under_another_name_is_compared_under_it(sessions: Sessions, api: TestClient, headers: Headers) -> None:
    with sessions.begin() as session:
        runs = [ran(session, "base", 0.78), ran(session, "lower", 0.6, 1)]
    assert [arm["arm"] for arm in answered(api, headers, runs)["comparison"]["arms"]] == ["lower"]
    with sessions.begin() as session:
        session.get_one(Run, runs[1].id).name = "renamed"
    body = answered(api, headers, runs)
    assert [arm["arm"] for arm in body["comparison"]["arms"]] == [body["arms"][runs[1].id]] == ["renamed"]


def test_a_sweep_that_varies_its_task_is_compared_as_on_its_page(
    sessions: Sessions, api: TestClient, headers: Headers
) -> None:
    with sessions.begin() as session:
        sweep = make_sweep(session)
        runs = [
            ran(session, kind, 0.7, at, sweep_id=sweep.id, recipe_id=recipe(session, task={"kind": kind}))
            for at, kind in enumerate(("maze", "walls"))
        ]
    assert answered(api, headers, runs)["comparison"] is not None


def test_a_fork_that_goes_on_with_its_parents_curve_is_named_and_left_out(
    sessions: Sessions, api: TestClient, headers: Headers
) -> None:
    with sessions.begin() as session:
        one = recipe(session, seed=0)
        parent = ran(session, "parent", 0.7, points=31, recipe_id=one)
        fork = make_run(session, "fork", seed=0, recipe_id=one, arm=None)
        inherit(session, fork.id, parent_id=parent.id, attempt=1, step=200)
        add_evaluations(session, fork, COMPUTE[21:], noisy(0.7, 5)[21:], first_step=210)
        other = ran(session, "other", 0.5, 2, recipe_id=recipe(session, seed=0, loss="dapo"))
    body = answered(api, headers, [other, parent, fork])
    assert body["left_out"] == {parent.id: "begins with the evaluations of `fork`, which is compared"}
    assert body["comparison"]["arms"][0]["seeds"] == 1
    assert answered(api, headers, [parent, fork])["note"] == "All of them are seeds of one arm, so nothing is compared."


def test_arms_that_share_a_curve_are_not_said_to_be_one(sessions: Sessions, api: TestClient, headers: Headers) -> None:
    with sessions.begin() as session:
        parent = ran(session, "parent", 0.7, points=31, recipe_id=recipe(session, keep_last=2))
        fork = make_run(session, "fork", recipe_id=recipe(session, keep_last=3), arm=None)
        inherit(session, fork.id, parent_id=parent.id, attempt=1, step=200)
    body = answered(api, headers, [parent, fork])
    assert body["left_out"] == {fork.id: "begins with the evaluations of `parent`, which is compared"}
    assert body["note"].startswith("Nothing is compared: every other arm begins with evaluations of the control's")
    assert body["sentence"].endswith(body["note"])


def test_too_few_evaluations_are_said(sessions: Sessions, api: TestClient, headers: Headers) -> None:
    with sessions.begin() as session:
        runs = [ran(session, "base", 0.7), ran(session, "young", 0.7, 1, points=3)]
    body = answered(api, headers, runs)
    assert body["comparison"] is None
    assert body["note"] == "Arms are compared as soon as one beside the control has 4 evaluations."
    assert body["sentence"] == f"2 runs: 2 running. {body['note']}"


@pytest.mark.parametrize(("count", "said"), [(0, "name the runs"), (1, "two runs or more"), (21, "at most 20 runs")])
def test_how_many_runs_can_be_asked_for(
    count: int, said: str, sessions: Sessions, api: TestClient, headers: Headers
) -> None:
    with sessions.begin() as session:
        runs = [make_run(session, f"r{at}") for at in range(count)]
    refused = asked(api, headers, runs)
    assert refused.status_code == 422
    assert said in faults(refused)["run_id"]


def test_a_run_twice_is_one_and_one_that_is_none_is_404(sessions: Sessions, api: TestClient, headers: Headers) -> None:
    with sessions.begin() as session:
        run = make_run(session)
    assert "two runs or more" in faults(asked(api, headers, [run, run]))["run_id"]
    missing = api.get("/v1/runs:compare", params={"run_id": [run.id, "run_no"]}, headers=headers["read"])
    assert (missing.status_code, "no such run" in faults(missing)["run_id"]) == (404, True)


def test_the_curves_of_any_runs_come_in_the_order_asked_for(
    sessions: Sessions, api: TestClient, headers: Headers
) -> None:
    with sessions.begin() as session:
        one, other = ran(session, "one", 0.7, points=5), ran(session, "other", 0.7, 1, points=6)
        seconds = make_run(session, "seconds", compute_unit="CPU-seconds")
    params = {"run_id": [other.id, one.id]}
    body = api.get("/v1/runs:curves", params=params, headers=headers["read"]).json()
    assert [(view["run"]["name"], len(view["points"])) for view in body["runs"]] == [("other", 6), ("one", 5)]
    assert body["unit"] == "GPU-hours"
    params = {"run_id": [one.id, seconds.id]}
    assert api.get("/v1/runs:curves", params=params, headers=headers["read"]).json()["unit"] is None


def test_a_comparison_is_made_once_and_anew_when_it_has_rested_and_more_has_come(
    sessions: Sessions, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    real = service.find

    def counted(compared: Any) -> Found:
        made.append(1)
        found = real(compared)
        return Found(found.result, found.note, 2.0)

    monkeypatch.setattr(service, "find", counted)
    with sessions.begin() as session:
        runs = [ran(session, "base", 0.7), ran(session, "lower", 0.6, 1, points=30)]

    def at(seconds: float) -> Any:
        with sessions() as session:
            found = [session.get_one(Run, run.id) for run in runs]
            return service.compare_runs(session, found, found[0], START + timedelta(seconds=seconds)).comparison

    assert at(0).compared_at == at(5).compared_at == at(1000).compared_at == START
    with sessions.begin() as session:
        add_evaluations(session, session.get_one(Run, runs[1].id), COMPUTE[30:31], [0.6], first_step=300)
    assert at(19).compared_at == START  # ten times two seconds
    assert at(20).compared_at == START + timedelta(seconds=20)
    with sessions.begin() as session:
        add_evaluations(session, session.get_one(Run, runs[1].id), COMPUTE[31:32], [0.6], first_step=310)
    assert at(15).compared_at == START + timedelta(seconds=20)
    assert at(-3600).compared_at == START - timedelta(hours=1), "a clock was set back"
    assert len(made) == 3


def test_few_may_wait_for_their_turn_and_the_others_are_told() -> None:
    kept, started, go_on = Kept(), threading.Event(), threading.Event()

    def slow() -> Found:
        started.set()
        go_on.wait(10)
        return Found(None, "made", 0.0)

    waiting = [threading.Thread(target=kept.get, args=(at, 0, START, slow)) for at in range(4)]
    for thread in waiting:
        thread.start()
    started.wait(10)
    while kept._places._value:  # type: ignore[attr-defined]
        pass
    with pytest.raises(Unavailable):
        kept.get("one more", 0, START, slow)
    go_on.set()
    for thread in waiting:
        thread.join(10)
    assert kept.get(0, 0, START, slow).found.note == "made"


def test_a_comparison_that_fails_says_so(
    sessions: Sessions, api: TestClient, headers: Headers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(compared: Any) -> Found:
        raise ZeroDivisionError("by nothing")

    monkeypatch.setattr(service, "find", broken)
    with sessions.begin() as session:
        runs = [ran(session, "base", 0.7), ran(session, "lower", 0.6, 1)]
        assert session.query(Sweep).count() == 0
    note = answered(api, headers, runs)["note"]
    assert note.startswith("The comparison failed unexpectedly; the log says why, at control `"), note
    assert "by nothing" not in note


def test_a_comparison_that_failed_is_tried_again_though_nothing_has_come() -> None:
    kept = Kept()

    def get(after: timedelta, found: Found) -> Found:
        return kept.get("the same runs", "the same evaluations", START + after, lambda: found).found

    failed, made = Found(None, "failed", 0.0, unexpected=True), Found(None, "made", 0.0)
    assert get(timedelta(), failed) == failed
    assert get(timedelta(minutes=4), made) == failed, "not at every look"
    assert get(timedelta(minutes=5), made) == made
    assert get(timedelta(days=1), failed) == made
