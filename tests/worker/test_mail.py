"""Alerts by e-mail: by a real SMTP server, over TLS where there is a password, once, and again while it is away."""

from __future__ import annotations

import ssl
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from sqlalchemy.orm import Session, sessionmaker

from server.alerts.channels import send_test
from server.settings import Settings
from tests.certificates import self_signed
from tests.server.forecasts.seeds import START, make_channel
from tests.worker.mail_server import login_of, mail_server
from tests.worker.receiver import settings_of_delivery
from tests.worker.test_notify import TEXT, open_delivery, retries, row
from worker.mail import Letter, send_mail
from worker.notify import deliver

Sessions = sessionmaker[Session]
TO = "mailto:ops@lab.example"
LETTER = Letter("ALERT: über", "text\n.\nand ünd\n", "alr_1")


def settings_with(tmp_path: Path, url: str) -> Settings:
    found = settings_of_delivery(tmp_path)
    return found.model_copy(update={"smtp_url": SecretStr(url), "smtp_from": "forecurve@fc.example"})


def sent(url: str, **options: Any) -> Any:
    told = {"server": url, "sender": "forecurve@fc.example", "to": "ops@lab.example", "letter": LETTER}
    return send_mail(**(told | options), message_id="dlv_1", now=START)


def test_an_alert_arrives_as_a_letter_with_its_figures_and_a_link(sessions: Sessions, tmp_path: Path) -> None:
    delivery = open_delivery(sessions, TO, "email", name="no-cispo")
    with mail_server() as server:
        deliver(sessions, settings_with(tmp_path, server.url()), delivery, START)
    (letter,) = server.letters
    assert (letter["from"], letter["to"]) == ("forecurve@fc.example", "ops@lab.example")
    assert letter["subject"] == "ALERT: no-cispo fell below its forecast"
    assert letter["message-id"] == f"<{delivery}@fc.example>"
    assert letter["references"].startswith("<alr_")
    assert letter["auto-submitted"] == "auto-generated"
    text = letter.get_content()
    for words in (
        TEXT,
        "Pass rate: 0.31",
        "Forecast for now: 0.66 (90 %: 0.63 to 0.70)",
        "https://fc.example/runs/run_",
    ):
        assert words in text
    done = row(sessions, delivery)
    assert (done.status, done.tries, done.response_status) == ("delivered", 1, 250)


def test_a_name_of_a_run_makes_no_header(sessions: Sessions, tmp_path: Path) -> None:
    delivery = open_delivery(sessions, TO, "email", name="a\r\nBcc: all@lab.example")
    with mail_server() as server:
        deliver(sessions, settings_with(tmp_path, server.url()), delivery, START)
    (letter,) = server.letters
    assert letter["bcc"] is None
    assert letter["subject"] == "ALERT: a Bcc: all@lab.example fell below its forecast"
    assert [said for said in server.said if said.upper().startswith("RCPT")] == ["rcpt TO:<ops@lab.example>"]


def test_a_test_of_the_channel_says_that_it_is_one(sessions: Sessions, tmp_path: Path) -> None:
    with sessions.begin() as session:
        delivery = send_test(session, make_channel(session, TO, "email").id, actor="a person", now=START).id
    with mail_server() as server:
        deliver(sessions, settings_with(tmp_path, server.url()), delivery, START)
    assert server.letters[0]["subject"] == "Test message"
    assert "This is a test." in server.letters[0].get_content()


@pytest.mark.parametrize("answers", [{"RCPT": "450 later"}, {"END": "451 try again"}, {"MAIL": "421 busy"}])
def test_what_may_pass_is_tried_again_as_the_same_letter(
    sessions: Sessions, tmp_path: Path, answers: dict[str, str]
) -> None:
    delivery = open_delivery(sessions, TO, "email")
    with mail_server(answers=answers) as server:
        settings = settings_with(tmp_path, server.url())
        deliver(sessions, settings, delivery, START, jitter=lambda: 0.5)
        waits = row(sessions, delivery)
        assert (waits.status, waits.response_status) == ("pending", int(next(iter(answers.values()))[:3]))
        assert retries(sessions, delivery) == [START + timedelta(seconds=5)]
        server.answers.clear()
        deliver(sessions, settings, delivery, START + timedelta(seconds=5))
    assert row(sessions, delivery).status == "delivered"
    assert {letter["message-id"] for letter in server.letters} == {f"<{delivery}@fc.example>"}


@pytest.mark.parametrize("parting", ["451 not now", ""])
def test_a_letter_that_was_taken_is_delivered_however_they_part(parting: str) -> None:
    with mail_server(answers={"QUIT": parting}) as server:
        answer = sent(server.url())
    assert (answer.accepted, len(server.letters)) == (True, 1)


def test_a_mailbox_that_is_not_there_is_given_up_at_once(sessions: Sessions, tmp_path: Path) -> None:
    delivery = open_delivery(sessions, TO, "email")
    with mail_server(answers={"RCPT": "550 5.1.1 no such user"}) as server:
        deliver(sessions, settings_with(tmp_path, server.url()), delivery, START)
    done = row(sessions, delivery)
    assert (done.status, done.response_status, done.response_text) == ("failed", 550, "5.1.1 no such user")


def test_nobody_at_the_address_and_no_server_named_are_said(sessions: Sessions, tmp_path: Path) -> None:
    delivery = open_delivery(sessions, TO, "email")
    deliver(sessions, settings_with(tmp_path, "smtp://127.0.0.1:9"), delivery, START, jitter=lambda: 0.5)
    away = row(sessions, delivery)
    assert (away.status, away.response_status) == ("pending", None)
    assert away.response_text.startswith("No answer: ConnectionRefusedError")
    deliver(sessions, settings_with(tmp_path, ""), delivery, START + timedelta(seconds=5))
    assert "FORECURVE_SMTP_URL of the worker names no mail server" in row(sessions, delivery).response_text


def test_a_password_goes_over_tls_alone() -> None:
    with mail_server() as server:
        answer = sent(server.url(login="forecurve:s%40fe@"))
    assert (answer.accepted, answer.code) == (False, None)
    assert "offers no STARTTLS, and no password is sent in the clear" in answer.text
    assert not any(said.startswith("AUTH") for said in server.said)


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
def test_a_login_and_a_letter_over_tls(scheme: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trusts, shows = self_signed("localhost", tmp_path)
    monkeypatch.setattr(ssl, "create_default_context", lambda: trusts)
    secured = {"tls": shows} if scheme == "smtps" else {"starttls": shows}
    with mail_server(**secured) as server:
        answer = sent(server.url(scheme, login="forecurve:s%40fe@", host="localhost"))
    assert answer.accepted, answer.text
    assert server.secure == [True]
    assert login_of(server) == "forecurve:s@fe"
    assert server.letters[0].get_content() == LETTER.text
    assert server.letters[0]["subject"] == "ALERT: über"


@pytest.mark.parametrize("scheme", ["smtp", "smtps"])
def test_a_certificate_that_is_not_trusted_gets_no_letter(scheme: str, tmp_path: Path) -> None:
    _, shows = self_signed("localhost", tmp_path)
    secured = {"tls": shows} if scheme == "smtps" else {"starttls": shows}
    with mail_server(**secured) as server:
        answer = sent(server.url(scheme, host="localhost"))
    assert (answer.accepted, answer.code) == (False, None)
    assert "certificate" in answer.text
    assert server.letters == []


def test_a_refused_login_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its operator may mend it meanwhile."""
    trusts, shows = self_signed("localhost", tmp_path)
    monkeypatch.setattr(ssl, "create_default_context", lambda: trusts)
    with mail_server(tls=shows, answers={"AUTH": "535 5.7.8 no"}) as server:
        answer = sent(server.url("smtps", login="forecurve:wrong@", host="localhost"))
    assert (answer.accepted, answer.code, answer.text, answer.refused_for_good) == (False, 535, "5.7.8 no", False)
