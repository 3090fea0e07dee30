"""Runs that share compute: on the page of their sweep, on their own, in lists, and where a sweep is composed."""

from __future__ import annotations

import re
from datetime import timedelta
from html import unescape
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from server.runs.models import Run
from server.settings import Settings
from server.sweeps.comparisons import ask_for_comparison
from server.sweeps.models import Sweep, SweepComparison
from tests.conftest import Clock
from tests.web import seeding
from tests.web.conftest import Login, Seeded
from tests.web.reading import assert_clean, row_of, text_of
from tests.web.test_new_page import submission
from web.shared_compute import MOST_TOLD
from worker.compare import compare_sweep

Sessions = sessionmaker[Session]


@pytest.fixture
def shared(sessions: Sessions, clock: Clock, seeded: Seeded) -> Seeded:
    """Of the seeded sweep the control goes to 54, the other arm is held at 42, and one waits to be begun."""
    with sessions.begin() as session:
        sweep = session.get_one(Sweep, seeded.sweep)
        seeding.add_allocation(session, sweep, now=clock.now, goes={"control": 54.0}, dropped=["no-fp32-logits"])
        queued = session.get_one(Run, seeded.queued)
        queued.allocated, queued.goes_to = True, 0.0
    return seeded


def test_a_sweep_says_what_is_spent_and_what_becomes_of_each_run(site: TestClient, shared: Seeded) -> None:
    html = site.get(f"/sweeps/{shared.sweep}").text
    assert_clean(html)
    words = text_of(html)
    assert "Shared compute planned now control ends highest at 60 CPU-seconds with 90 %." in words
    assert "84 of 120 CPU-seconds spent · Change the budget" in words
    assert 'role="meter"' in html
    assert 'aria-valuenow="70.0" aria-valuetext="84 of 120 CPU-seconds"' in html
    first = row_of(html, f"shared-{shared.control}")
    assert first == "control trains to 54 CPU-seconds 0.73 0.70 to 0.76 90 % it may pass the others"
    held = row_of(html, f"shared-{shared.arm}")
    assert held == "no-fp32-logits held at 42 CPU-seconds 0.68 0.65 to 0.71 30 % can be dropped"
    assert words.index("trains to 54") < words.index("held at 42")
    assert "Not compared: no-cispo (waits to train until it can be forecast)." in words
    assert '<span class="swatch neutral">' in html.partition(f'id="shared-{shared.control}"')[2][:200]
    assert "paused by its sweep" in row_of(html, shared.arm)


def test_odds_are_called_the_arms_where_one_has_several_seeds(
    site: TestClient, sessions: Sessions, shared: Seeded
) -> None:
    alone = text_of(site.get(f"/sweeps/{shared.sweep}").text)
    assert "P(best)" in alone
    assert "P(best arm)" not in alone
    with sessions.begin() as session:
        row = session.get_one(SweepComparison, shared.sweep)
        assert row.allocation is not None
        runs = [one | {"seed_of": "control"} for one in row.allocation["runs"]]
        row.allocation = row.allocation | {"runs": runs}
    html = site.get(f"/sweeps/{shared.sweep}").text
    assert "P(best arm)" in text_of(html)
    assert 'data-label="P(best arm)"' in html
    assert "P(best)<" not in html


def test_once_no_run_trains_on_there_is_no_column_of_why(site: TestClient, sessions: Sessions, shared: Seeded) -> None:
    def told() -> str:
        return site.get(f"/sweeps/{shared.sweep}").text

    assert told().count("Why it trains on") == 3  # the head, and beside each run on a phone
    with sessions.begin() as session:
        row = session.get_one(SweepComparison, shared.sweep)
        assert row.allocation is not None
        row.allocation = row.allocation | {"runs": [one | {"reason": None} for one in row.allocation["runs"]]}
    assert "Why it trains on" not in told()
    assert_clean(told())


def test_before_the_first_plan_it_says_what_is_to_come(
    site: TestClient, sessions: Sessions, clock: Clock, seeded: Seeded
) -> None:
    with sessions.begin() as session:
        sweep = session.get_one(Sweep, seeded.sweep)
        sweep.policy, sweep.budget_compute = "allocate", 120.0
        queued = session.get_one(Run, seeded.queued)
        queued.allocated, queued.goes_to = True, 0.0
    html = site.get(f"/sweeps/{seeded.sweep}").text
    words = text_of(html)
    assert "Every run trains until it can be forecast; then it is said which of them train on." in words
    assert "stands here once all can be forecast" in words
    assert "shared-run" not in html
    assert "Shared compute planned" not in words


@pytest.mark.parametrize(("over", "told"), [(None, True), ("the budget is spent", False)])
def test_more_than_the_budget_may_be_spent(
    site: TestClient, sessions: Sessions, clock: Clock, seeded: Seeded, over: str | None, told: bool
) -> None:
    with sessions.begin() as session:
        sweep = session.get_one(Sweep, seeded.sweep)
        seeding.add_allocation(session, sweep, now=clock.now, budget=80.0, goes={}, runs=[], over=over)
    html = site.get(f"/sweeps/{seeded.sweep}").text
    assert "84 of 80 CPU-seconds spent" in text_of(html)
    assert ("spent: runs that train go on until they are told" in text_of(html)) == told
    assert ("stands here once all can be forecast" in text_of(html)) == told
    assert 'class="beyond" width="100.0"' in html


def test_what_the_worker_plans_is_what_the_page_shows(
    site: TestClient, sessions: Sessions, clock: Clock, tmp_path: Path
) -> None:
    now = clock.now
    with sessions.begin() as session:
        sweep = seeding.add_sweep(session, now=now)
        sweep.policy, sweep.budget_compute = "allocate", 110.0
        for seed, (name, A) in enumerate({"control": 0.78, "higher": 0.8, "lower": 0.4}.items()):
            changes = {"seed": seed} if seed else {}
            run = seeding.add_run(session, now=now, name=name, sweep=sweep, changes=changes)
            run.allocated, run.goes_to = True, 0.0
            seeding.add_evaluations(session, run, seeding.Truth(A=A), until=24, now=now, seed=seed)
        ask_for_comparison(session, sweep.id, now)
        sweep_id, lower = sweep.id, run.id
    settings = Settings(DATABASE_URL="postgresql://unused", data_dir=tmp_path)
    compare_sweep(sessions, settings, sweep_id, now)
    html = site.get(f"/sweeps/{sweep_id}").text
    view = site.get(f"/v1/sweeps/{sweep_id}").json()["allocation"]
    assert view["sentence"] in text_of(html)
    assert re.findall(r'<tr id="shared-(\w+)"', html) == [one["run_id"] for one in view["runs"]]
    assert re.match(r"lower is being held 0\.\d+ .* under 1 % can be dropped$", row_of(html, f"shared-{lower}"))


def test_the_likely_best_are_in_sight_and_the_others_one_press_away(
    site: TestClient, sessions: Sessions, clock: Clock, seeded: Seeded
) -> None:
    with sessions.begin() as session:
        sweep = session.get_one(Sweep, seeded.sweep)
        for k in range(MOST_TOLD):
            run = seeding.add_run(session, now=clock.now, name=f"arm-{k}", sweep=sweep, changes={"seed": k + 1})
            seeding.add_evaluations(session, run, seeding.Truth(), until=10, now=clock.now)
        seeding.add_allocation(session, sweep, now=clock.now, budget=600.0, goes={"control": 54.0})
    html = site.get(f"/sweeps/{seeded.sweep}").text
    assert html.count('<tr id="shared-') == MOST_TOLD + 2
    assert "2 that are less likely the best" in text_of(html)
    assert html.partition('id="others-share"')[0].count('<tr id="shared-') == MOST_TOLD


def test_a_sweep_of_another_policy_shows_nothing_of_it(site: TestClient, seeded: Seeded) -> None:
    html = site.get(f"/sweeps/{seeded.sweep}").text
    assert 'id="allocation"' not in html
    assert "advises only" in text_of(html)
    assert 'placeholder="the sum of their budgets"' in html
    assert f'data-action="/v1/sweeps/{seeded.sweep}" data-method="PATCH" hx-morph-skip id="policy-advise-None"' in html


def test_the_policy_is_changed_by_who_may_and_of_what_is_listed(
    site: TestClient, log_in: Login, sessions: Sessions, clock: Clock, shared: Seeded
) -> None:
    html = site.get(f"/sweeps/{shared.sweep}").text
    assert 'name="budget_compute" data-as="number" size="22" value="120"' in html
    assert 'placeholder="as it is"' in html
    assert '<option value="allocate" selected>' in html
    assert '<a href="#new-policy"' in html
    reader = log_in("read").get(f"/sweeps/{shared.sweep}").text
    assert "84 of 120 CPU-seconds spent" in text_of(reader)
    assert "new-policy" not in reader
    with sessions.begin() as session:
        session.get_one(Sweep, shared.sweep).archived_at = clock.now
    assert "new-policy" not in log_in("admin").get(f"/sweeps/{shared.sweep}").text


def test_lists_say_what_a_sweep_does_by_itself(site: TestClient, sessions: Sessions, shared: Seeded) -> None:
    assert "shares its compute" in row_of(site.get("/sweeps").text, shared.sweep)
    assert "paused by its sweep" in row_of(site.get("/runs").text, shared.arm)
    with sessions.begin() as session:
        sweep = session.get_one(Sweep, shared.sweep)
        sweep.policy, sweep.budget_compute = "auto", None
    assert "stops runs by itself" in row_of(site.get("/sweeps").text, shared.sweep)


def test_a_run_says_where_its_sweep_lets_it_go(site: TestClient, sessions: Sessions, shared: Seeded) -> None:
    link = f'<a href="/sweeps/{shared.sweep}#allocation">its sweep</a>'
    for run, said in (
        (shared.control, "Trains to 54 CPU-seconds"),
        (shared.arm, "Held at 42 CPU-seconds"),
        (shared.queued, "Waits to train until it can be forecast"),
    ):
        html = site.get(f"/runs/{run}").text
        assert f'id="allocated">{said}: {link} says how far it trains.</p>' in html
        assert "by its sweep" not in text_of(html)
    assert "goes on from its newest checkpoint; its sweep then no longer" in site.get(f"/runs/{shared.arm}").text
    with sessions.begin() as session:
        arm = session.get_one(Run, shared.arm)
        arm.allocated, arm.goes_to = False, None
    assert "Its user’s: its sweep no longer says how far it trains." in text_of(site.get(f"/runs/{shared.arm}").text)
    assert "its user’s, paused" in row_of(site.get(f"/sweeps/{shared.sweep}").text, f"shared-{shared.arm}")
    with sessions.begin() as session:
        session.get_one(Run, shared.arm).status = "stopped"
    assert 'id="allocated"' not in site.get(f"/runs/{shared.arm}").text


def test_a_run_that_goes_no_further_than_it_is_let_has_no_time_left(
    site: TestClient, sessions: Sessions, clock: Clock, shared: Seeded
) -> None:
    clock.now += timedelta(seconds=43)
    assert "left" not in row_of(site.get("/runs").text, shared.control)
    with sessions.begin() as session:
        session.get_one(Run, shared.control).allocated = False
    assert "left" in row_of(site.get("/runs").text, shared.control)


def test_a_sweep_is_composed_whose_runs_share_compute(site: TestClient, sessions: Sessions) -> None:
    opened = site.get("/new?policy=allocate")
    assert "9 runs, 9 arms, which share 540 CPU-seconds; the sum of their budgets is 540." in text_of(opened.text)
    html = site.get("/new?policy=allocate&budget_compute=240").text
    assert "which share 240 CPU-seconds; the sum of their budgets is 540." in text_of(html)
    assert 'name="budget_compute" size="22" value="240"' in html
    path, body, _ = submission(html)
    assert (body["policy"], body["budget_compute"]) == ("allocate", 240)
    made = site.post(path, json=body, headers={"origin": str(site.base_url)}).json()
    assert made["allocation"]["budget"] == 240
    assert "budget_compute: 240" in unescape(html)


@pytest.mark.parametrize(
    ("asked", "said", "control"),
    [
        ("budget_compute=x", "budget_compute = x : give a number, such as 240 , or nothing", "budget_compute"),
        ("budget_compute=nan", "budget_compute = nan : give a number", "budget_compute"),
        ("budget_compute=-1", "budget_compute = -1 :", "budget_compute"),
        ("seeds=0-49", "policy = allocate : compute is allocated to at most 300 runs", "policy"),
    ],
)
def test_what_cannot_be_shared_is_told_at_its_field(site: TestClient, asked: str, said: str, control: str) -> None:
    answer = site.get(f"/new?policy=allocate&{asked}")
    assert answer.status_code == 422
    assert said in text_of(answer.text)
    assert re.findall(r'name="(\w+)"[^>]*aria-invalid="true"', answer.text) == [control]


def test_a_budget_that_no_run_shares_is_no_fault(site: TestClient) -> None:
    for asked in ("policy=advise&budget_compute=x", "kind=run&policy=allocate&budget_compute=x"):
        answer = site.get(f"/new?{asked}")
        assert answer.status_code == 200
        assert "budget_compute" not in submission(answer.text)[1]


def test_a_comparison_alone_shows_no_allocation_of_another_policy(
    site: TestClient, sessions: Sessions, shared: Seeded
) -> None:
    with sessions.begin() as session:
        sweep = session.get_one(Sweep, shared.sweep)
        sweep.policy, sweep.budget_compute = "advise", None
        assert session.get_one(SweepComparison, shared.sweep).allocation
    assert 'id="allocation"' not in site.get(f"/sweeps/{shared.sweep}").text
