"""`forecurve sync` against the real API."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from forecurve.client import ApiError, init

from .conftest import Forecurve


def test_an_offline_run_is_synced_from_the_command_line(forecurve: Forecurve, service: str, tmp_path: Path) -> None:
    run = init("offline", mode="offline", directory=tmp_path / "kept")
    run.log_evaluation(step=0, compute=0.0, reward=0.5)
    run.finish()
    assert run.directory is not None

    synced = forecurve("sync", run.directory.parent, "--json").json

    assert (synced["sent"], synced["refused"]) == (2, 0)
    assert forecurve("run", "show", synced["run_id"], "--json").json["last_reward"] == 0.5
    assert forecurve("sync", tmp_path).code == 2
    nowhere = forecurve("sync", tmp_path / "nowhere")
    assert (nowhere.code, "nowhere is no folder; name one such as" in nowhere.err) == (2, True)


def test_a_run_that_still_goes_on_is_refused_for_now(forecurve: Forecurve, service: str, tmp_path: Path) -> None:
    run = init("goes on", mode="offline", directory=tmp_path / "kept")
    assert run.directory is not None
    told = forecurve("sync", run.directory.parent)
    assert (told.code, "is still being written by process" in told.err) == (1, True)
    run.finish()
    assert forecurve("sync", run.directory.parent).code == 0


def test_the_token_of_a_run_is_sent_to_its_own_service_unless_a_flag_names_another(
    forecurve: Forecurve, service: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = init("moved", mode="offline", directory=tmp_path / "kept")
    run.log_evaluation(step=0, compute=0.0, reward=0.5)
    run.finish()
    assert run.directory is not None
    folder = run.directory.parent
    with monkeypatch.context() as patch:
        patch.setattr("forecurve.client.transport.Transport.send", cut_off)
        assert forecurve("sync", folder).code == 1  # the run is made, and nothing of it sent

    nowhere = forecurve("sync", folder, "--url", "http://127.0.0.1:9")
    assert (nowhere.code, "http://127.0.0.1:9 did not take a report" in nowhere.err) == (1, True)
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        elsewhere.setblocking(False)
        monkeypatch.setenv("FORECURVE_URL", f"http://127.0.0.1:{elsewhere.getsockname()[1]}")
        assert forecurve("sync", folder, "--json").json["sent"] == 2
        with pytest.raises(BlockingIOError):
            elsewhere.accept()


def cut_off(*_: object) -> None:
    raise ApiError("gone", code="unreachable")
