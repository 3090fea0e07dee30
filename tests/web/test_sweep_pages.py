"""The list of sweeps, and a sweep's own page."""

from __future__ import annotations

import json
import re
from html import unescape

from fastapi.testclient import TestClient
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.runs.models import Run
from server.sweeps.models import Sweep, SweepComparison
from tests.conftest import Clock
from tests.web import seeding
from tests.web.conftest import Login, Seeded
from tests.web.reading import row_of, text_of


def test_the_sweep_page_sets_every_arm_against_the_control(site: TestClient, seeded: Seeded) -> None:
    html = site.get(f"/sweeps/{seeded.sweep}").text
    assert "Against control: ceiling down: no-fp32-logits (-0.16)." in text_of(html)
    assert "Best at 60 CPU-seconds: control (98 % sure). Dominated: no-fp32-logits." in text_of(html)
    arm = row_of(html, seeded.arm)
    assert "ceiling down ceiling -0.16 (-0.20 to -0.12) 0.92x (0.80 to 1.05) as fast to 0.49" in arm
    assert "not compared yet" in row_of(html, seeded.queued)
    series = json.loads(unescape(re.search(r'data-series="([^"]+)"', html)[1]))  # type: ignore[index]
    assert series == {seeded.control: None, seeded.arm: 0, seeded.queued: 1}
    assert html.count('<svg class="bar"') == 3
    assert '<g class="neutral">' in html
    assert "0.73 0.71 to 0.76 best: 98 %" in row_of(html, seeded.control)  # the forecast at the budget
    assert " dominated " in arm
    assert f'data-action="/v1/sweeps/{seeded.sweep}:stop"' in html


def test_the_heads_of_a_sweeps_table_say_what_their_figures_rest_on(site: TestClient, seeded: Seeded) -> None:
    heads = text_of(re.search(r"<thead>.*?</thead>", site.get(f"/sweeps/{seeded.sweep}").text, flags=re.S)[0])  # type: ignore[index]
    assert "Ceiling, 90 % interval with past runs, if any" in heads
    assert "Against the control, 90 % by own evaluations alone" in heads


def test_arms_beyond_the_colours_have_another_swatch(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock, seeded: Seeded
) -> None:
    with sessions.begin() as session:
        sweep = session.get_one(Sweep, seeded.sweep)
        for k in range(6):
            seeding.add_run(session, now=clock.now, name=f"arm-{k}", sweep=sweep, changes={"seed": k + 1})
    html = site.get(f"/sweeps/{seeded.sweep}").text
    assert html.count('<span class="swatch series-0"></span>') == 2  # as a key and in the table
    assert html.count('<span class="swatch series-0 again-1"></span>') == 2
    assert html.count("again-") == 4


def test_the_list_of_sweeps_counts_their_runs_and_names_the_best_arm(site: TestClient, seeded: Seeded) -> None:
    said = row_of(site.get("/sweeps").text, seeded.sweep)
    assert "loo-scalerl best: control (98 %) leave one out 3 3 0" in said


def test_a_sweep_that_is_over_asks_for_nothing_more(
    site: TestClient, sessions: sessionmaker[Session], seeded: Seeded
) -> None:
    with sessions.begin() as session:
        comparison = session.get_one(SweepComparison, seeded.sweep)
        assert comparison.result
        arm = comparison.result["arms"][0] | {"verdict": "undecided", "direction": None}
        arm["would_decide"] = "run to 29 CPU-seconds"
        said = "Against control: undecided: no-fp32-logits (run to 29 CPU-seconds)."
        comparison.result = comparison.result | {"arms": [arm], "sentence": said}
    assert "run to 29" in text_of(site.get(f"/sweeps/{seeded.sweep}").text)
    with sessions.begin() as session:
        for run in session.scalars(select(Run).where(Run.sweep_id == seeded.sweep)):
            run.status = "succeeded"
    html = site.get(f"/sweeps/{seeded.sweep}").text
    assert "All 3 runs are over. Best at 60 CPU-seconds: control (98 % sure). " in text_of(html)
    assert " Against control: undecided: no-fp32-logits. Forks with a larger budget" in text_of(html)
    assert "run to" not in text_of(html)
    assert "data-advice" not in html
    assert f'data-action="/v1/sweeps/{seeded.sweep}:stop"' not in html


def test_a_sweep_shows_its_tags_and_its_note_and_is_listed_by_them(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock, seeded: Seeded
) -> None:
    with sessions.begin() as session:
        sweep = session.get_one(Sweep, seeded.sweep)
        sweep.tags, sweep.note = ["paper"], "see https://example.com/a?b=1&c <b>\nsecond line"
    html = site.get(f"/sweeps/{seeded.sweep}").text
    link = '<a href="https://example.com/a?b=1&amp;c" rel="nofollow noopener noreferrer">'
    assert f"{link}https://example.com/a?b=1&amp;c</a> &lt;b&gt;\nsecond line" in html
    assert "paper" in row_of(site.get("/sweeps?tag=paper").text, seeded.sweep)
    assert "tagged paper Show all" in text_of(site.get("/sweeps?tag=paper").text)
    assert "No sweep has this tag." in site.get("/sweeps?tag=gone").text
    with sessions.begin() as session:
        session.get_one(Sweep, seeded.sweep).archived_at = clock.now
    link = '<a class="tag" href="/sweeps?archived=true&amp;tag=paper">'
    for path in (f"/sweeps/{seeded.sweep}", "/sweeps?archived=true&tag=paper"):
        assert link in site.get(path).text


def test_who_may_only_read_sees_labels_and_no_way_to_change_them(
    log_in: Login, sessions: sessionmaker[Session], seeded: Seeded
) -> None:
    reader = log_in("read")
    for path in (f"/sweeps/{seeded.sweep}", f"/runs/{seeded.control}"):
        assert 'id="labels"' not in reader.get(path).text
    with sessions.begin() as session:
        session.get_one(Sweep, seeded.sweep).tags = session.get_one(Run, seeded.control).tags = ["paper"]
    for path in (f"/sweeps/{seeded.sweep}", f"/runs/{seeded.control}"):
        html = reader.get(path).text
        assert ">paper</a>" in html
        assert "PATCH" not in html


def undecided(sessions: sessionmaker[Session], seeded: Seeded, clock: Clock, seeds_needed: int) -> None:
    """The comparison of the seeded sweep leaves its arm undecided."""
    with sessions.begin() as session:
        session.delete(session.get_one(SweepComparison, seeded.sweep))
        session.flush()
        open_ = {"verdict": "undecided", "direction": None, "seeds_needed": seeds_needed, "would_decide": "some seeds"}
        sweep = session.get_one(Sweep, seeded.sweep)
        seeding.add_comparison(session, sweep, "no-fp32-logits", now=clock.now, **open_)


def test_an_undecided_arm_has_a_button_that_queues_the_seeds_it_lacks(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock, seeded: Seeded
) -> None:
    undecided(sessions, seeded, clock, seeds_needed=3)
    html = site.get(f"/sweeps/{seeded.sweep}").text
    body = json.loads(unescape(re.search(r'/seeds" data-body="([^"]+)"', html)[1]))  # type: ignore[index]
    assert body == {"seeds": 2, "arms": ["no-fp32-logits"], "control_seeds": 2}
    asked = unescape(re.search(r'data-confirm="(Queue 4[^"]+)"', html)[1])  # type: ignore[index]
    assert asked.startswith("Queue 4 more runs, 2 of no-fp32-logits and 2 of the control, of 240 CPU-seconds in all?")
    with sessions.begin() as session:
        for arm in ("control", "no-fp32-logits"):
            for _ in range(2):
                seeding.add_run(session, now=clock.now, name=arm, sweep=session.get_one(Sweep, seeded.sweep))
        for run in session.scalars(select(Run).where(Run.sweep_id == seeded.sweep)):
            run.is_control = run.arm == "control"
    html = site.get(f"/sweeps/{seeded.sweep}").text
    assert "Queue them" not in row_of(html, seeded.arm)
    assert "to decide: its further seeds, which are on their way" in row_of(html, seeded.arm)


def test_seeds_of_the_control_alone_are_asked_for_where_it_lacks_them_alone(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock, seeded: Seeded
) -> None:
    undecided(sessions, seeded, clock, seeds_needed=2)
    with sessions.begin() as session:
        seeding.add_run(session, now=clock.now, name="no-fp32-logits", sweep=session.get_one(Sweep, seeded.sweep))
    (arm,) = site.get(f"/v1/sweeps/{seeded.sweep}").json()["comparison"]["arms"]
    assert arm["further"]["request"] == {"seeds": 1, "arms": ["control"], "control_seeds": None}
    assert (arm["further"]["runs"], arm["further"]["compute"]) == (1, 60)
    asked = {name: value for name, value in arm["further"]["request"].items() if value is not None}
    with sessions.begin() as session:
        for run in session.scalars(select(Run).where(Run.sweep_id == seeded.sweep)):
            run.status, run.finished_at = "failed", clock.now
            run.forecast_id = None
    (arm,) = site.get(f"/v1/sweeps/{seeded.sweep}").json()["comparison"]["arms"]
    assert arm["further"]["runs"] == 4  # none that failed without a forecast counts
    assert asked == {"seeds": 1, "arms": ["control"]}


def test_an_archived_sweep_is_in_a_list_of_its_own_and_is_not_extended(
    site: TestClient, sessions: sessionmaker[Session], clock: Clock, seeded: Seeded
) -> None:
    assert "Archived ones" not in site.get("/sweeps").text
    page = site.get(f"/sweeps/{seeded.sweep}").text
    assert ":archive" not in page  # it goes on
    with sessions.begin() as session:
        for run in session.scalars(select(Run).where(Run.sweep_id == seeded.sweep)):
            run.status, run.finished_at = "succeeded", clock.now
    assert f'data-action="/v1/sweeps/{seeded.sweep}:archive"' in site.get(f"/sweeps/{seeded.sweep}").text
    site.post(f"/v1/sweeps/{seeded.sweep}:archive", headers={"Sec-Fetch-Site": "same-origin"})
    undecided(sessions, seeded, clock, seeds_needed=3)
    (arm,) = site.get(f"/v1/sweeps/{seeded.sweep}").json()["comparison"]["arms"]
    assert (arm["seeds_needed"], arm["further"]) == (3, None)
    page = site.get(f"/sweeps/{seeded.sweep}").text
    assert "archived now" in text_of(page)
    assert f'data-action="/v1/sweeps/{seeded.sweep}:restore"' in page
    assert f'data-action="/v1/sweeps/{seeded.sweep}/' not in page
    listed = site.get("/sweeps").text
    assert seeded.sweep not in listed
    assert "Archived ones" in listed
    assert "loo-scalerl" in row_of(site.get("/sweeps?archived=true").text, seeded.sweep)
    assert f'value="{seeded.sweep}"' not in site.get("/runs").text  # nor is it to be chosen there
