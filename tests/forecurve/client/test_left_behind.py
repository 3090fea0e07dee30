"""What a run leaves in its folder, offline or through an outage: all that was logged, and `sync` sends it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from forecurve.cli import main
from forecurve.client import ClientError, Run, init, sync
from forecurve.client.outbox import Outbox
from forecurve.client.spool import Spool

from .conftest import FaultyService, kill, wait_for

CREATED = {"id": "run_1", "attempt": 1, "ingest_token": "for-reports"}
pytestmark = pytest.mark.usefixtures("fresh")


def answering(status: int) -> Callable[[str, dict[str, Any]], Any]:
    """A service that makes runs, and answers to reports with a status."""
    return lambda path, body: (201, CREATED, {}) if path == "/v1/runs" else (status, {"detail": "so it is"}, {})


def on_disk(run: Run) -> list[str]:
    """What the queue of a run has: the steps evaluated, and other kinds of entry."""
    assert run.directory is not None
    found = []
    for line in (run.directory / "queue.jsonl").read_text().splitlines():
        entry = json.loads(line)
        found += [f"step {each['step']}" for each in entry["body"].get("evaluations", ())]
        found += [] if entry["kind"] == "metrics" else [entry["kind"]]
    return found


def evaluate(run: Run, *steps: int) -> None:
    for step in steps:
        run.log_evaluation(step=step, compute=float(step), reward=0.5)


def test_what_is_logged_while_the_disk_is_busy_is_not_lost_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    run = init(mode="offline")
    busy, free, fsync = threading.Event(), threading.Event(), os.fsync

    def slowly(file: int) -> None:
        busy.set()
        assert free.wait(10)
        fsync(file)

    monkeypatch.setattr(os, "fsync", slowly)
    evaluate(run, 1)
    assert busy.wait(10)
    evaluate(run, 2)
    ending = threading.Thread(target=run.finish)
    ending.start()
    wait_for(lambda: run._outbox.sealer._closing.is_set())  # type: ignore[union-attr]
    free.set()
    ending.join(10)

    assert on_disk(run) == ["step 1", "step 2", "outcome"]


@pytest.mark.parametrize(("evaluations", "told"), [(1, "2 reports are not on disk"), (0, "1 report is not on disk")])
def test_what_no_disk_took_is_counted_when_the_run_ends(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, evaluations: int, told: str
) -> None:
    run = init(mode="offline")
    monkeypatch.setattr("forecurve.client.outbox.SEAL_S", 0.1)

    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        for step in range(1, evaluations + 1):
            evaluate(run, step)
        run.finish(deadline_s=0.1)

        assert run.unsent == evaluations + 1
        assert told in caplog.text
    wait_for(lambda: on_disk(run) == [*(f"step {step}" for step in range(1, evaluations + 1)), "outcome"])


def test_a_run_that_still_logs_is_not_synced_and_loses_nothing(service: FaultyService) -> None:
    service.answer = answering(200)
    run = init(mode="offline")
    assert run.directory is not None
    folder = run.directory.parent
    evaluate(run, 1)

    with pytest.raises(ClientError, match=f"still being written by process {os.getpid()}"):
        sync(folder, service.url, "token")
    assert service.requests == [], "no run was made"
    evaluate(run, 2)
    run.finish()

    synced = sync(folder, service.url, "token")
    steps = [each["step"] for body in service.bodies("metrics") for each in body["evaluations"]]
    assert steps == [1, 2]
    assert len(service.bodies("outcome")) == 1
    assert synced.refused == 0


@pytest.mark.parametrize("end", [lambda run: run.finish("failed", deadline_s=0.1), kill], ids=["finished", "killed"])
def test_what_an_online_run_could_not_send_is_sent_by_sync(service: FaultyService, end: Callable[[Run], None]) -> None:
    service.answer = answering(503)
    run = init(url=service.url, token="mine")
    assert run.directory is not None
    evaluate(run, 1)
    wait_for(lambda: service.bodies("metrics"))
    end(run)
    left = on_disk(run)
    service.requests.clear()

    service.answer = answering(200)
    synced = sync(run.directory.parent)

    assert (synced.run_id, synced.sent, synced.refused) == ("run_1", len(left), 0)
    assert left[0] == "step 1"
    reports = [headers for path, _, headers in service.requests if not path.endswith("heartbeat")]
    assert {headers["Authorization"] for headers in reports} == {"Bearer for-reports"}
    assert not any(path == "/v1/runs" for path, _, _ in service.requests)


def test_the_end_of_an_online_run_names_the_command_that_sends_what_is_left(
    service: FaultyService, tmp_path: Path, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    service.answer = answering(503)
    run = init(url=service.url, token="mine", directory="my runs")
    evaluate(run, 1)
    wait_for(lambda: service.bodies("metrics"))
    run.finish(deadline_s=0.1)
    assert "2 reports were not taken in time" in caplog.text
    folder = tmp_path / "my runs" / "run_1"
    assert f"forecurve sync '{folder}'" in caplog.text

    service.answer = answering(200)
    assert main(["sync", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "run_id": "run_1",
        "sent": 2,
        "refused": 0,
        "refusal": None,
        "kept_in": [],
    }


def test_a_sync_of_which_reports_were_refused_fails_and_says_so_once(
    service: FaultyService, capsys: pytest.CaptureFixture[str]
) -> None:
    run = init(mode="offline")
    evaluate(run, 1)
    run.finish()
    assert run.directory is not None
    folder = str(run.directory.parent)
    made, taken, refused = (201, CREATED, {}), (200, {}, {}), (409, {"code": "over", "detail": "it is over"}, {})
    service.answer = lambda path, _: made if path == "/v1/runs" else refused if path.endswith("/metrics") else taken

    code = main(["sync", folder, "--url", service.url, "--token", "t"])
    told = capsys.readouterr()
    assert (code, told.out) == (1, "run_1  1 reports sent, 1 refused\n")
    assert "Refused: it is over\n" in told.err
    assert f"not sent again: {folder}" in told.err

    assert main(["sync", folder, "--json"]) == 0, "nothing is left that could be refused"
    kept = json.loads(capsys.readouterr().out)["kept_in"]
    assert [Path(file).exists() for file in kept] == [True]


def test_the_token_that_is_kept_is_for_the_owners_eyes_only(service: FaultyService) -> None:
    service.answer = answering(200)
    run = init(url=service.url, token="mine")
    run.finish()
    assert run.directory is not None
    file = run.directory.parent / "run.json"

    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text())["attempts"][0]["ingest_token"] == "for-reports"
    assert "mine" not in file.read_text()


def test_a_folder_of_runs_is_none_of_what_git_adds(service: FaultyService, tmp_path: Path) -> None:
    service.answer = answering(200)
    (tmp_path / "mine").mkdir()
    for name in ("new", "mine"):
        init(url=service.url, token="mine", directory=name).finish()

    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    subprocess.run([*git, "add", "-A"], check=True)
    added = subprocess.run([*git, "ls-files"], check=True, capture_output=True, text=True).stdout
    assert "new/" not in added
    assert "mine/run_1/run.json" in added, "a folder that was there is left as it is"


def test_however_many_attempts_left_something_one_thread_hands_it_in_in_order(service: FaultyService) -> None:
    for step in range(1, 13):
        run = init(mode="offline", resume="auto")
        evaluate(run, step)
        run.finish("lost")
    numbers, hold = iter(range(1, 99)), threading.Event()

    def answer(path: str, body: dict[str, Any]) -> Any:
        if path == "/v1/runs" or path.endswith("/attempts"):
            return 201, CREATED | {"attempt": next(numbers)}, {}
        if path.endswith("/metrics"):
            hold.wait(5)
        return 200, {}, {}

    service.answer = answer
    before = set(threading.enumerate())
    run = init(url=service.url, token="mine", resume="auto")
    wait_for(lambda: service.bodies("metrics"))
    more = [thread.name for thread in set(threading.enumerate()) - before if thread.name.startswith("forecurve-")]
    hold.set()
    run.finish()

    assert more.count("forecurve-earlier") == 1
    assert len(more) <= 5, "as many as a run has that left nothing, and one"
    sent = [
        (body["attempt"], body["handed_in_by"], body["evaluations"][0]["step"]) for body in service.bodies("metrics")
    ]
    assert sent == [(step, 13, step) for step in range(1, 13)]
    assert run.unsent == 0


def test_while_the_service_hangs_what_is_logged_reaches_the_disk(
    service: FaultyService, caplog: pytest.LogCaptureFixture
) -> None:
    end = threading.Event()

    def answer(path: str, body: dict[str, Any]) -> Any:
        if path != "/v1/runs":
            end.wait(30)
        return answering(200)(path, body)

    service.answer = answer
    run = init(url=service.url, token="mine")
    evaluate(run, 1)
    wait_for(lambda: service.bodies("metrics"))
    evaluate(run, 2)
    wait_for(lambda: on_disk(run) == ["step 1", "step 2"])
    run.finish(deadline_s=0.1)

    assert on_disk(run) == ["step 1", "step 2", "outcome"]
    assert "3 reports were not taken in time" in caplog.text
    end.set()
    service.answer = answering(200)
    assert run.directory is not None
    assert sync(run.directory.parent).sent == 3, "although a thread still waits for its answer"


def test_what_is_pending_counts_as_unsent(tmp_path: Path) -> None:
    run = Run(None, 1, spool=Spool(tmp_path), flush_s=60.0)
    run.log({"loss": 1.0}, step=1)
    run.log({"loss": 0.5}, step=2)
    assert run.unsent == 1, "one batch"
    run.finish()
    assert run.unsent == 2


def test_sync_without_any_service_names_what_is_missing() -> None:
    run = init(mode="offline")
    run.finish()
    assert run.directory is not None
    with pytest.raises(ClientError, match="give --url"):
        sync(run.directory.parent)


def test_an_outbox_that_is_closed_lets_others_write_at_once(tmp_path: Path) -> None:
    run = Run(None, 1, spool=Spool(tmp_path))
    assert isinstance(run._outbox, Outbox)
    run.finish()
    Spool(tmp_path).close()
