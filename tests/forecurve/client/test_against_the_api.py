"""The client against the real API on real Postgres: external runs from `init` to their end, offline runs synced."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from forecurve.client import Api, ApiError, ClientError, attach, init, sync, tracking


@pytest.fixture
def service(real_service: tuple[str, str], own_directory: Path) -> tuple[str, str]:
    return real_service


@pytest.fixture(autouse=True)
def _apart(own_directory: Path) -> None:
    """No test here touches the folder or the settings of whoever runs it."""


def rewards(url: str, token: str, run_id: str) -> list[tuple[int, float]]:
    with Api(url, token) as api:
        return [(item["step"], item["reward"]) for item in api.get(f"/v1/runs/{run_id}/evaluations")["items"]]


def test_a_run_of_ones_own_is_begun_reported_and_found(service: tuple[str, str]) -> None:
    url, token = service
    run = init("mine", project="lab", unit="GPU-hours", budget=10, url=url, token=token)
    run.log({"train/loss": float("nan")}, step=1, compute=0.1)
    for step, reward in ((0, 0.2), (10, 0.3)):
        run.log_evaluation(step=step, compute=step / 10, counts=[int(reward * 10), 10], samples=10)
    run.flush()

    with Api(url, token) as api:
        view = api.run(str(run.id))
        points = api.get(f"/v1/runs/{run.id}/metrics", metric="train/loss")["points"]
    run.finish()

    assert view["name"] == "lab/mine"
    assert view["compute_unit"] == "GPU-hours"
    assert view["budget_compute"] == 10
    assert view["status"] == "running"
    assert [point["value"] for point in points] == ["NaN"]
    assert rewards(url, token, str(run.id)) == [(0, 0.6), (10, 0.65)]
    assert run.unsent == 0


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_a_run_is_labelled_as_it_was_begun(service: tuple[str, str], mode: Any) -> None:
    url, token = service
    labels = {"tags": [" baseline ", "paper", "baseline"], "note": "why\r\nnot"}
    for attempt, said in ((1, labels), (2, {"tags": ["another"]})):
        run = init("mine", url=url, token=token, mode=mode, resume="auto", **said)
        run.log_evaluation(step=attempt, compute=float(attempt), reward=0.3)
        run.finish("lost" if attempt == 1 else "succeeded")
    assert run.directory is not None
    run_id = run.id or sync(run.directory.parent, url, token).run_id
    with Api(url, token) as api:
        view = api.run(run_id)
    assert (view["tags"], view["note"]) == (["baseline", "paper"], "why\nnot")


@pytest.mark.parametrize("mode", ["online", "offline"])
def test_a_run_names_its_task_and_goes_on_with_it(service: tuple[str, str], mode: Any) -> None:
    url, token = service
    said = {"task": "gsm8k", "arm": "base", "seed": np.int64(3)}
    for attempt in (1, 2):
        run = init("mine", url=url, token=token, mode=mode, resume="auto", **said)
        run.log_evaluation(step=attempt, compute=float(attempt), reward=0.3)
        run.finish("lost" if attempt == 1 else "succeeded")
    assert run.directory is not None
    run_id = run.id or sync(run.directory.parent, url, token).run_id
    with Api(url, token) as api:
        view = api.run(run_id)
        assert (view["task"], view["arm"], view["seed"], view["attempt"]) == ("gsm8k", "base", 3, 2)


def test_a_run_goes_on_with_no_other_task(service: tuple[str, str]) -> None:
    url, token = service
    init("mine", url=url, token=token, task="gsm8k").finish("lost")
    with pytest.raises(ApiError, match="goes on with what it has, gsm8k"):
        init("mine", url=url, token=token, task="maze", resume="auto")


@pytest.mark.slow  # ten megabytes of counts
def test_evaluations_too_large_for_one_request_are_taken_in_parts(service: tuple[str, str]) -> None:
    url, token = service
    run = init("large", mode="offline")
    for step in range(2):
        run.log_evaluation(step=step, compute=float(step), counts=[32_767] * 900_000, samples=32_767)
    run.finish()
    assert run.directory is not None

    synced = sync(run.directory.parent, url, token)

    assert rewards(url, token, synced.run_id) == [(0, 1.0), (1, 1.0)]
    assert synced.refused == 0


def test_an_evaluation_that_the_service_refuses_costs_no_other(service: tuple[str, str]) -> None:
    url, token = service
    run = init(url=url, token=token)
    run.log_evaluation(step=1, compute=1.0, reward=0.1)
    run.flush()
    run._checks._evaluated.clear()  # as in a process that goes on after a restart and does not know what was sent
    run._pending.add_evaluation({"step": 0, "compute": 0.0, "reward": 0.1})
    for step in range(1, 10):
        run.log_evaluation(step=step, compute=float(step), reward=0.2)
    run.finish()

    assert rewards(url, token, str(run.id)) == [(0, 0.1), (1, 0.1)] + [(step, 0.2) for step in range(2, 10)]


def test_replayed_reports_change_nothing(service: tuple[str, str], tmp_path: Path) -> None:
    url, token = service
    run = init(url=url, token=token)
    run.log_evaluation(step=0, compute=0.0, reward=0.2)
    run.flush()
    run.finish()
    before = rewards(url, token, str(run.id))
    assert run.directory is not None
    (run.directory / "settled.json").unlink()  # the process died before it could note what was taken

    again = tracking.Run(
        run.id,
        run.attempt,
        spool=tracking.Spool(run.directory),
        transport=tracking.Transport(url, run._transport._http.headers["Authorization"][7:], str(run.id), 1),  # type: ignore[union-attr]
    )
    again.flush()

    assert again.unsent == 0
    assert rewards(url, token, str(run.id)) == before
    again._outbox.close(1)  # type: ignore[union-attr]


def test_a_launched_trainer_attaches_reads_its_recipe_and_reports(
    service: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url, token = service
    with Api(url, token) as api:
        created = api.create_run({"executor": "external", "preset": "scalerl", "changes": {"seed": 5}})
    for name, value in {"URL": url, "RUN": created["id"], "ATTEMPT": "1", "TOKEN": created["ingest_token"]}.items():
        monkeypatch.setenv(f"FORECURVE_{name}", value)

    run = attach(tmp_path / "out")
    recipe = run.recipe()
    run.log_evaluation(step=0, compute=0.0, counts=[1, 2], samples=4)
    run.log_checkpoint(step=0, compute=0.0, path=tmp_path, digest="a" * 64, size_bytes=5)
    run.finish()

    assert recipe["seed"] == 5
    assert rewards(url, token, created["id"]) == [(0, 0.375)]
    with Api(url, token) as api:
        assert [item["step"] for item in api.items(f"/v1/runs/{created['id']}/checkpoints")] == [0]
        attempt = next(iter(api.items(f"/v1/runs/{created['id']}/attempts")))
    assert attempt["outcome"] == "succeeded"


def test_an_outcome_that_there_is_not_is_refused_at_once_and_the_right_one_still_taken(
    service: tuple[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    url, token = service
    run = init(url=url, token=token)
    tracking.finish("done")
    assert "outcome is 'done'; it is one of succeeded, stopped, failed, lost" in caplog.text

    run.log_evaluation(step=0, compute=0.0, reward=0.2)
    tracking.finish("succeeded")

    assert rewards(url, token, str(run.id)) == [(0, 0.2)]
    with Api(url, token) as api:
        assert next(iter(api.items(f"/v1/runs/{run.id}/attempts")))["outcome"] == "succeeded"
    with pytest.raises(ClientError, match="no run was begun"):
        tracking.finish()


def test_the_services_wish_to_stop_reaches_the_loop(service: tuple[str, str]) -> None:
    from .conftest import wait_for

    url, token = service
    run = init(url=url, token=token)
    run.log_evaluation(step=0, compute=0.0, reward=0.2)
    run.flush()
    with Api(url, token) as api:
        api.stop_run(str(run.id), "enough seen")
    run._heart.beat()  # type: ignore[union-attr]

    wait_for(lambda: run.should_stop)

    assert "enough seen" in str(run.stop_reason)
    run.finish("stopped")


def test_an_offline_run_is_synced_once_however_often_it_is_tried(service: tuple[str, str], tmp_path: Path) -> None:
    url, token = service
    run = init("later", mode="offline")
    run.log_evaluation(step=0, compute=0.0, reward=0.2)
    run.log_evaluation(step=5, compute=1.0, reward=0.4)
    run.finish()
    assert run.directory is not None

    first = sync(run.directory.parent, url, token)
    second = sync(run.directory.parent, url, token)

    assert (first.sent, first.refused) == (2, 0)  # the evaluations, the outcome
    assert second.run_id == first.run_id
    assert second.sent == 0
    assert rewards(url, token, first.run_id) == [(0, 0.2), (5, 0.4)]


def test_a_service_that_is_away_makes_the_run_offline_so_that_training_starts(caplog: pytest.LogCaptureFixture) -> None:
    run = init("x", url="http://127.0.0.1:9", token="t")
    run.log_evaluation(step=0, compute=0.0, reward=0.2)
    run.finish()

    assert run.id is None
    assert "forecurve sync" in caplog.text


def test_a_faulty_start_is_refused_with_field_value_and_way_out(service: tuple[str, str]) -> None:
    url, token = service
    with pytest.raises(ApiError) as caught:
        init(recipe={"algorithm": {"los": "cispo"}}, url=url, token=token)
    assert "algorithm.los" in caught.value.sentence()
    assert "did you mean `loss`" in caught.value.sentence()

    with pytest.raises(ApiError, match="preset"):
        init(recipe="parsecs", url=url, token=token)


def test_only_rank_zero_reports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "3")
    run = init("x", url="http://127.0.0.1:9", token="t")

    run.log({"a": 1}, step=1)
    run.finish()

    assert run.directory is None


def test_attach_names_the_variable_that_is_missing(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="FORECURVE_URL is not set"):
        attach(tmp_path)


@pytest.mark.parametrize("call", [tracking.finish, lambda: tracking.log({"a": 1}, step=1)])
def test_reports_without_init_say_what_to_call(call: Any) -> None:
    with pytest.raises(ClientError, match=r"forecurve\.init"):
        call()
