"""Any runs compared on a page: who they are stands in the URL, and so does the control."""

from __future__ import annotations

import json
import re
from html import unescape
from urllib.parse import parse_qs, urlsplit

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from server.comparisons import service
from server.comparisons.kept import Kept
from server.problems import Unavailable
from server.runs.models import Run
from tests.conftest import Clock
from tests.web import seeding
from tests.web.conftest import Seeded
from tests.web.reading import HOSTILE, assert_clean, row_of, text_of
from web.pages import compare

Sessions = sessionmaker[Session]


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "_KEPT", Kept())


def url(*runs: str, control: str = "") -> str:
    return compare.compare_url(list(runs), control or None)


def runs_of(href: str) -> list[str]:
    return parse_qs(urlsplit(unescape(href)).query).get("run", [])


@pytest.fixture
def lower(sessions: Sessions, clock: Clock) -> str:
    """A run of no sweep, with a hostile name, that is far below the control."""
    with sessions.begin() as session:
        run = seeding.add_run(session, now=clock.now, name=HOSTILE, changes={"optimizer.learning_rate": 1e-3})
        run.is_control = False
        seeding.add_evaluations(session, run, seeding.Truth(A=0.5), until=58, now=clock.now, seed=5)
        seeding.add_forecast(session, run, seeding.Truth(A=0.5), at=58.0, now=clock.now)
        return run.id


def test_runs_of_any_sweep_are_compared_with_the_control(site: TestClient, seeded: Seeded, lower: str) -> None:
    html = site.get(url(seeded.control, lower)).text
    assert_clean(html)
    said = text_of(html)
    assert "Compare 2 runs" in said
    assert "2 runs: 2 running. " in said
    assert "Against control: ceiling down: " in said
    assert "ceiling down ceiling -0.2" in row_of(html, lower)
    assert "learning_rate = 0.001" in row_of(html, lower)
    assert "control" in row_of(html, seeded.control)
    assert re.search(r"optimizer\.learning_rate 0\.0003 0\.001", said)
    assert f'data-live-runs="{seeded.control} {lower}"' in html
    assert f'data-curves="/v1/runs:curves?frozen=false&amp;run_id={seeded.control}&amp;run_id={lower}"' in html


def _failed(sessions: Sessions, clock: Clock) -> str:
    with sessions.begin() as session:
        return seeding.add_run(session, now=clock.now, name="died too", status="failed").id


def test_a_run_that_ended_without_evaluations_is_not_said_to_be_compared_yet(
    site: TestClient, sessions: Sessions, clock: Clock, seeded: Seeded, lower: str
) -> None:
    with sessions.begin() as session:
        changes = {"optimizer.learning_rate": 3e-3}
        early = seeding.add_run(session, now=clock.now, name="died early", changes=changes, status="failed").id
    row = row_of(site.get(url(seeded.control, lower, early)).text, early)
    assert "not compared: it has no evaluation, and 4 are needed" in row
    assert "no forecast" in row
    assert "yet" not in row
    assert "The run ended before its first evaluation; its events say why." in site.get(f"/runs/{early}").text
    assert "None of these runs was evaluated before it ended." in site.get(url(early, _failed(sessions, clock))).text


def test_another_control_is_a_choice_in_the_url(site: TestClient, seeded: Seeded, lower: str) -> None:
    html = site.get(url(seeded.control, lower, control=lower)).text
    assert f'<option value="{lower}" selected>' in html
    assert "ceiling up" in row_of(html, seeded.control)
    assert html.index(f'<tr id="{lower}"') < html.index(f'<tr id="{seeded.control}"')
    refused = site.get(f"/compare?run={seeded.control}&run={lower}&control=run_no")
    assert (refused.status_code, "is none of the runs" in refused.text) == (422, True)


def test_a_control_that_cannot_be_compared_yet_keeps_the_controls_colour(
    site: TestClient, sessions: Sessions, clock: Clock, lower: str
) -> None:
    with sessions.begin() as session:
        early = seeding.add_run(session, now=clock.now, name="begun just now").id
    html = site.get(url(lower, early, control=early)).text
    assert "not compared: it has no evaluation" in row_of(html, early)
    series = re.search(r'data-series="([^"]+)"', html)
    assert series
    assert json.loads(unescape(series[1])) == {early: None, lower: 0}


def test_runs_may_be_named_as_the_api_names_them(site: TestClient, seeded: Seeded, lower: str) -> None:
    ours, theirs = (site.get(f"/compare?{name}={seeded.control}&{name}={lower}").text for name in ("run", "run_id"))
    assert text_of(ours) == text_of(theirs)


def test_runs_are_taken_out_and_added(site: TestClient, seeded: Seeded, lower: str) -> None:
    html = site.get(url(seeded.control, lower, seeded.arm, control=lower)).text
    out = dict(re.findall(r'<tr id="(run_\w+)".*?class="remove" href="([^"]+)"', html, flags=re.S))
    assert runs_of(out[seeded.arm]) == [lower, seeded.control]
    assert "control=" in out[seeded.arm]
    assert "control=" not in out[lower]
    add = re.search(r'href="([^"]+)">Add runs', html)
    assert add
    assert runs_of(add[1]) == [seeded.control, lower, seeded.arm]


def test_seeds_of_one_arm_share_its_colour_and_its_row(
    site: TestClient, sessions: Sessions, clock: Clock, seeded: Seeded, lower: str
) -> None:
    with sessions.begin() as session:
        again = seeding.add_run(session, now=clock.now, name="again", changes={"seed": 3})
        seeding.add_evaluations(session, again, seeding.Truth(), until=50, now=clock.now, seed=9)
    html = site.get(url(seeded.control, again.id, lower)).text
    assert row_of(html, again.id).startswith("◇ again seed 3 × ")  # its sign among the seeds
    assert " control " in row_of(html, again.id)
    assert re.search(r"seed 0 3 0", text_of(html))


def test_what_is_not_judged_alike_is_not_laid_over_one_another(
    site: TestClient, sessions: Sessions, clock: Clock, seeded: Seeded, lower: str
) -> None:
    with sessions.begin() as session:
        others = [seeding.add_run(session, now=clock.now, name=f"in steps {at}") for at in range(2)]
        for run in others:
            run.compute_unit, run.recipe_id = "steps", None
        alone = seeding.add_run(session, now=clock.now, name="walls", changes={"task.layout": "walls"})
        alone.is_control = False
    html = site.get(url(seeded.control, lower, others[0].id, others[1].id, alone.id)).text
    assert_clean(html)
    said = text_of(html)
    assert "These runs are not judged alike" in said
    assert "in steps 0 counts compute in steps, the control control in CPU-seconds" in said
    assert "By itself: walls – walls is judged by another task than the control control : task.layout differs" in said
    links = [runs_of(href) for href in re.findall(r'<li><a href="([^"]+)">', html)]
    assert links == [[seeded.control, lower], [run.id for run in others]]
    for run in (*others, alone):
        assert f'<a href="/runs/{run.id}">{run.name}</a>' in html
    assert "data-chart" not in html


@pytest.mark.parametrize("chosen", [0, 1])
def test_fewer_than_two_say_how_runs_are_chosen(site: TestClient, seeded: Seeded, chosen: int) -> None:
    html = site.get(url(*[seeded.control][:chosen])).text
    said = text_of(html)
    assert ("Nothing chosen yet." in said, "control needs another run" in said) == (not chosen, bool(chosen))
    assert "Tick 2 to 20 runs in the list" in said
    assert "forecurve compare curves.csv --control base" in said
    assert (f'href="/runs?run={seeded.control}"' in html) == bool(chosen)


def test_an_unknown_run_is_said_on_a_page(site: TestClient, seeded: Seeded) -> None:
    unknown = site.get(url(seeded.control, "run_no"))
    assert (unknown.status_code, "There is no such run: <code>run_no</code>" in unknown.text) == (404, True)


def test_a_busy_server_says_so_and_lets_one_try_again(
    site: TestClient, seeded: Seeded, lower: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object) -> None:
        raise Unavailable("Other comparisons are being made right now. Ask again in a moment.")

    monkeypatch.setattr(compare, "compare_runs", busy)
    html = site.get(url(seeded.control, lower)).text
    assert "Other comparisons are being made right now." in html
    assert f'href="{url(seeded.control, lower).replace("&", "&amp;")}">Try again' in html


def test_runs_without_recipes_are_compared_and_said_to_have_none(
    site: TestClient, sessions: Sessions, seeded: Seeded, lower: str
) -> None:
    with sessions.begin() as session:
        session.get_one(Run, lower).recipe_id = None
    said = text_of(site.get(url(seeded.control, lower)).text)
    assert " judged as the control is, is for you to know: nothing says that they are of one task." in said
    assert "reported without a recipe" in said
    assert "one run was reported with a recipe" in said


def test_ticks_stand_in_the_url_and_every_view_of_the_list_takes_them_along(site: TestClient, seeded: Seeded) -> None:
    page = site.get(f"/runs?state=queued&run={seeded.control}&run=run_no&run={seeded.queued}").text
    assert_clean(page)
    ticked = re.findall(r'class="tick"[^>]* value="(\w+)"[^>]* checked', page)
    assert ticked == [seeded.queued]
    heads = re.findall(r'aria-sort="\w+"><a href="([^"]+)"', page)
    assert [runs_of(head) for head in heads] == [[seeded.control, seeded.queued]] * len(heads)
    bar = re.search(r'<form class="ticked".*?</form>', page, flags=re.S)
    assert bar
    assert "2 ticked" in bar[0]
    assert re.findall(r'name="run" value="(\w+)"', bar[0]) == [seeded.control]  # the other one's box is in the table
    assert "checked" not in site.get("/runs").text


def test_more_runs_than_one_chart_takes_are_chosen_from(site: TestClient, sessions: Sessions, clock: Clock) -> None:
    with sessions.begin() as session:
        ids = [seeding.add_run(session, now=clock.now, name=f"run-{k}").id for k in range(25)]
    answer = site.get(url(*ids, control=ids[3]))
    assert answer.status_code == 422
    assert "25 runs are too many for one chart: at most 20 are compared at once." in text_of(answer.text)
    choose, first = re.findall(r'<a class="button" href="([^"]+)"', answer.text)
    assert runs_of(choose) == ids
    assert runs_of(first) == ids[:20]
    assert unescape(first).endswith(f"control={ids[3]}")
    assert site.get(unescape(first)).status_code == 200


def test_a_run_less_keeps_the_order_of_the_table(site: TestClient, seeded: Seeded, lower: str) -> None:
    html = site.get(f"{url(seeded.control, lower)}&sort=-rate").text
    less = re.findall(r'<a class="remove" href="([^"]+)"', html)
    assert [parse_qs(urlsplit(unescape(href)).query).get("sort") for href in less] == [["-rate"]] * 2
    assert '<input type="hidden" name="sort" value="-rate">' in html  # with another control too
