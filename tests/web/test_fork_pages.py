"""A fork on the pages: it leads to its parent, the parent to its forks, and who may operate can make one."""

from __future__ import annotations

import re

import pytest
from fastapi.testclient import TestClient
from sqlalchemy.orm import Session, sessionmaker

from server.runs.forks import fork_run
from server.runs.room import Room
from server.runs.schemas import ForkCreate
from tests.conftest import Clock
from tests.web import seeding
from tests.web.conftest import Login
from tests.web.reading import HOSTILE, assert_clean, row_of, text_of

CHANGES = {"optimizer.learning_rate": 1e-4}


@pytest.fixture
def family(sessions: sessionmaker[Session], clock: Clock) -> tuple[str, str]:
    """A run whose name is markup, with a checkpoint at step 100, and its fork from there."""
    with sessions.begin() as session:
        parent = seeding.add_run(session, now=clock.now, name=HOSTILE)
        seeding.add_checkpoint(session, parent, step=100, compute=20.0, now=clock.now)
        session.flush()
        child = fork_run(
            session, parent.id, ForkCreate(changes=CHANGES, name="slower"), Room(), actor="a person", now=clock.now
        )
        return parent.id, child.id


def test_a_fork_says_where_it_comes_from(site: TestClient, family: tuple[str, str]) -> None:
    parent, child = family
    page = site.get(f"/runs/{child}").text
    assert f"Forked from {HOSTILE} at step 100" in text_of(page)
    assert f'<a href="/runs/{parent}">' in page
    assert "optimizer.learning_rate = 0.0001" in text_of(page)
    assert_clean(page)


def test_a_parent_lists_its_forks_and_others_do_not(site: TestClient, family: tuple[str, str]) -> None:
    parent, child = family
    page = site.get(f"/runs/{parent}").text
    assert row_of(page, child) == "slower learning_rate = 0.0001 100 queued –"
    assert f'href="/runs/{child}"' in page
    assert "Forked from" not in page
    assert 'id="forks"' not in site.get(f"/runs/{child}").text
    assert_clean(page)


def test_the_list_of_runs_tells_a_fork_from_a_run_that_began_at_zero(site: TestClient, family: tuple[str, str]) -> None:
    parent, child = family
    page = site.get("/runs").text
    assert "fork at step 100: learning_rate = 0.0001" in row_of(page, child)
    assert "fork" not in row_of(page, parent)


def test_only_who_may_operate_is_offered_a_fork_and_only_of_a_run_with_checkpoints(
    log_in: Login, family: tuple[str, str]
) -> None:
    parent, child = family
    action = 'data-action="/v1/runs/{}/forks"'
    assert action.format(parent) in log_in("operate").get(f"/runs/{parent}").text
    assert action.format(child) not in log_in("operate").get(f"/runs/{child}").text
    assert action.format(parent) not in log_in("read").get(f"/runs/{parent}").text


def test_checkpoints_that_the_trainer_has_dropped_are_folded_away_and_not_offered(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock
) -> None:
    """The recipe keeps the newest two."""
    with sessions.begin() as session:
        run = seeding.add_run(session, now=clock.now, name="long")
        for step in (100, 200, 300):
            seeding.add_checkpoint(session, run, step=step, compute=step / 5, now=clock.now)
        run_id = run.id
    page = site.get(f"/runs/{run_id}").text
    offered = page.partition('<datalist id="fork-steps">')[2].partition("</datalist>")[0]
    assert offered == '<option value="300"></option><option value="200"></option>'
    kept, _, dropped = page.partition('<details id="dropped">')
    listed = re.findall(r'data-label="Step">([^<]+)<', kept)
    assert listed == ["300", "200"]
    assert "1 older one that the trainer has dropped" in text_of(dropped)
    assert ("step-200" in page, "step-100" in page) == (True, False)


def test_a_run_that_is_over_offers_to_go_on_with_twice_its_budget(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock
) -> None:
    """As a default that can be overwritten, in the form's own words."""
    with sessions.begin() as session:
        runs = [
            seeding.add_run(session, now=clock.now, name=status, status=status, budget=budget)
            for status, budget in (("succeeded", 60.0), ("running", 60.0), ("stopped", 1_234_567.0))
        ]
        for run in runs:
            seeding.add_checkpoint(session, run, step=100, compute=60.0, now=clock.now)
        ids = [run.id for run in runs]
    changes = [site.get(f"/runs/{id_}").text.partition('spellcheck="false">')[2].partition("</")[0] for id_ in ids]
    assert changes == ["budget.compute = 120", "", "budget.compute = 2469134"]
