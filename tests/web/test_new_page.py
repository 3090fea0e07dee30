"""The page on which a run or a sweep is composed and planned."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select
from sqlalchemy.orm import Session, sessionmaker

from server.runs.models import Run
from server.sweeps.models import Sweep
from tests.web.conftest import Login, Seeded
from tests.web.reading import text_of

GRID = {
    "kind": "grid",
    "base": "preset:scalerl",
    "factors": "algorithm.loss = cispo, dapo",
    "seeds": "0-1",
    "name": "<b>losses</b>",
    "sent": "true",
}


def submission(html: str) -> tuple[str, dict[str, Any], str]:
    """What the button of the plan sends: path, body, and where it leads."""
    found = re.search(r'data-action="(/v1/[^"]+)" data-body="([^"]+)" data-leads="([^"]+)"', html)
    assert found is not None
    return found[1], json.loads(unescape(found[2])), found[3]


def test_what_is_opened_is_planned_already(site: TestClient) -> None:
    answer = site.get("/new")
    said = text_of(answer.text)
    assert answer.status_code == 200
    assert "9 runs, 9 arms, at most 540 CPU-seconds in all." in said
    assert "no-cispo algorithm.loss = dapo" in said
    assert "preset: scalerl" in said


def test_what_is_planned_is_what_is_submitted(site: TestClient, sessions: sessionmaker[Session]) -> None:
    html = site.get("/new", params=GRID).text
    path, body, leads = submission(html)
    assert "<b>losses</b>" not in html
    made = site.post(path, json=body, headers={"origin": str(site.base_url)})
    assert made.status_code == 201
    assert site.get(leads + made.json()["id"]).status_code == 200
    with sessions() as session:
        assert session.scalars(select(Sweep.name)).all() == ["<b>losses</b>"]
        assert session.scalar(select(func.count()).select_from(Run)) == 4
    other = body | {"changes": {"budget.compute": 7}}
    changed = site.post(path, json=other, headers={"origin": str(site.base_url)})
    assert (changed.status_code, changed.json()["errors"][0]["field"]) == (409, "plan_hash")


def test_a_run_is_submitted_likewise(site: TestClient, sessions: sessionmaker[Session]) -> None:
    answer = site.get("/new", params={"kind": "run", "changes": "budget.compute = 7", "sent": "true"})
    path, body, leads = submission(answer.text)
    assert "One run of at most 7 CPU-seconds." in text_of(answer.text)
    assert "compute 7 (unchanged: 60)" in text_of(answer.text)
    made = site.post(path, json=body, headers={"origin": str(site.base_url)})
    assert site.get(leads + made.json()["id"]).status_code == 200
    with sessions() as session:
        assert session.scalars(select(Run.budget_compute)).all() == [7]


def test_tags_and_a_note_go_along(site: TestClient) -> None:
    path, body, _ = submission(site.get("/new", params=GRID | {"tags": "paper, x", "note": "which\nloss?"}).text)
    made = site.post(path, json=body, headers={"origin": str(site.base_url)}).json()
    assert (made["tags"], made["note"]) == (["paper", "x"], "which\nloss?")


@pytest.mark.parametrize(
    ("asked", "said", "control"),
    [
        ({"changes": "nonsense"}, "changes = nonsense : cannot be read; write field = value", "changes"),
        ({"changes": "budget.compute = -1"}, "budget.compute = -1 : must be above 0", "changes"),
        ({"factors": "algorithm.los = dapo"}, "algorithm.los", "factors"),
        ({"seeds": "x"}, "design.seeds = x : give whole numbers, such as 0, 1, 2 or 0-4", "seeds"),
        ({"base": "preset:<i>none"}, "preset = <i>none : no such preset", "base"),
        ({"base": "recipe:rec_none"}, "recipe_id = rec_none : no such recipe", "base"),
        ({"base": "\x00"}, "preset", "base"),
        ({"name": "a\x07"}, "name", "name"),
        ({"tags": "paper, " + "x" * 65}, "tags.1", "tags"),
        ({"note": "a\x07"}, "note", "note"),
    ],
)
def test_a_fault_is_told_with_its_field_and_marked(
    site: TestClient, asked: dict[str, str], said: str, control: str
) -> None:
    answer = site.get("/new", params=GRID | asked)
    assert answer.status_code == 422
    assert said in text_of(answer.text)
    assert "<i>none" not in answer.text
    marked = re.findall(r'name="(\w+)"[^>]*aria-invalid="true"', answer.text)
    assert marked == [control]
    assert "data-action" not in answer.text.partition('id="planned"')[2]


def test_a_form_without_values_to_try_is_no_fault_before_it_is_sent(site: TestClient) -> None:
    opened = site.get("/new?kind=one_factor")
    assert opened.status_code == 200
    assert "press Plan: it shows the arms" in text_of(opened.text)
    sent = site.get("/new?kind=one_factor&sent=true")
    assert (sent.status_code, "design.factors : there is none" in text_of(sent.text)) == (422, True)


def test_a_sweep_of_a_runs_recipe_begins_at_its_page(site: TestClient, seeded: Seeded) -> None:
    link = re.search(r'href="(/new\?kind=one_factor&amp;base=recipe%3A[^"]+)"', site.get(f"/runs/{seeded.arm}").text)
    assert link is not None
    again = site.get(unescape(link[1]).replace("one_factor", "run"))
    assert submission(again.text)[0] == "/v1/runs"
    html = site.get(unescape(link[1])).text
    assert re.search(r'<option value="recipe:[^"]+" selected>[^<]+ \(a run’s\)', html)
    planned = site.get(f"{unescape(link[1])}&factors=optimizer.learning_rate%3D1e-4&sent=true").text
    assert submission(planned)[1]["recipe_id"].startswith("rec_")


def test_who_may_only_read_sees_the_plan_and_no_button(log_in: Login) -> None:
    reader = log_in("read")
    said = reader.get("/new").text
    assert "9 runs" in text_of(said)
    assert "To submit needs a login that may operate ; this one has read." in text_of(said)
    assert "data-body" not in said
    assert 'class="button" href="/new' not in reader.get("/sweeps").text + reader.get("/runs").text


def test_many_arms_are_listed_in_part(site: TestClient) -> None:
    values = ", ".join(str(10 + value) for value in range(100))
    html = site.get("/new", params=GRID | {"factors": f"budget.compute = {values}"}).text
    assert "200 runs, 100 arms" in text_of(html)
    assert "and 40 more." in text_of(html)
