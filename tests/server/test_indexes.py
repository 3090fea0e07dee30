"""What is asked at every tick, refit or page finds its rows by an index, however many there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event, select, text
from sqlalchemy.orm import Session

from server.alerts.news import tell_end_no_more
from server.alerts.service import list_alerts
from server.forecasts.recommendations import recommend, withdraw_advice
from server.forecasts.sweep_curves import sweep_curves
from server.forecasts.track_record import _waiting
from server.runs.lifecycle import transition
from server.runs.models import Run
from server.runs.states import Status
from server.settings import Settings
from tests.server.forecasts.seeds import START, learned, make_forecast, make_run, make_sweep
from web.reads import events_of
from worker.reconcile import _orphans
from worker.sweep_up import find_due, tidy

LONG_AGO = "timestamptz '2026-01-01'"
FILL = f"""
    INSERT INTO recipes (id, name, digest, body)
      SELECT 'rec_' || i, 'r', 'd' || i, jsonb_build_object('task', jsonb_build_object('name', i))
      FROM generate_series(1, 5000) i;
    INSERT INTO runs (id, name, recipe_id, executor, compute_unit, budget_compute, last_compute, desired_state, status,
                      version, attempt, is_control, changes)
      SELECT 'run_' || i, 'r', 'rec_' || i, 'ray', 'GPU-hours', 100, 100, 'run', 'succeeded', 1, 1, false, '{{}}'
      FROM generate_series(1, 5000) i;
    INSERT INTO attempts (id, run_id, number, progress, created_at)
      SELECT 'att_' || i, 'run_' || i, 1, '{{}}', {LONG_AGO} - i * interval '1 hour' FROM generate_series(1, 5000) i;
    INSERT INTO tokens (id, kind, name, prefix, hash, scopes, run_id, attempt)
      SELECT 'tok_' || i, 'ingest', 't', 'p', 'h' || i, '{{ingest}}', 'run_' || i, 1 FROM generate_series(1, 5000) i;
    INSERT INTO alerts (id, run_id, kind, level, title, text, evidence, resolved_at)
      SELECT 'alr_' || i, 'run_' || i, 'run_failed', 'ALERT', 't', 't', '{{}}', {LONG_AGO}
      FROM generate_series(1, 5000) i;
    INSERT INTO channels (id, name, kind, url, secret, min_level, enabled)
      VALUES ('chn_1', 'c', 'webhook', 'https://x', 's', 'ALERT', true);
    INSERT INTO deliveries (id, alert_id, channel_id, level, status, tries, not_before)
      SELECT 'dlv_' || i, 'alr_' || i, 'chn_1', 'ALERT', 'delivered', 1, {LONG_AGO} FROM generate_series(1, 5000) i;
    INSERT INTO forecasts (id, run_id, at_compute, at_step, points, unit, summary, band, state, sentence, seconds)
      SELECT 'fct_' || i, 'run_' || i, 50, 1, 9, 'GPU-hours', '{{}}', '{{}}', '{{}}', 's', 0
      FROM generate_series(1, 5000) i;
    INSERT INTO recommendations (id, run_id, forecast_id, action, reason, numbers, status)
      SELECT 'adv_' || i, 'run_' || i, 'fct_' || i, 'continue', 'r', '{{}}', 'superseded'
      FROM generate_series(1, 5000) i;
    INSERT INTO outbox (task, args, published_at)
      SELECT 't', '[]', {LONG_AGO} + interval '2 days' - i * interval '1 second' FROM generate_series(1, 5000) i;
    ANALYZE;
"""

EVALUATED = """
    INSERT INTO evaluations (run_id, attempt, step, compute, reward, details, time)
      SELECT id, 1, step, step, 0.5, '{}', now() FROM runs, generate_series(1, 8) step;
    ANALYZE evaluations;
"""

HAPPENED = """
    INSERT INTO events (kind, run_id, actor, evidence)
      SELECT 'run.status', 'run_' || i, 'trainer', '{}' FROM generate_series(1, 500) i;
    INSERT INTO events (kind, run_id, actor, evidence)
      SELECT 'evaluation', 'run_77', 'trainer', '{}' FROM generate_series(1, 5000);
    INSERT INTO events (kind, run_id, actor, evidence)
      SELECT 'evaluation', 'run_' || i, 'trainer', '{}' FROM generate_series(1, 5000) i, generate_series(1, 5);
    ANALYZE events;
"""

SETTINGS = Settings(DATABASE_URL="postgresql://nowhere/none")
Plans = Callable[[Callable[[], Any]], str]


@pytest.fixture
def plans(session: Session) -> Plans:
    """Plans of all statements that a call sends, on tables of 5000 rows."""
    session.execute(text(FILL))
    connection = session.connection()
    sent: list[tuple[str, Any]] = []

    def keep(_connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        sent.append((statement, parameters))

    def of(call: Callable[[], Any]) -> str:
        sent.clear()
        event.listen(connection, "before_cursor_execute", keep)
        call()
        event.remove(connection, "before_cursor_execute", keep)
        planned = [one for one in sent if one[0].startswith(("SELECT", "UPDATE", "DELETE", "WITH"))]
        explained = (connection.exec_driver_sql(f"EXPLAIN {statement}", given) for statement, given in planned)
        return "\n".join(str(row[0]) for result in explained for row in result)

    return of


def test_what_is_due_or_old_is_found_by_an_index(session: Session, plans: Plans) -> None:
    due = plans(lambda: find_due(session, SETTINGS, START))
    old = plans(lambda: tidy(session, START))
    orphans = plans(lambda: _orphans(session, START))
    assert "Seq Scan on deliveries" not in due
    assert "Seq Scan on outbox" not in old
    assert "Seq Scan on attempts" not in orphans


def test_what_a_run_has_is_found_by_an_index(session: Session, plans: Plans) -> None:
    run = session.get_one(Run, "run_77")
    forecast = make_forecast(session, run)
    advised = plans(lambda: recommend(session, run, forecast, action="scale", reason="r", numbers={}, now=START))
    untold = plans(lambda: (withdraw_advice(session, run, START), tell_end_no_more(session, "swp_1")))
    alerts = plans(lambda: list_alerts(session, run_id=run.id, is_open=None, cursor=None, limit=20))
    live = make_run(session, "live")
    ended = plans(lambda: transition(session, live, Status.STOPPED, actor="test", reason=None, now=START))
    assert "Seq Scan on recommendations" not in advised
    assert "on deliveries" in untold
    assert "Seq Scan on deliveries" not in untold
    assert "Seq Scan on alerts" not in alerts
    assert "Seq Scan on tokens" not in ended


def test_forecasts_that_wait_are_counted_by_an_index(session: Session, plans: Plans) -> None:
    session.execute(text("UPDATE runs SET status = 'running' WHERE id ~ '^run_[12]..$'"))
    session.execute(text("ANALYZE runs"))
    counted = plans(lambda: _waiting(session, None))
    assert _waiting(session, None) == 200
    assert "on forecasts" in counted
    assert "Seq Scan on forecasts" not in counted


def test_runs_with_the_same_task_are_found_by_an_index(session: Session, plans: Plans) -> None:
    run = make_run(session, recipe_id="rec_77", last_compute=50.0)
    assert session.scalars(select(Run.id).where(Run.recipe_id == "rec_77", Run.id != run.id)).all() == ["run_77"]
    found = plans(lambda: learned(session, run))
    assert "Seq Scan on recipes" not in found
    assert "Seq Scan on runs" not in found


def test_runs_of_a_task_that_all_have_are_found_without_reading_every_recipe(session: Session, plans: Plans) -> None:
    session.execute(text('UPDATE recipes SET body = \'{"task": {"name": "maths"}}\''))
    session.execute(text("ANALYZE recipes"))
    run = make_run(session, recipe_id="rec_77", last_compute=50.0, sweep_id=make_sweep(session).id)
    found = plans(lambda: learned(session, run))
    assert "Seq Scan on recipes" not in found
    assert "Bitmap Heap Scan on recipes" not in found


def test_the_field_of_a_sweep_is_counted_without_reading_what_other_runs_were_evaluated_to(
    session: Session, plans: Plans
) -> None:
    session.execute(text(EVALUATED))
    sweep = make_sweep(session)
    session.execute(text(f"UPDATE runs SET sweep_id = '{sweep.id}' WHERE id ~ '^run_[12]..$'"))
    session.execute(text("ANALYZE runs"))
    found = plans(lambda: sweep_curves(session, sweep.id, []))
    assert "Scan on evaluations" in found
    assert "Seq Scan on evaluations" not in found


def test_the_events_that_a_runs_page_lists_are_found_behind_thousands_of_its_evaluations(
    session: Session, plans: Plans
) -> None:
    session.execute(text(HAPPENED))
    found = plans(lambda: events_of(session, "run_77", 40))
    assert "using ix_events_off_the_chart" in found
