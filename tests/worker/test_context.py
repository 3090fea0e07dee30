"""What a worker reaches from where it is: the API as trainers do, and a cluster behind certificates of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from server.settings import Settings
from tests.certificates import self_signed
from tests.worker.harness import TOKEN
from tests.worker.receiver import receiving
from worker.context import Context, make_context
from worker.executors.base import State


def context_at(url: str, folder: Path) -> Context:
    """Of a service whose API and whose cluster are both at `url`."""
    settings = Settings(
        DATABASE_URL="postgresql://unused", data_dir=folder, trainer_url=url, ray_url=url, ray_token=TOKEN
    )
    return make_context(settings, lambda *_, **__: None)


def test_certificates_that_the_environment_names_are_trusted_for_the_api_and_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    _, serve = self_signed("localhost", tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "both.pem"))
    with receiving((200, {}, b"[]"), tls=serve) as receiver:
        context = context_at(f"https://localhost:{receiver.port}", tmp_path)
        assert context.reachable()
        assert context.executor.observe(["job"])["job"].state is State.GONE


def test_certificates_that_cannot_be_read_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    with pytest.raises(ValueError, match="https://ray-head can be read where SSL_CERT_FILE or SSL_CERT_DIR says"):
        context_at("https://ray-head", tmp_path)


def test_that_no_deadline_counts_while_the_api_does_not_answer_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    answers = [(status, {}, b"") for status in (200, 503, 503, 200, 503, 200)]
    with receiving(*answers) as receiver:
        context = context_at(f"http://127.0.0.1:{receiver.port}", tmp_path)
        assert [context.reachable() for _ in answers] == [True, False, False, True, False, True]
    assert [caplog.text.count(word) for word in ("no deadline counts", "status 503", "FORECURVE_TRAINER_URL")] == [
        2
    ] * 3
