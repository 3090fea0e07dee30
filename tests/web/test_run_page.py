"""The page of a run: its sentence, its facts, what its forecast rests on, and what is said where there is little."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import Engine, select
from sqlalchemy.orm import Session, sessionmaker

from server.events.service import record
from server.forecasts.models import Forecast, Recommendation
from server.metrics.models import Evaluation
from server.runs.models import Attempt, Run
from tests.conftest import Clock
from tests.server.counting import rows_counted
from tests.web import seeding
from tests.web.conftest import Login, Seeded
from tests.web.reading import row_of, text_of


def test_the_run_page_starts_with_the_sentence_and_has_the_facts_the_advice_and_what_happened(
    site: TestClient, seeded: Seeded
) -> None:
    html = site.get(f"/runs/{seeded.control}").text
    words = text_of(html)
    assert words.index("Ceiling 0.78 (90 %: 0.75 to 0.81)") < words.index("Ceiling A")
    for fact in (
        "Exponent B 1.30",
        "Midpoint C_mid 9.00 CPU-seconds",
        "Start R0 0.200",
        "Curve at the budget",
        "84 % of A",
    ):
        assert fact in words
    assert "18 more CPU-seconds would buy about" in words
    assert re.search(r'data-action="/v1/recommendations/adv_\w+:accept"', html)
    assert re.search(r'data-action="/v1/recommendations/adv_\w+:dismiss"[^>]*data-required', html)
    assert f'data-action="/v1/runs/{seeded.control}:stop"' in html
    assert "100 20 CPU-seconds 427 kB" in words
    assert "launching → running" in words
    assert "22 evaluations as a table" in words
    assert f'data-chart="curve" data-run="{seeded.control}"' in html


@pytest.mark.parametrize(
    ("known", "misfit", "said"),
    [
        (False, None, "not identified"),
        (True, "shape", "0.78"),
        (False, "shape", "not identified"),
        (True, None, "0.78"),
    ],
)
def test_a_ceiling_that_the_data_cannot_tell_is_never_a_bare_number(
    site: TestClient, sessions: sessionmaker[Session], seeded: Seeded, known: bool, misfit: str | None, said: str
) -> None:
    with sessions.begin() as session:
        forecast = session.get_one(Forecast, session.get_one(Run, seeded.control).forecast_id)
        forecast.summary = forecast.summary | {"misfit": misfit, "ceiling_known": known}
    row = row_of(site.get("/runs").text, seeded.control)
    assert f"{said} 0.75 to 0.81" in row
    assert ("+0.0" in row) == (said == "0.78")  # headroom against a ceiling that is not known says nothing
    page = text_of(site.get(f"/runs/{seeded.control}").text)
    assert (f"Ceiling A {'0.78' if said == '0.78' else 'not identified'} 0.75 to 0.81") in page
    assert ("The curve is not the sigmoid" in page) == (misfit is not None)
    bar = re.search(rf'<tr id="{seeded.control}".*?</tr>', site.get(f"/sweeps/{seeded.sweep}").text, flags=re.S)
    assert bar
    assert ("unsure" in bar[0]) == (said != "0.78")


def test_the_end_of_a_run_is_forecast_with_what_its_interval_rests_on(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock, seeded: Seeded
) -> None:
    page = site.get(f"/runs/{seeded.control}").text
    assert "Expected end 0.73 0.72 to 0.75 (90 %, without past runs)" in text_of(page)
    assert "three finished runs of the like tell how far" in page
    with sessions.begin() as session:
        control = session.get_one(Run, seeded.control)
        seeding.add_forecast(session, control, seeding.Truth(), at=42.0, now=clock.now, past_runs=12)
    page = site.get(f"/runs/{seeded.control}").text
    assert "Expected end 0.73 0.71 to 0.76 (90 %, calibrated on 12 past runs)" in text_of(page)
    assert "three finished runs" not in page
    view = site.get(f"/v1/runs/{seeded.control}").json()
    assert view["ending"]["calibration"] == "calibrated on 12 past runs"
    assert view["ending"]["lower"] < view["ending"]["median"] < view["ending"]["upper"]
    with sessions.begin() as session:
        session.get_one(Run, seeded.control).last_compute = 60.0  # the budget, and beyond it nothing is to come
    assert site.get(f"/v1/runs/{seeded.control}").json()["ending"] is None
    assert "Expected end" not in text_of(site.get(f"/runs/{seeded.control}").text)


def test_the_next_levels_say_when_they_are_reached_and_how_surely(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock, seeded: Seeded
) -> None:
    address = f"/runs/{seeded.control}"
    levels = "Next levels Pass rate Reached at, CPU-seconds 90 % By 60 CPU-seconds"
    assert f"{levels} 0.72 47.4 CPU-seconds 42.6 to 56.9 97 % 0.73 55.3 CPU-seconds 49.8 to never 60 %" in text_of(
        site.get(address).text
    )
    with sessions.begin() as session:
        forecast = session.get_one(Forecast, session.get_one(Run, seeded.control).forecast_id)
        late = {"target": 0.88, "median": 72.0, "lower": 66.0, "upper": None, "p_never": 0.3, "p_by_budget": None}
        never = {"target": 0.9, "median": None, "lower": 81.0, "upper": None, "p_never": 0.6, "p_by_budget": None}
        forecast.summary = forecast.summary | {"milestones": [late, never]}
        session.get_one(Run, seeded.control).budget_compute = None
    said = "90 % Ever 0.88 72.0 CPU-seconds 66.0 to never 70 % 0.90 never 81.0 to never 40 %"
    assert said in text_of(site.get(address).text)
    with sessions.begin() as session:
        session.get_one(Run, seeded.control).budget_compute = 60.0
        session.get_one(Run, seeded.control).last_compute = 60.0  # the budget, and beyond it nothing is to come
    assert "Next levels" not in text_of(site.get(address).text)


def test_open_advice_speaks_of_the_newest_forecast(
    site: TestClient, sessions: sessionmaker[Session], seeded: Seeded
) -> None:
    """It is opened anew only when its number has moved much; its sentence stands beside the run's own figures."""
    with sessions.begin() as session:
        run = session.get_one(Run, seeded.control)
        forecast = session.get_one(Forecast, run.forecast_id)
        advice = session.scalars(select(Recommendation).where(Recommendation.run_id == run.id)).one()
        forecast.summary = forecast.summary | {"advice": {"action": advice.action, "reason": "By the newest figures."}}
        before = advice.reason
    words = text_of(site.get(f"/runs/{seeded.control}").text)
    panel = words[words.index(" Advice ") :]
    assert "By the newest figures." in panel
    assert before not in panel


def test_of_a_long_run_the_newest_evaluations_are_listed_and_no_others_read(
    site: TestClient, sessions: sessionmaker[Session], engine: Engine, clock: Clock, seeded: Seeded
) -> None:
    with sessions.begin() as session:
        run = seeding.add_run(session, now=clock.now, name="long")
        seeding.add_evaluations(session, run, seeding.Truth(), until=800, now=clock.now)
        run_id = run.id
    with rows_counted(engine) as rows:
        answer = site.get(f"/runs/{run_id}")
    assert max(rows) == 200
    table = answer.text[answer.text.index("evaluations as a table") :]
    assert "The newest 200 evaluations" in answer.text
    steps = re.findall(r'<tr><td class="number">(\d+)</td>', table[: table.index("</table>")])
    assert steps == [str(10 * number) for number in range(400, 200, -1)]
    assert "All 401: " in table
    assert f'<a href="/v1/runs/{run_id}/curve">as JSON</a>' in table
    assert answer.headers["content-encoding"] == "gzip"


def test_a_forecast_says_whom_it_was_told_by(site: TestClient, sessions: sessionmaker[Session], seeded: Seeded) -> None:
    assert "siblings" not in text_of(site.get(f"/runs/{seeded.control}").text)
    for seeds, said in ((0, "beside 8 siblings"), (2, "beside 8 siblings, 2 of its arm")):
        with sessions.begin() as session:
            forecast = session.get_one(Forecast, session.get_one(Run, seeded.control).forecast_id)
            forecast.summary = forecast.summary | {"prior": {"name": "8 siblings", "seeds": seeds}}
        words = text_of(site.get(f"/runs/{seeded.control}").text)
        assert f"{said} Pass rate now" in words
    assert "Runs it learns from" not in words  # a forecast that was made before it named them


@pytest.mark.parametrize(
    ("ahead", "said"),
    [(0, "3 comparable runs that are over, beside"), (1, "that are over, or as far as it (1), beside"),
     (3, "3 comparable runs that are as far as it, or further, beside")],
)  # fmt: skip
def test_a_forecast_says_how_many_of_the_runs_it_rests_on_are_only_ahead(
    site: TestClient, sessions: sessionmaker[Session], seeded: Seeded, clock: Clock, ahead: int, said: str
) -> None:
    with sessions.begin() as session:
        others = [seeding.add_run(session, now=clock.now, name=f"run {number}").id for number in range(3)]
        forecast = session.get_one(Forecast, session.get_one(Run, seeded.control).forecast_id)
        told = {"name": "3 siblings", "seeds": 0, "runs": others, "ahead": ahead}
        forecast.summary = forecast.summary | {"prior": told}
    words = text_of(site.get(f"/runs/{seeded.control}").text)
    assert said in words
    assert ("not yet there" in words) == (ahead > 0)


def test_a_forecast_names_the_past_runs_that_it_rests_on(
    site: TestClient, sessions: sessionmaker[Session], seeded: Seeded, clock: Clock
) -> None:
    with sessions.begin() as session:
        past = [seeding.add_run(session, now=clock.now, name=f"run <{number}>").id for number in range(10)]
        forecast = session.get_one(Forecast, session.get_one(Run, seeded.control).forecast_id)
        forecast.summary = forecast.summary | {
            "prior": {"name": "10 siblings", "seeds": 0, "runs": [*past, "run_gone"]}
        }
    page = site.get(f"/runs/{seeded.control}").text
    assert "rests on 10 comparable runs that are over" in text_of(page)
    assert f'<a href="/runs/{past[0]}">run &lt;0&gt;</a>' in page
    assert "run <7> and 2 more." in text_of(page)
    laid = re.search(r'href="(/compare[^"]*)"', page[page.index("<h2>Runs it learns from") :])
    assert laid is not None
    words = text_of(site.get(laid[1].replace("&amp;", "&")).text)
    assert "run <7>" in words
    assert "run <8>" not in words


def test_a_withheld_forecast_leaves_the_data_and_the_reason(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock, seeded: Seeded
) -> None:
    with sessions.begin() as session:
        control = session.get_one(Run, seeded.control)
        seeding.add_forecast(session, control, seeding.Truth(), at=42.0, now=clock.now, misfit="collapse")
    page = text_of(site.get(f"/runs/{seeded.control}").text)
    assert "Forecast withheld. The curve is not the sigmoid" in page
    assert "it lost much of what it had gained" in page
    for nothing_of in (
        "0.75 to 0.81",
        "Next levels",
        "Exponent B 1.30",
        "Curve at the budget",
        "(90 %, without past runs)",
    ):
        assert nothing_of not in page
    assert "withheld collapsed" in row_of(site.get("/runs").text, seeded.control)
    assert 'class="band"' not in re.search(rf'<tr id="{seeded.control}".*?</tr>', site.get("/runs").text, re.S)[0]  # type: ignore[index]
    sweep = site.get(f"/sweeps/{seeded.sweep}").text
    assert "whisker" not in re.search(rf'<tr id="{seeded.control}".*?</tr>', sweep, re.S)[0]  # type: ignore[index]
    view = site.get(f"/v1/runs/{seeded.control}").json()
    assert (view["withheld"], view["ceiling"], view["ending"], view["at_budget"]) == (True, None, None, None)


@pytest.mark.parametrize(
    ("status", "desired", "buttons", "said"),
    [
        ("queued", "run", ["pause", "stop"], "queued"),
        ("running", "run", ["pause", "stop"], "running"),
        ("running", "pause", ["stop"], "running pause asked for"),
        ("pausing", "pause", ["stop"], "pausing"),
        ("paused", "pause", ["resume", "stop"], "paused"),
        ("paused", "stop", [], "paused stop asked for"),
        ("stopping", "stop", [], "stopping"),
        ("stopped", "pause", [], "stopped"),
    ],
)
def test_pause_and_resume_are_buttons_where_they_can_work(
    site: TestClient,
    log_in: Login,
    sessions: sessionmaker[Session],
    seeded: Seeded,
    status: str,
    desired: str,
    buttons: list[str],
    said: str,
) -> None:
    with sessions.begin() as session:
        run = session.get_one(Run, seeded.control)
        run.status, run.desired_state = status, desired
    html = site.get(f"/runs/{seeded.control}").text
    assert re.findall(rf'data-action="/v1/runs/{seeded.control}:(pause|resume|stop)"', html) == buttons
    assert f" {said} " in text_of(html)
    read_only = log_in("read").get(f"/runs/{seeded.control}").text
    assert f'data-action="/v1/runs/{seeded.control}:' not in read_only


def test_a_run_of_ones_own_has_no_button_to_pause_it(
    site: TestClient, sessions: sessionmaker[Session], seeded: Seeded
) -> None:
    with sessions.begin() as session:
        session.get_one(Run, seeded.fallen).executor = "external"
    html = site.get(f"/runs/{seeded.fallen}").text
    assert re.findall(rf'data-action="/v1/runs/{seeded.fallen}:(pause|resume|stop)"', html) == ["stop"]


def test_an_arms_recipe_is_shown_with_its_difference_from_the_control(site: TestClient, seeded: Seeded) -> None:
    words = text_of(site.get(f"/runs/{seeded.arm}").text)
    assert "algorithm.logits_precision bf16" in words
    assert "logits_precision bf16 (control: fp32)" in words
    assert words.count("(control:") == 1


def test_a_run_that_has_nothing_yet_says_what_it_waits_for(site: TestClient, seeded: Seeded) -> None:
    words = text_of(site.get(f"/runs/{seeded.queued}").text)
    assert "Waiting for a place on the cluster." in words
    assert "Not launched yet." in words


def test_of_a_run_that_ended_in_the_queue_nothing_is_promised(
    site: TestClient, sessions: sessionmaker[Session], seeded: Seeded
) -> None:
    with sessions.begin() as session:
        session.get_one(Run, seeded.queued).status = "stopped"
    words = text_of(site.get(f"/runs/{seeded.queued}").text)
    assert "Never launched." in words
    assert "Checkpoints None was reported." in words


def test_a_run_that_is_only_tracked_has_no_recipe_and_a_page_all_the_same(site: TestClient, log_in: Login) -> None:
    body = {"name": "my-run", "executor": "external", "compute_unit": "GPU-hours", "budget_compute": 100}
    run = site.post("/v1/runs", json=body, headers={"Sec-Fetch-Site": "same-origin"}).json()
    words = text_of(site.get(f"/runs/{run['id']}").text)
    assert "reported without a recipe and names no task, so no other run tells how it will end" in words
    site.patch(f"/v1/runs/{run['id']}", json={"task": "<gsm8k>"}, headers={"Sec-Fetch-Site": "same-origin"})
    page = site.get(f"/runs/{run['id']}").text
    assert "This run was reported without a recipe. Run" in text_of(page)
    assert "task &lt;gsm8k&gt;" in page
    assert "launched by you" in words


def test_what_was_heard_last_of_a_silent_run_is_said_as_of_now(
    site: TestClient, sessions: sessionmaker[Session], seeded: Seeded, clock: Clock
) -> None:
    with sessions.begin() as session:
        run = session.get_one(Run, seeded.control)
        run.status, run.reason = "suspect", "No heartbeat for 31 s."
    heard = clock.now
    clock.advance(600)
    html = site.get(f"/runs/{seeded.control}").text
    assert "31 s" not in text_of(html)
    assert "no heartbeat since 10 min ago" in text_of(html)
    assert f'datetime="{heard.isoformat()}"' in html


def test_why_a_run_is_as_it_is_is_said_with_its_time(
    site: TestClient, sessions: sessionmaker[Session], seeded: Seeded
) -> None:
    with sessions.begin() as session:
        session.get_one(Run, seeded.control).reason = "It reports again."
    assert re.search(r"It reports again\. \( \S+( s ago)? \)", text_of(site.get(f"/runs/{seeded.control}").text))


@pytest.mark.parametrize(
    ("number", "said"),
    [(18, "16 older ones that the trainer has dropped"), (41, "The newest 18 that the trainer has dropped")],
)
def test_checkpoints_that_are_not_shown_are_not_miscounted(
    site: TestClient, seeded: Seeded, sessions: sessionmaker[Session], clock: Clock, number: int, said: str
) -> None:
    with sessions.begin() as session:
        run = session.get_one(Run, seeded.control)
        for step in range(200, 200 + 10 * (number - 1), 10):
            seeding.add_checkpoint(session, run, step=step, compute=step / 5, now=clock.now)
    assert said in text_of(site.get(f"/runs/{seeded.control}").text)


@pytest.mark.parametrize(
    ("number", "said", "rest"),
    [(30, "22 older events", ""), (90, "30 older events", "The newest 40 of 92: events as JSON, 1,000 at a time")],
)
def test_events_that_are_not_shown_are_not_miscounted(
    site: TestClient, seeded: Seeded, sessions: sessionmaker[Session], number: int, said: str, rest: str
) -> None:
    with sessions.begin() as session:
        for _ in range(number):
            record(session, "run.paused", actor="a person", run_id=seeded.control)
    page = site.get(f"/runs/{seeded.control}").text
    events = page[page.index("<h2>Events") : page.index("<h2>Evaluations")]
    older, after = events.partition('<details id="older-events">')[2].split("</details>")
    assert text_of(older).startswith(said)
    assert text_of(after) == rest


def at_a_pace(sessions: sessionmaker[Session], run_id: str, now: datetime) -> None:
    """The run's evaluations came a minute and two units apart, the newest of them now."""
    with sessions.begin() as session:
        mine = select(Evaluation).where(Evaluation.run_id == run_id).order_by(Evaluation.step.desc())
        newest = session.scalars(mine).all()
        for back, one in enumerate(newest):
            one.time = now - timedelta(minutes=back)
        run = session.get_one(Run, run_id)
        gap = newest[0].compute - newest[1].compute
        run.budget_compute = newest[0].compute + 90 * gap


def test_how_long_it_is_until_the_budget_is_spent_stands_beside_it_and_in_lists(
    site: TestClient, sessions: sessionmaker[Session], seeded: Seeded, clock: Clock
) -> None:
    at_a_pace(sessions, seeded.control, clock.now)
    page = text_of(site.get(f"/runs/{seeded.control}").text)
    assert re.search(r"of [\d.]+ CPU-seconds, 90 min left", page)
    assert "running 90 min left" in text_of(site.get("/runs").text)
    with sessions.begin() as session:
        session.get_one(Run, seeded.control).status = "succeeded"
    assert "min left" not in text_of(site.get(f"/runs/{seeded.control}").text)


def test_a_run_that_was_launched_here_has_a_log_and_leads_from_each_attempt_to_it(
    site: TestClient, sessions: sessionmaker[Session], seeded: Seeded
) -> None:
    with sessions.begin() as session:
        attempt = session.scalar(select(Attempt).where(Attempt.run_id == seeded.control))
        attempt.external_ref = f"{seeded.control}-a1"
    html = site.get(f"/runs/{seeded.control}").text
    assert f'data-log="/v1/runs/{seeded.control}/logs"' in html
    assert f'href="/runs/{seeded.control}?log=1#log"' in html
    with sessions.begin() as session:
        session.get_one(Run, seeded.control).executor = "external"
    own = site.get(f"/runs/{seeded.control}").text
    assert "data-log" not in own
    assert "#log" not in own


def test_of_a_recipe_that_differs_in_many_fields_three_stand_at_its_head_and_all_below(
    site: TestClient, sessions: sessionmaker[Session], seeded: Seeded
) -> None:
    many = {f"optimizer.field_{at}": at for at in range(9)}
    with sessions.begin() as session:
        session.get_one(Run, seeded.control).changes = many
    head, _, rest = site.get(f"/runs/{seeded.control}").text.partition("<h2>Recipe")
    assert "optimizer.field_2 = 2 and 6 more" in text_of(head)
    assert "field_8" not in head
    assert "optimizer.field_8" in rest
    assert "field_2 = 2 and 6 more" in text_of(site.get("/runs").text)
