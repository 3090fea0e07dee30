"""What a run that goes on is asked to be and is not: that is refused, and blocks neither the run nor its reports."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from forecurve.client import ApiError, ClientError, Run, init, sync
from forecurve.client.folder import RunFolder, new_attempt
from forecurve.client.transformers.beginning import begin

from .conftest import FaultyService

pytestmark = pytest.mark.usefixtures("own_directory")


@pytest.fixture
def service(service: FaultyService) -> FaultyService:
    """One that knows run_1 with a budget of 200."""
    attempts = iter(range(2, 9))

    def answer(path: str, body: dict[str, Any]) -> Any:
        if body.get("budget_compute") not in (None, 200.0):
            return 422, {"code": "invalid", "detail": "budget_compute: the run has 200"}, {}
        if path.endswith("/attempts"):
            return 201, {"id": "run_1", "attempt": next(attempts), "ingest_token": "newer"}, {}
        return 201, {"id": "run_1", "name": "mine", "attempt": 1, "ingest_token": "first"}, {}

    service.answer = answer
    return service


def offline(**told: Any) -> tuple[Run, Path]:
    """A run that ended unfinished, with one evaluation; and its folder."""
    run = init("mine", mode="offline", **told)
    run.log_evaluation(step=1, compute=1.0, reward=0.5)
    run.finish("lost")
    assert run.directory is not None
    return run, run.directory.parent


def kept(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((folder / "run.json").read_text())["attempts"]
    return [attempt["request"] for attempt in found]


def test_a_refused_attempt_does_not_keep_the_next_from_going_on(service: FaultyService) -> None:
    _, folder = offline(budget=200)
    for _ in range(2):
        with pytest.raises(ApiError, match="the run has 200"):
            init("mine", url=service.url, resume="auto", budget=300)
        assert [request["budget_compute"] for request in kept(folder)] == [200.0]
        assert not (folder / "a2").exists()

    run = init("mine", url=service.url, resume="auto", budget=200)
    run.finish()

    assert (run.attempt, run.unsent) == (2, 0)
    assert [body["attempt"] for body in service.bodies("metrics")] == [1]


def test_sync_sends_what_is_known_before_it_says_what_cannot_begin(service: FaultyService) -> None:
    _, path = offline(budget=200)
    folder = RunFolder.read(path)
    folder.add(new_attempt({"budget_compute": 300.0}, None))  # as a run has that went on offline with an older client
    folder.write()

    for _ in range(2):
        with pytest.raises(ApiError, match="the run has 200"):
            sync(path, service.url, "token")

    assert [body["evaluations"][0]["step"] for body in service.bodies("metrics")] == [1]


@pytest.mark.parametrize("away", [{"mode": "offline"}, {"url": "http://127.0.0.1:9"}], ids=["offline", "away"])
@pytest.mark.parametrize(
    ("other", "says"),
    [
        ({"budget": 300}, r"budget is 300.0, and offline-\S+ goes on with what it has, 200.0; leave it out"),
        ({"unit": "steps"}, "unit is 'steps', .* 'GPU-hours'"),
        ({"task": "maths"}, "task is 'maths', .* has, none"),
        ({"recipe": "scalerl"}, "recipe is 'scalerl', .* has, none"),
    ],
)
def test_where_no_service_says_so_the_client_refuses_what_one_would(
    away: dict[str, Any], other: dict[str, Any], says: str
) -> None:
    _, folder = offline(budget=200)
    with pytest.raises(ClientError, match=says):
        init("mine", resume="auto", **away, **other)
    assert len(kept(folder)) == 1
    assert not (folder / "a2").exists()

    again, _ = offline(resume="auto", budget=200, unit="GPU-hours")
    assert again.attempt == 2


def test_a_training_of_a_callback_that_asks_for_another_budget_is_kept_as_a_new_run(service: FaultyService) -> None:
    _, folder = offline(budget=200)
    arguments, state = SimpleNamespace(run_name="mine", output_dir="x"), SimpleNamespace(global_step=4)
    run = begin({"url": service.url, "budget": 300}, arguments, state, None)
    run.finish()
    assert run.directory is not None
    assert (run.attempt, run.directory.parent == folder) == (1, False)


def test_what_a_recipe_may_say_and_what_was_named_later_is_left_to_the_service(service: FaultyService) -> None:
    offline(recipe="scalerl")
    again, _ = offline(recipe="scalerl", resume="auto", unit="GPU-hours", budget=200)
    assert again.attempt == 2

    known = init("known", task="sums", url=service.url)
    known.finish("lost")
    further = init("known", task="maths", mode="offline", resume="auto")
    assert further.resumed
    further.finish()
