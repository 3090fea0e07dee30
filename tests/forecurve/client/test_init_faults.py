"""`init` with what cannot be meant says field, value and way out; a disk that refuses does not keep training away."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forecurve.client import Api, ApiError, ClientError, attach, init, starting

from .conftest import FaultyService

CREATED = {"id": "run_1", "attempt": 1, "ingest_token": "for-reports"}
pytestmark = pytest.mark.usefixtures("fresh")


def making(created: Any) -> Callable[[str, dict[str, Any]], Any]:
    return lambda path, body: (201, created, {}) if path == "/v1/runs" else (200, {}, {})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"budget": float("nan")}, ["budget is nan", "must be a number"]),
        ({"budget": 10**400}, ["budget is 1000", "must be a number"]),
        ({"budget": "x"}, ["budget is 'x'", "must be a number"]),
        ({"budget": -1}, ["budget is -1", "must be a number"]),
        ({"url": "http://[bad"}, ["url is 'http://[bad'", "http://127.0.0.1:8400"]),
        ({"url": "nonsense"}, ["url is 'nonsense'", "does not begin with http://", "FORECURVE_URL"]),
        ({"url": "http://"}, ["url is 'http://'", "names no host"]),
        ({"url": "http://here:99999"}, ["url is 'http://here:99999'"]),
        ({"token": "secrét"}, ["token has 'é' as character 5 of 6", "FORECURVE_TOKEN"]),
        ({"token": "two words"}, ["token has ' ' as character 4 of 9"]),
        ({"name": 5}, ["name is 5", "must be text"]),
        ({"unit": "tokens"}, ["unit is 'tokens'", "GPU-hours, CPU-hours, GPU-seconds, CPU-seconds, steps"]),
        ({"unit": "tokens", "mode": "offline"}, ["unit is 'tokens'", "one of GPU-hours"]),
        ({"unit": "\ud800"}, ["unit is", "cannot be sent"]),
        ({"recipe": {"seed": float("nan")}}, ["recipe is", "cannot be sent"]),
        ({"task": 5}, ["task is 5", "must be text"]),
        ({"arm": "\ud800"}, ["arm is", "cannot be sent"]),
        ({"seed": 1.5}, ["seed is 1.5", "a whole number from 0 to 2147483647"]),
        ({"seed": -1}, ["seed is -1", "a whole number"]),
        ({"seed": float("nan")}, ["seed is nan", "leave it out"]),
        ({"seed": 2**31}, ["seed is 2147483648", "a whole number"]),
        ({"recipe": 5}, ["recipe is 5", "a preset's name or a mapping"]),
        ({"tags": "baseline"}, ["tags are 'baseline'", "a list of text"]),
        ({"tags": [5]}, ["a tag is 5", "must be text"]),
        ({"tags": [None]}, ["a tag is None", "1 to 64 characters"]),
        ({"tags": ["a,b"]}, ["a tag is 'a,b'", "no comma"]),
        ({"tags": [str(k) for k in range(21)]}, ["there are 21 tags", "20 at most"]),
        ({"tags": ["a\x1b[31m"], "mode": "offline"}, ["a tag is 'a\\x1b[31m'", "on one line"]),
        ({"tags": ["\u200b"], "mode": "offline"}, ["a tag is '\\u200b'", "1 to 64 characters"]),
        ({"note": "bell\x07", "mode": "offline"}, ["note has '\\x07'", "command to a terminal"]),
        ({"note": "x" * 4001, "mode": "offline"}, ["note has 4,001 characters", "4,000"]),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_made(
    service: FaultyService, tmp_path: Path, arguments: dict[str, Any], words: list[str]
) -> None:
    with pytest.raises(ClientError) as caught:
        init(**{"url": service.url, "token": "mine"} | arguments)

    for word in words:
        assert word in str(caught.value)
    assert service.requests == []
    assert list(tmp_path.iterdir()) == []


def test_a_token_is_never_shown() -> None:
    with pytest.raises(ClientError) as caught:
        Api("http://127.0.0.1:9", "fc_api_vérysecret")
    assert "secret" not in str(caught.value)


def test_white_space_around_a_url_and_a_token_is_left_out(service: FaultyService) -> None:
    service.answer = making(CREATED)
    run = init(url=f" {service.url}/\n", token=" mine\n")
    run.finish()

    assert run.id == "run_1"
    assert service.requests[0][2]["Authorization"] == "Bearer mine"


def test_names_that_cannot_be_sent_are_sent_with_what_can(service: FaultyService) -> None:
    service.answer = making(CREATED)
    init("caf\udce9\0", project="lab", config={"odd": {1, 2}, "nan": float("nan")}, url=service.url).finish()
    assert service.requests[0][1]["name"] == "lab/caf??"


OTHERS = [{"hello": "world"}, {"id": "../x", "ingest_token": "t"}, {"id": "run_1"}, ["a", "list"]]


@pytest.mark.parametrize("created", OTHERS)
def test_another_service_that_answers_is_named_as_such(service: FaultyService, tmp_path: Path, created: Any) -> None:
    service.answer = making(created)
    with pytest.raises(ApiError, match="is no Forecurve") as caught:
        init(url=service.url)
    assert caught.value.code == "not-forecurve"
    assert not (tmp_path / ".forecurve").exists(), "nothing is left of a run that did not begin"


def test_a_refused_run_leaves_no_folder(service: FaultyService, tmp_path: Path) -> None:
    service.answer = lambda path, body: (422, {"detail": "no such preset"}, {})
    with pytest.raises(ApiError, match="no such preset"):
        init(recipe="bananas", url=service.url)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".forecurve").mkdir()
    with pytest.raises(ApiError, match="no such preset"):
        init(recipe="bananas", url=service.url, directory=".forecurve/deep/er")
    assert list((tmp_path / ".forecurve").iterdir()) == [], "and nothing more than what was made for it goes"


def test_a_directory_that_cannot_be_written_is_replaced_by_a_temporary_one_before_the_run_is_made(
    service: FaultyService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(elsewhere))
    (tmp_path / "file").touch()
    service.answer = making(CREATED)

    run = init(url=service.url, directory=tmp_path / "file")
    run.log_evaluation(step=1, compute=1.0, reward=0.5)
    run.finish()

    assert run.id == "run_1"
    assert run.directory is not None
    assert elsewhere in run.directory.parents
    assert "cannot be written" in caplog.text
    assert str(elsewhere) in caplog.text
    assert len(service.bodies("outcome")) == 1


def test_without_any_directory_no_run_is_made(
    service: FaultyService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setattr("tempfile.tempdir", str(file))
    with pytest.raises(ClientError, match=r"directory is .* cannot be written.*mode='disabled'"):
        init(url=service.url, directory=file)
    assert service.requests == []


@pytest.mark.parametrize("status", [429, 503])
def test_a_service_that_takes_no_run_now_makes_the_run_offline(
    service: FaultyService, tmp_path: Path, caplog: pytest.LogCaptureFixture, status: int
) -> None:
    service.answer = lambda path, body: (status, {"detail": "not now"}, {})
    run = init(url=service.url)
    run.finish()
    assert run.id is None
    assert f"forecurve sync {tmp_path}/.forecurve/offline-" in caplog.text


def test_a_service_that_takes_the_request_and_never_answers_makes_the_run_offline(
    service: FaultyService, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    ended = threading.Event()
    service.answer = lambda path, body: (200, {"late": ended.wait(20)}, {})
    assert starting.ANSWER_S == 10.0
    monkeypatch.setattr(starting, "ANSWER_S", 0.1)
    began = time.monotonic()
    run = init(url=service.url)
    took = time.monotonic() - began
    ended.set()
    run.finish()
    assert run.id is None
    assert "is away (no answer from" in caplog.text
    assert took < 10.0, "it does not wait as long as the service does"


def test_a_script_that_changes_its_directory_goes_on_reporting(
    service: FaultyService, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.answer = making(CREATED)
    run = init(url=service.url)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    run.log_evaluation(step=1, compute=1.0, reward=0.5)
    run.finish()
    assert run.unsent == 0
    assert (tmp_path / ".forecurve" / "run_1" / "a1" / "settled.json").exists()


def test_attach_names_a_directory_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"URL": "http://127.0.0.1:9", "RUN": "run_1", "ATTEMPT": "1", "TOKEN": "t"}.items():
        monkeypatch.setenv(f"FORECURVE_{name}", value)
    (tmp_path / "file").touch()
    with pytest.raises(ClientError, match=r"directory is .*file.*cannot be written"):
        attach(tmp_path / "file")
