"""Channels that want to hear it are told of advice, and that a run or a sweep is over; each once, in words."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy import select, update
from sqlalchemy.orm import Session, sessionmaker

from server.alerts.models import Delivery
from server.alerts.news import LAST_LOOK
from server.events.models import Event, OutboxMessage
from server.forecasts.models import Recommendation
from server.forecasts.recommendations import dismiss, recommend
from server.runs.lifecycle import transition
from server.runs.models import Run
from server.runs.service import lock_run
from server.runs.states import Status
from server.settings import Settings
from server.sweeps.models import Sweep
from tests.at_once import at_once
from tests.server.forecasts.seeds import START, make_channel, make_forecast, make_run, make_sweep
from tests.server.reporting import move
from tests.worker.mail_server import mail_server
from tests.worker.receiver import receiving, settings_of_delivery
from worker.apply import apply
from worker.case import Decision
from worker.notify import deliver
from worker.sweep_up import tidy

Sessions = sessionmaker[Session]
LATER = START + LAST_LOOK


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return settings_of_delivery(tmp_path)


def hear(sessions: Sessions, *hears: str, url: str = "https://hook.example/x", kind: str = "webhook") -> str:
    """A channel that hears of these."""
    with sessions.begin() as session:
        return make_channel(session, url, kind, hears=list(hears)).id


def running(sessions: Sessions, names: Sequence[str] = ("mine",), sweep: bool = False) -> list[str]:
    with sessions.begin() as session:
        of = {"sweep_id": make_sweep(session).id} if sweep else {"arm": None}
        return [make_run(session, name, last_reward=0.61, last_compute=90.0, **of).id for name in names]


def advise(sessions: Sessions, run_id: str, action: str, gain: float = 0.002) -> None:
    with sessions.begin() as session:
        run = lock_run(session, run_id)
        forecast = make_forecast(session, run)
        numbers = {"expected_gain": gain, "expected_gain_beyond": gain, "delta": 0.01}
        recommend(session, run, forecast, action=action, reason=f"It says {action}.", numbers=numbers, now=START)


def told(sessions: Sessions) -> list[tuple[str, str | None]]:
    """Events of all deliveries, each with what it is about."""
    with sessions() as session:
        rows = session.scalars(select(Delivery).order_by(Delivery.id)).all()
        return [(row.event, row.alert_id or row.recommendation_id or row.run_id or row.sweep_id) for row in rows]


def arrived(sessions: Sessions) -> None:
    """All that is on its way."""
    with sessions.begin() as session:
        session.execute(update(Delivery).values(status="delivered"))


def only(sessions: Sessions) -> str:
    with sessions() as session:
        return session.scalars(select(Delivery.id)).one()


def test_advice_to_stop_or_to_scale_is_told_to_who_hears_of_advice(sessions: Sessions) -> None:
    (run,) = running(sessions)
    hear(sessions, "alerts")
    hear(sessions, "alerts", "advice")
    for action in ("continue", "undecided", "stop", "stop", "scale"):
        advise(sessions, run, action)
        arrived(sessions)
    with sessions() as session:
        said = session.scalars(select(Recommendation).order_by(Recommendation.id)).all()
        assert [one.action for one in said] == ["continue", "undecided", "stop", "scale"]
    assert told(sessions) == [("advice", one.id) for one in said[2:]]


def test_advice_that_a_policy_follows_by_itself_is_nobodys_to_answer(sessions: Sessions) -> None:
    hear(sessions, "advice")
    with sessions.begin() as session:
        run = make_run(session, sweep_id=make_sweep(session, policy="auto").id).id
    advise(sessions, run, "stop")
    assert told(sessions) == []


@pytest.mark.parametrize(("wanted", "policy"), [("stop", "advise"), ("cancel", "advise"), ("pause", "auto")])
def test_that_a_run_should_stop_is_not_told_where_it_will_anyhow(sessions: Sessions, wanted: str, policy: str) -> None:
    hear(sessions, "advice")
    with sessions.begin() as session:
        run = make_run(session, sweep_id=make_sweep(session, policy=policy).id, desired_state=wanted).id
    advise(sessions, run, "stop")
    assert told(sessions) == []
    advise(sessions, run, "scale")
    assert [event for event, _ in told(sessions)] == ["advice"]


def test_advice_that_stands_is_told_once_though_its_number_moves(sessions: Sessions, settings: Settings) -> None:
    (run,) = running(sessions)
    with receiving() as receiver:
        hear(sessions, "advice", url=receiver.url)
        for gain in (0.008, 0.004):  # the second finds the first on its way still
            advise(sessions, run, "stop", gain)
        deliver(sessions, settings, only(sessions), START)
        advise(sessions, run, "stop", 0.001)
    said = json.loads(receiver.got[0][2])["data"]["recommendation"]
    assert (said["numbers"]["expected_gain"], said["status"]) == (0.004, "open")
    assert [event for event, _ in told(sessions)] == ["advice"]
    advise(sessions, run, "continue")
    advise(sessions, run, "stop")
    assert [event for event, _ in told(sessions)] == ["advice"] * 2


def test_advice_that_goes_to_and_fro_is_told_when_its_number_has_moved(sessions: Sessions) -> None:
    (run,) = running(sessions)
    hear(sessions, "advice")
    for gain in (0.008, 0.0085, 0.002):
        advise(sessions, run, "stop", gain)
        arrived(sessions)
        advise(sessions, run, "continue", 0.02)
    with sessions() as session:
        said = session.scalars(select(Recommendation).order_by(Recommendation.id)).all()
        of_stops = [one.id for one in said if one.action == "stop"]
    assert told(sessions) == [("advice", of_stops[0]), ("advice", of_stops[2])]


@pytest.mark.parametrize("answer", ["newer", "dismissed"])
def test_advice_that_is_open_no_more_is_not_told(sessions: Sessions, answer: str) -> None:
    (run,) = running(sessions)
    hear(sessions, "advice")
    hear(sessions, "advice")
    advise(sessions, run, "stop")
    with sessions.begin() as session:
        tried, _ = session.scalars(select(Delivery))
        tried.tries = 1  # it may have arrived
        left = tried.id
    if answer == "newer":
        advise(sessions, run, "continue")
    else:
        with sessions.begin() as session:
            advice = session.scalars(select(Recommendation.id)).one()
            dismiss(session, advice, actor="t", reason="not yet", now=START)
    with sessions() as session:
        (delivery,) = session.scalars(select(Delivery))
        assert (delivery.id, delivery.status) == (left, "failed")
        assert "open no more" in str(delivery.response_text)


def test_a_run_of_its_own_that_is_over_is_told_after_a_last_look(sessions: Sessions, settings: Settings) -> None:
    (run,) = running(sessions)
    with receiving() as receiver:
        hear(sessions, "ends", url=receiver.url)
        move(sessions, run, Status.SUCCEEDED, START)
        assert told(sessions) == [("run.over", run)]
        with sessions() as session:
            rung = session.scalars(select(OutboxMessage.not_before).where(OutboxMessage.task.endswith(".deliver")))
            assert rung.all() == [LATER]
        deliver(sessions, settings, only(sessions), START + timedelta(seconds=1))
        assert receiver.got == []
        deliver(sessions, settings, only(sessions), LATER)
    body = json.loads(receiver.got[0][2])
    assert (body["type"], body["data"]["run"]["status"]) == ("run.over", "succeeded")
    assert (body["data"]["pass_rate"], body["data"]["url"]) == (0.61, f"https://fc.example/runs/{run}")
    with sessions() as session:
        assert session.get_one(Delivery, only(sessions)).status == "delivered"
        event = session.scalars(select(Event).where(Event.kind == "delivery")).one()
        assert (event.run_id, event.to_state) == (run, "delivered")


def test_that_a_run_failed_is_told_once(sessions: Sessions) -> None:
    (run,) = running(sessions)
    hear(sessions, "alerts", "ends")
    hear(sessions, "ends")
    move(sessions, run, Status.FAILED, START, reason="no space left on device")
    assert told(sessions) == [("run.over", run)]  # who hears alerts has it from there


def test_that_a_run_failed_which_was_to_end_is_told_to_all_who_hear_of_ends(sessions: Sessions) -> None:
    hear(sessions, "alerts", "ends")
    with sessions.begin() as session:
        run = make_run(session, "mine", arm=None, desired_state="stop")
        apply(session, run, None, Decision((Status.FAILED,), reason="it crashed"), None, START)
    assert [event for event, _ in told(sessions)] == ["run.over"]  # nobody is alarmed of it


def test_a_sweep_is_over_with_its_last_run_and_again_when_it_was_extended(sessions: Sessions) -> None:
    runs = running(sessions, ["control", "no-cispo"], sweep=True)
    hear(sessions, "ends")
    move(sessions, runs[0], Status.SUCCEEDED, START)
    assert told(sessions) == []
    move(sessions, runs[1], Status.FAILED, START)
    with sessions.begin() as session:
        sweep = session.get_one(Run, runs[0]).sweep_id
        further = make_run(session, "no-cispo s1", sweep_id=sweep).id
    assert told(sessions) == [("sweep.over", sweep)]
    move(sessions, further, Status.SUCCEEDED, START)
    assert told(sessions) == [("sweep.over", sweep)] * 2


def test_of_the_last_runs_that_end_at_once_one_tells(sessions: Sessions) -> None:
    runs = running(sessions, [f"arm-{k}" for k in range(6)], sweep=True)
    hear(sessions, "ends")
    left = list(runs)

    def end_one() -> None:
        with sessions.begin() as session:
            transition(session, lock_run(session, left.pop()), Status.SUCCEEDED, actor="t", reason=None, now=START)

    at_once(len(runs), end_one)
    assert [event for event, _ in told(sessions)] == ["sweep.over"]


def test_slack_and_mailboxes_are_told_in_words(
    sessions: Sessions, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run,) = running(sessions, ["<b>&mine"])
    with receiving() as receiver:
        hear(sessions, "advice", url=receiver.url, kind="slack")
        advise(sessions, run, "stop")
        deliver(sessions, settings, only(sessions), START)
    message = json.loads(receiver.got[0][2])
    header, section, figures, actions, _ = message["blocks"]
    assert header["text"]["text"] == "Advice: stop <b>&mine"  # plain text, which Slack does not read
    assert message["text"] == "Advice: stop &lt;b&gt;&amp;mine"
    assert section["text"]["text"] == "It says stop."
    assert "*Pass rate*\n0.61" in [field["text"] for field in figures["fields"]]
    assert actions["elements"][0]["url"] == f"https://fc.example/runs/{run}"


def test_a_letter_says_how_a_sweep_ended(sessions: Sessions, settings: Settings) -> None:
    runs = running(sessions, ["control", "no-cispo"], sweep=True)
    with mail_server() as server:
        settings = settings.model_copy(update={"smtp_url": SecretStr(server.url())})
        hear(sessions, "ends", url="mailto:ops@lab.example", kind="email")
        for run in runs:
            move(sessions, run, Status.SUCCEEDED, START)
        deliver(sessions, settings, only(sessions), LATER)
    with sessions() as session:
        sweep = session.scalars(select(Sweep)).one()
    (letter,) = server.letters
    assert letter["subject"] == "Sweep leave-one-out is over"
    text = letter.get_content()
    assert "Both runs are over." in text
    assert "Runs: 2 succeeded" in text
    assert f"https://fc.example/sweeps/{sweep.id}" in text


def test_news_are_kept_when_tests_of_channels_are_tidied_away(sessions: Sessions) -> None:
    (run,) = running(sessions)
    hear(sessions, "ends")
    move(sessions, run, Status.SUCCEEDED, START)
    with sessions.begin() as session:
        session.get_one(Delivery, only(sessions)).status = "delivered"
        tidy(session, START + timedelta(days=400))
    assert told(sessions) == [("run.over", run)]


def test_what_a_delivery_is_about_and_what_channels_hear_is_in_the_api(
    sessions: Sessions, api: Any, headers: dict[str, dict[str, str]]
) -> None:
    body = {"name": "x", "kind": "webhook", "url": "https://hook.example/y"}
    made = api.post("/v1/channels", json=body | {"hears": ["ends", "advice", "ends"]}, headers=headers["admin"]).json()
    assert made["hears"] == ["advice", "ends"]
    another = body | {"name": "y"}
    assert api.post("/v1/channels", json=another, headers=headers["admin"]).json()["hears"] == ["alerts"]
    for hears in ([], ["everything"], None):
        assert api.post("/v1/channels", json=body | {"hears": hears}, headers=headers["admin"]).status_code == 422
    (run,) = running(sessions)
    move(sessions, run, Status.STOPPED, START)
    (delivery,) = api.get("/v1/deliveries", headers=headers["read"]).json()["items"]
    assert (delivery["event"], delivery["run_id"], delivery["level"]) == ("run.over", run, None)
