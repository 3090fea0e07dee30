"""`init(resume=...)` against the real API: a run goes on after a crash, here or elsewhere, online or offline."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.orm import Session, sessionmaker

from forecurve.cli import main
from forecurve.client import Api, ApiError, ClientError, Run, init, sync
from forecurve.client.folder import RunFolder
from server.runs.states import Status
from tests.conftest import Clock
from tests.server.reporting import move

from .conftest import kill

NOWHERE = "http://127.0.0.1:9"


class Service:
    """The real API, and runs of ours there."""

    def __init__(self, url: str, token: str):
        self.url, self.token = url, token
        self.api = Api(url, token)

    def begin(self, name: str | None = "mine", **options: Any) -> Run:
        return init(name, **{"url": self.url, "token": self.token} | options)

    def curve(self, run_id: str | None) -> list[tuple[int, int, float]]:
        """Step, attempt and reward of each point."""
        points = self.api.curve(str(run_id))["points"]
        return [(point["step"], point["attempt"], point["reward"]) for point in points]

    def runs(self) -> list[str]:
        return [run["id"] for run in self.api.runs()]


@pytest.fixture
def service(real_service: tuple[str, str], own_directory: Path) -> Service:
    return Service(*real_service)


def evaluate(run: Run, *steps: int, reward: float = 0.2) -> None:
    for step in steps:
        run.log_evaluation(step=step, compute=step / 10, reward=reward)


def test_a_run_that_was_killed_goes_on_as_its_next_attempt(service: Service) -> None:
    first = service.begin(project="lab", unit="GPU-hours", budget=10)
    evaluate(first, 0, 10, 20)
    first.log({"loss": 2.0}, step=20)
    first.flush()
    kill(first)

    again = service.begin(project="lab", unit="GPU-hours", budget=10, resume=first.id)
    assert (again.id, again.attempt, again.resumed, first.resumed) == (first.id, 2, True, False)
    assert again.reached is not None
    assert (again.reached.step, again.reached.compute, again.reached.reward) == (20, 2.0, 0.2)
    evaluate(again, 20, 30, reward=0.3)
    again.log({"loss": 1.0}, step=20)
    again.finish()

    assert service.curve(first.id) == [(0, 1, 0.2), (10, 1, 0.2), (20, 2, 0.3), (30, 2, 0.3)]
    assert [mark["step"] for mark in service.api.curve(str(first.id))["restarts"]] == [20]
    assert [point["value"] for point in service.api.metric_points(str(first.id), "loss")] == [1.0]
    assert again.directory is not None
    assert first.directory is not None
    assert again.directory.parent == first.directory.parent


def test_what_the_killed_attempt_could_not_send_is_handed_in(service: Service) -> None:
    first = service.begin()
    evaluate(first, 0)
    first.flush()
    assert first._transport is not None
    first._transport.url = NOWHERE
    first._transport._http.base_url = NOWHERE  # type: ignore[assignment]  # the service is away from here on
    evaluate(first, 10)
    kill(first)
    assert first.unsent > 0

    again = service.begin(resume=first.id)
    evaluate(again, 20)
    again.finish()

    assert again.unsent == 0
    assert service.curve(first.id) == [(0, 1, 0.2), (10, 1, 0.2), (20, 2, 0.2)]


def test_a_run_goes_on_on_another_machine_and_its_old_process_is_told_to_stop(service: Service, tmp_path: Path) -> None:
    first = service.begin()
    evaluate(first, 0)
    first.flush()

    again = service.begin(resume=first.id, directory=tmp_path / "elsewhere")
    evaluate(again, 10)
    again.flush()
    first._heart.beat()  # type: ignore[union-attr]

    assert first.should_stop
    assert "superseded by attempt 2" in str(first.stop_reason)
    assert again.directory is not None
    assert again.directory.parent.name == first.id
    again.finish()
    first.finish("lost")
    assert service.curve(first.id) == [(0, 1, 0.2), (10, 2, 0.2)]


def test_auto_goes_on_with_the_run_of_that_name_and_begins_one_when_there_is_none(service: Service) -> None:
    first = service.begin(resume="auto")
    other = service.begin("other", resume="auto")
    kill(first)

    again = service.begin(resume="auto")
    assert (again.id, again.attempt) == (first.id, 2)
    assert other.id != first.id
    beside = service.begin(resume="auto")
    assert beside.id not in (again.id, other.id), "a living process reports for that one"
    kill(beside)
    again.finish()
    other.finish()

    assert service.begin(resume="auto").id == beside.id


def test_auto_begins_a_new_run_once_the_last_is_over(
    service: Service, sessions: sessionmaker[Session], clock: Clock, caplog: pytest.LogCaptureFixture
) -> None:
    done = service.begin(resume="auto")
    done.finish()
    ended_there = service.begin(resume="auto")
    assert ended_there.id != done.id
    ended_there._heart.beat()  # type: ignore[union-attr]
    kill(ended_there)
    move(sessions, str(ended_there.id), Status.FAILED, clock.now, "taken for dead")

    again = service.begin(resume="auto")
    assert (again.attempt, again.id in (done.id, ended_there.id)) == (1, False)
    assert "a new one is begun" in caplog.text
    assert "taken for dead" in caplog.text


def test_of_two_processes_that_go_on_with_a_run_at_once_one_does(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = service.begin()
    kill(first)
    bind, meanwhile = RunFolder.bind, list[Run]()

    def bind_while_others_begin(folder: RunFolder, api: Api) -> Any:
        monkeypatch.setattr(RunFolder, "bind", bind)
        with pytest.raises(ClientError, match="still being written by process"):
            service.begin(resume=first.id)
        meanwhile.append(service.begin(resume="auto"))
        return bind(folder, api)

    monkeypatch.setattr(RunFolder, "bind", bind_while_others_begin)
    again = service.begin(resume="auto")

    assert (again.id, again.attempt) == (first.id, 2)
    assert (meanwhile[0].id != first.id, meanwhile[0].attempt) == (True, 1)
    evaluate(again, 10)
    again.finish()
    meanwhile[0].finish()
    assert service.curve(first.id) == [(10, 2, 0.2)]


@pytest.mark.parametrize(("name", "project"), [(None, "lab"), ("mine", " lab"), (None, " lab ")])
def test_a_run_is_of_its_project_however_that_was_written(
    service: Service, tmp_path: Path, name: str | None, project: str
) -> None:
    first = service.begin(name, project=project)
    kill(first)
    elsewhere = service.begin(name, project=project, resume=first.id, directory=tmp_path / "elsewhere")
    assert (elsewhere.id, elsewhere.attempt) == (first.id, 2)
    elsewhere.finish()


def test_a_run_that_was_given_another_name_goes_on_by_the_same_line(service: Service) -> None:
    first = service.begin(project="lab", resume="auto")
    kill(first)
    service.api.rename_run(str(first.id), "the good one")
    again = service.begin(project="lab", resume="auto")
    assert (again.id, again.attempt) == (first.id, 2)
    again.finish()


def test_lost_leaves_a_run_open_for_the_next_attempt(
    service: Service, sessions: sessionmaker[Session], clock: Clock
) -> None:
    first = service.begin()
    evaluate(first, 0)
    first.finish("lost", "SIGTERM")
    move(sessions, str(first.id), Status.LOST, clock.now)

    again = service.begin(resume="auto")
    evaluate(again, 10)
    again.finish()
    assert again.id == first.id
    assert service.curve(first.id) == [(0, 1, 0.2), (10, 2, 0.2)]


def test_an_offline_run_goes_on_offline_and_is_synced_as_one(service: Service) -> None:
    first = init("mine", mode="offline", resume="auto")
    evaluate(first, 0, 10)
    kill(first)
    again = init("mine", mode="offline", resume="auto")
    evaluate(again, 10, 20, reward=0.3)
    again.finish()
    assert (first.attempt, again.attempt) == (1, 2)
    assert again.directory is not None

    synced = sync(again.directory.parent, service.url, service.token)
    twice = sync(again.directory.parent, service.url, service.token)

    assert (synced.refused, twice.sent, twice.run_id) == (0, 0, synced.run_id)
    assert service.runs() == [synced.run_id]
    assert service.curve(synced.run_id) == [(0, 1, 0.2), (10, 2, 0.3), (20, 2, 0.3)]
    assert next(service.api.attempts(synced.run_id))["outcome"] == "succeeded"


def test_an_offline_run_goes_on_online_and_hands_in_what_it_kept(service: Service) -> None:
    first = init("mine", mode="offline")
    evaluate(first, 0)
    kill(first)
    assert first.directory is not None

    again = service.begin(resume=first.directory.parent.name)
    evaluate(again, 10)
    again.finish()
    assert again.attempt == 2
    assert service.curve(again.id) == [(0, 1, 0.2), (10, 2, 0.2)]


def test_a_run_goes_on_while_the_service_is_away_and_is_synced_later(
    service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = service.begin()
    evaluate(first, 0)
    first.flush()
    kill(first)

    here = service.begin(resume=first.id, url=NOWHERE)
    evaluate(here, 10)
    here.finish("lost")
    assert "forecurve sync" in caplog.text
    elsewhere = init(mode="offline", resume=first.id, directory=tmp_path / "elsewhere")
    evaluate(elsewhere, 20)
    elsewhere.finish()

    for run in (here, elsewhere):
        assert (run.id, run.resumed) == (first.id, True)
        assert run.directory is not None
        assert sync(run.directory.parent, service.url, service.token).run_id == first.id
    assert service.runs() == [first.id]
    assert service.curve(first.id) == [(0, 1, 0.2), (10, 2, 0.2), (20, 3, 0.2)]


def test_only_the_newest_attempts_token_is_kept_and_none_of_the_users(service: Service) -> None:
    first = service.begin()
    kill(first)
    again = service.begin(resume=first.id)
    assert again.directory is not None
    kept = (again.directory.parent / "run.json").read_text()

    before, newest = json.loads(kept)["attempts"]
    assert before["ingest_token"] is None
    assert newest["ingest_token"].startswith("fc_ingest_")
    assert service.token not in kept
    again.finish()


@pytest.mark.parametrize("resume", ["must", True, "", "run_../me", 7])
def test_what_can_name_no_run_is_refused(own_directory: Path, resume: Any) -> None:
    with pytest.raises(ClientError, match=r"resume is .*'auto', the id of a run"):
        init(resume=resume, mode="offline")


def test_what_cannot_go_on_is_refused_by_name_and_leaves_nothing(
    service: Service, own_directory: Path, sessions: sessionmaker[Session], clock: Clock, tmp_path: Path
) -> None:
    run = service.begin(project="lab", budget=10)
    with pytest.raises(ClientError, match="still being written by process"):
        service.begin(resume=run.id)
    evaluate(run, 0)
    run.flush()
    kill(run)
    kept = sorted(own_directory.rglob("*"))

    with pytest.raises(ApiError, match=r"resume is 'run_none'.* has no such run; .*forecurve run list"):
        service.begin(resume="run_none")
    with pytest.raises(ClientError, match=r"project is 'mill', and run \S+ \(lab/mine\) is of project 'lab'"):
        service.begin(project="mill", resume=run.id)
    with pytest.raises(ApiError, match=r"compute_unit: .* GPU-hours; leave it out, or begin a new run"):
        service.begin(unit="steps", resume=run.id)
    with pytest.raises(ApiError, match=r"budget_compute: .* 10\.0"):
        service.begin(budget=11, resume=run.id)
    with pytest.raises(ApiError, match=r"preset: .* none"):
        service.begin(recipe="scalerl", resume=run.id)
    with pytest.raises(ClientError, match="no such folder"):
        service.begin(resume="offline-nowhere")
    with Api(service.url, service.token) as api:
        launched = api.create_run({"preset": "scalerl"})["id"]
    with pytest.raises(ApiError, match="was launched by the service"):
        service.begin(resume=launched)
    assert sorted(own_directory.rglob("*")) == kept
    assert service.api.run(str(run.id))["attempt"] == 1

    service.api.stop_run(str(run.id))
    with pytest.raises(ApiError, match="is to stop, and that stands"):
        service.begin(resume=run.id)
    move(sessions, str(run.id), Status.STOPPED, clock.now)
    service.api.archive_run(str(run.id))
    with pytest.raises(ApiError, match="is stopped and stays so; start a new run"):
        service.begin(resume=run.id)
    assert sorted(own_directory.rglob("*")) == kept


def test_a_process_whose_run_went_on_elsewhere_says_what_became_of_its_reports(
    service: Service, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first = service.begin()
    service.begin(resume=first.id, directory=tmp_path / "elsewhere").flush()
    evaluate(first, 10)
    first.finish()

    assert "2 reports were refused" in caplog.text  # the evaluation, the outcome
    assert f"{first.id} was superseded by attempt 2" in caplog.text
    assert f"no sync sends them again: {first.directory}/rejected.jsonl keeps them" in caplog.text


def test_sync_says_why_the_service_refused_what_is_left_and_where_it_is(
    service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first = service.begin()
    assert first._transport is not None
    first._transport.url = NOWHERE
    first._transport._http.base_url = NOWHERE  # type: ignore[assignment]  # the service is away
    evaluate(first, 10)
    kill(first)
    service.begin(resume=first.id, directory=tmp_path / "elsewhere").flush()
    assert first.directory is not None

    for refused, said in ((1, "refused"), (0, "refused before")):
        assert main(["sync", str(first.directory.parent)]) == refused
        shown = capsys.readouterr()
        assert ("1 refused" in shown.out) is ("superseded by attempt 2" in shown.err) is bool(refused)
        assert f"What was {said} is in no curve and not sent again: {first.directory}/rejected.jsonl" in shown.err


def test_a_run_that_logged_much_and_ended_is_known_to_be_over_without_the_service(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large queue is emptied once all of it was taken."""
    monkeypatch.setattr("forecurve.client.spool.COMPACT_BYTES", 1)
    first = service.begin()
    evaluate(first, 0, 10)
    first.finish()
    again = init("mine", mode="offline", resume="auto")
    assert not again.resumed
    assert first.id is not None
    with pytest.raises(ClientError, match="has ended"):
        init(mode="offline", resume=first.id)


def test_a_run_that_ended_offline_stays_so(own_directory: Path) -> None:
    run = init(mode="offline")
    run.finish("failed")
    assert run.directory is not None
    with pytest.raises(ClientError, match=r"has ended \(failed\) and stays so"):
        init(mode="offline", resume=run.directory.parent.name)
    assert init(mode="offline", resume="auto").attempt == 1


def test_compute_that_begins_anew_is_warned_of(service: Service, caplog: pytest.LogCaptureFixture) -> None:
    first = service.begin()
    evaluate(first, 0, 1000)
    first.flush()
    kill(first)
    again = service.begin(resume=first.id)

    again.log_evaluation(step=1100, compute=10.0, reward=0.3)

    assert "100 had been spent by step 1000" in caplog.text
    again.finish()


def test_wall_time_that_is_a_little_less_the_second_time_is_no_doubt(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    first = service.begin()
    evaluate(first, 0, 1000)
    first.flush()
    kill(first)
    again = service.begin(resume=first.id)

    again.log_evaluation(step=1000, compute=97.0, reward=0.3)

    assert "had been spent" not in caplog.text
    again.finish()
