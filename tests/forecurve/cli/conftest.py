"""The command line, called in this process (quick) or as a process of its own (as a person calls it)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from sqlalchemy.orm import Session, sessionmaker

from forecurve.cli import main
from forecurve.cli.supervisor.layout import Layout
from server.access.service import mint
from tests.conftest import Clock
from tests.forecurve.serving import served


@dataclass(frozen=True)
class Result:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    def check_is_bad_input(self, parts: Iterable[str]) -> None:
        """Exit 2, and nothing but one line on stderr, which has all of `parts`."""
        assert (self.code, self.out) == (2, "")
        assert len(self.err.strip().splitlines()) == 1
        for part in parts:
            assert part in self.err


class Forecurve:
    """Api `forecurve ...`; `url` and `token` are given along for commands that need a service."""

    def __init__(self, capsys: pytest.CaptureFixture[str]):
        self._capsys = capsys

    def __call__(self, *arguments: str | Path) -> Result:
        code = main([str(argument) for argument in arguments])
        captured = self._capsys.readouterr()
        return Result(code, captured.out, captured.err)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    """The folders of a data directory, made."""
    layout = Layout.of(tmp_path / "data")
    layout.make()
    return layout


@pytest.fixture(autouse=True)
def no_service_of_the_developers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("FORECURVE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def own_short_paths(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a supervisor needs short paths for (sockets, Ray's sessions) lies in the test's own folder."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.fixture
def forecurve(capsys: pytest.CaptureFixture[str]) -> Forecurve:
    return Forecurve(capsys)


@pytest.fixture
def service(
    application: FastAPI, sessions: sessionmaker[Session], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """URL of a running API; FORECURVE_URL and FORECURVE_TOKEN name it to the commands."""
    application.dependency_overrides = {}
    with sessions.begin() as session:
        _, secret = mint(session, kind="api", name="test", scopes=["operate"], now=clock.now)
    with served(application) as url:
        monkeypatch.setenv("FORECURVE_URL", url)
        monkeypatch.setenv("FORECURVE_TOKEN", secret)
        yield url


@pytest.fixture
def admin(service: str, sessions: sessionmaker[Session], clock: Clock, monkeypatch: pytest.MonkeyPatch) -> str:
    """URL of a running API; FORECURVE_TOKEN is an administrator's."""
    with sessions.begin() as session:
        _, secret = mint(session, kind="api", name="admin", scopes=["admin"], now=clock.now)
    monkeypatch.setenv("FORECURVE_TOKEN", secret)
    return service


def spawn(*arguments: str | Path, **options: Any) -> subprocess.CompletedProcess[str]:
    """`forecurve ...` as a process of its own."""
    command = [sys.executable, "-m", "forecurve", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)
