"""Which run `resume="auto"` goes on with where others of its name are begun beside it, or by a clock that was wrong."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from forecurve.client import Run, init
from forecurve.client.folder import RunFolder
from forecurve.client.resuming import holder_of

from .conftest import FaultyService

pytestmark = pytest.mark.usefixtures("own_directory")


@pytest.fixture
def url(service: FaultyService) -> str:
    """A service that makes a run whenever it is asked for one."""
    numbers = itertools.count(1)

    def answer(path: str, body: dict[str, Any]) -> Any:
        if path == "/v1/runs":
            return 201, {"id": f"run_{next(numbers)}", "attempt": 1, "ingest_token": "for-reports"}, {}
        return 200, {"name": "mine", "id": "run_1", "attempt": 2, "ingest_token": "stolen"}, {}

    service.answer = answer
    return service.url


@pytest.mark.parametrize("step", ["bind", "name_after_run"])
@pytest.mark.parametrize("when", ["before", "after"])
def test_two_jobs_that_start_together_have_a_run_each(
    url: str, service: FaultyService, monkeypatch: pytest.MonkeyPatch, step: str, when: str
) -> None:
    original, meanwhile = getattr(RunFolder, step), list[Run]()

    def begun_meanwhile(folder: RunFolder, *given: Any) -> Any:
        monkeypatch.setattr(RunFolder, step, original)
        done = original(folder, *given) if when == "after" else None
        meanwhile.append(init("mine", url=url, resume="auto"))
        return done if when == "after" else original(folder, *given)

    monkeypatch.setattr(RunFolder, step, begun_meanwhile)
    runs = [init("mine", url=url, resume="auto"), *meanwhile]
    for run in runs:
        run.finish()

    assert {run.id for run in runs} == {"run_1", "run_2"}
    assert [run.attempt for run in runs] == [1, 1]
    assert not service.bodies("attempts")


def test_a_run_that_goes_offline_is_held_all_the_while(monkeypatch: pytest.MonkeyPatch) -> None:
    keep, meanwhile = RunFolder.keep, list[Run]()

    def begun_meanwhile(folder: RunFolder) -> None:
        monkeypatch.setattr(RunFolder, "keep", keep)
        keep(folder)
        meanwhile.append(init("mine", mode="offline", resume="auto"))

    monkeypatch.setattr(RunFolder, "keep", begun_meanwhile)
    first = init("mine", url="http://127.0.0.1:9", resume="auto")

    assert first.directory is not None
    assert meanwhile[0].directory is not None
    assert first.directory.parent != meanwhile[0].directory.parent
    for run in (first, *meanwhile):
        run.finish()


def test_a_folder_that_is_renamed_while_another_looks_at_it_is_held(own_directory: Path) -> None:
    run = init("mine", mode="offline")
    assert run.directory is not None
    seen = RunFolder.read(run.directory.parent)
    seen.path.rename(seen.path.with_name("run_1"))

    assert holder_of(seen)
    run.finish()


@pytest.mark.parametrize("dated", ["2099-01-01T00:00:00+00:00", "9999-12-31T23:59:59.999999+00:00", "soon", None])
def test_a_run_that_ended_while_the_clock_was_ahead_does_not_hide_the_one_to_go_on_with(dated: str | None) -> None:
    ended = init("mine", mode="offline")
    ended.finish()
    assert ended.directory is not None
    file = ended.directory.parent / "run.json"
    meta = json.loads(file.read_text())
    meta["attempts"][0]["created_at"] = dated
    file.write_text(json.dumps(meta))

    for attempt in range(1, 4):
        run = init("mine", mode="offline", resume="auto")
        assert run.attempt == attempt
        run.finish("lost")
