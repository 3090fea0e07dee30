"""A service that says to come later: whoever stands by waits a little, where the same may be sent twice, or is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest

from forecurve.cli import main
from forecurve.client import Api, ApiError, init, patience, starting, sync
from forecurve.client.patience import PATIENCE_S

from .conftest import FaultyService

pytestmark = pytest.mark.usefixtures("fresh")
RUN = {"id": "run_00000000000000000001", "attempt": 1, "ingest_token": "for-reports", "recipe": {}}


def refusing(times: int, after: str | None, status: int = 429) -> Callable[[str, dict[str, Any]], Any]:
    """A service that says so many times to come later, and then answers."""
    left = [times]

    def answer(path: str, body: dict[str, Any]) -> Any:
        left[0] -= 1
        headers = {} if after is None else {"Retry-After": after}
        return (200, RUN, {}) if left[0] < 0 else (status, {"detail": "too many guesses."}, headers)

    return answer


def test_a_call_that_may_be_repeated_waits_as_it_is_told(
    service: FaultyService, caplog: pytest.LogCaptureFixture
) -> None:
    with Api(service.url, "t", patience_s=PATIENCE_S) as api:
        for call in (
            lambda: api.run("run_1"),
            lambda: api.create_run({}, idempotency_key="mine"),
            lambda: api.plan_sweep({}),
        ):
            service.requests.clear()
            service.answer = refusing(2, "0")
            assert call() == RUN
            assert len(service.requests) == 3
    assert "forecurve: too many guesses; asking again in 0 s" in caplog.text


@pytest.mark.parametrize(
    ("after", "asked"),
    [
        ("60", 1),
        (None, 1),
        ("soon", 1),
        ("Mon, 01 Jan 2001 00:00:00 -0000", 1),
        ("Mon, 01 Jan 2001 00:00:00 +99999999999999", 1),
        ("0", 1 + int(PATIENCE_S)),
    ],
)
def test_patience_ends(service: FaultyService, after: str | None, asked: int) -> None:
    service.answer = refusing(1000, after)
    with Api(service.url, "t", patience_s=PATIENCE_S) as api, pytest.raises(ApiError) as caught:
        api.run("run_1")
    assert caught.value.status == 429
    assert len(service.requests) == asked


def test_what_must_not_be_sent_twice_is_not_and_scripts_are_told_at_once(service: FaultyService) -> None:
    service.answer = refusing(1000, "0")
    with Api(service.url, "t", patience_s=PATIENCE_S) as api, pytest.raises(ApiError):
        api.test_channel("chn_1")
    with Api(service.url, "t") as api, pytest.raises(ApiError) as caught:
        api.run("run_1")
    assert caught.value.retry_after_s == 0
    assert len(service.requests) == 2


def test_the_command_line_waits_too_or_says_how_long(
    service: FaultyService, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["run", "recipe", RUN["id"], "--url", service.url, "--token", "t", "--json"]
    service.answer = refusing(1, "0")
    assert main(asked) == 0
    capsys.readouterr()

    service.answer = refusing(1000, "41.2")
    assert main(asked) == 1
    told = json.loads(capsys.readouterr().err)
    assert (told["error"], told["status"]) == ("too many guesses.; try again in 42 s", 429)


@pytest.mark.parametrize("status", [429, 503])
def test_reports_are_handed_in_when_the_service_wants_them(service: FaultyService, status: int) -> None:
    run = init(mode="offline")
    run.log_evaluation(step=1, compute=1.0, reward=0.5)
    run.finish()
    assert run.directory is not None
    folder = run.directory.parent

    service.answer = refusing(1, "120", status)
    with pytest.raises(ApiError):
        sync(folder, service.url, "t")
    service.answer = refusing(0, None)
    assert sync(folder, service.url, "t").sent == 2


def test_a_run_that_begins_while_the_service_is_restarted_is_online(
    service: FaultyService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "AWAY_S", 60.0)
    monkeypatch.setattr(patience, "backoff_s", lambda tries, most: 0.0)
    service.answer = refusing(3, None, 503)
    run = init(url=service.url, token="t")
    run.finish()
    assert run.id == RUN["id"]
    asked = [headers["Idempotency-Key"] for path, _, headers in service.requests if path == "/v1/runs"]
    assert len(asked) == 4
    assert len(set(asked)) == 1  # one run, whichever of them was taken


def test_a_service_that_is_slow_to_answer_is_said_to_be_waited_for(
    service: FaultyService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    said = threading.Event()
    monkeypatch.setattr(caplog.handler, "emit", lambda record: said.set() if "waiting for" in record.msg else None)
    monkeypatch.setattr(starting, "SAY_AFTER_S", 0.0)
    service.answer = lambda path, body: (200 if said.wait(5) else 503, RUN, {})
    run = init(url=service.url, token="t")
    run.finish()
    assert said.is_set()
    assert run.id == RUN["id"]


def test_a_service_that_answers_is_not_said_to_be_waited_for(
    service: FaultyService, caplog: pytest.LogCaptureFixture
) -> None:
    service.answer = lambda path, body: (200, RUN, {})
    init(url=service.url, token="t").finish()
    assert "waiting for" not in caplog.text


def test_what_is_no_forecurve_is_not_waited_for(service: FaultyService, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "AWAY_S", 60.0)
    with pytest.raises(ApiError, match="it is no Forecurve"):
        init(url=service.url, token="t")
    assert len(service.requests) == 1


def test_a_sync_waits_between_reports(service: FaultyService) -> None:
    run = init(mode="offline")
    run.log_evaluation(step=1, compute=1.0, reward=0.5)
    run.finish()
    assert run.directory is not None
    later = refusing(2, "0", 503)
    service.answer = lambda path, body: (200, RUN, {}) if path == "/v1/runs" else later(path, body)

    assert sync(run.directory.parent, service.url, "t").sent == 2

    away = refusing(1000, "77", 503)
    run = init(mode="offline")
    run.finish()
    assert run.directory is not None
    service.answer = lambda path, body: (200, RUN, {}) if path == "/v1/runs" else away(path, body)
    with pytest.raises(ApiError, match="try again in 77 s: forecurve sync"):
        sync(run.directory.parent, service.url, "t")
