"""The service from a script: what the guide shows, run as it stands there, and what it says of waiting."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

import forecurve
from forecurve.client import Api, ClientError, api, connect
from server.alerts.models import Alert
from server.forecasts.models import Recommendation
from server.runs.models import Run
from tests.conftest import Clock
from tests.web import seeding

ROOT = Path(__file__).parents[3]
BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/guides/python.md").read_text(), re.DOTALL)


@pytest.fixture
def service(real_service: tuple[str, str], fresh: None, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    """The real API, named by the environment."""
    url, token = real_service
    monkeypatch.setenv("FORECURVE_URL", url)
    monkeypatch.setenv("FORECURVE_TOKEN", token)
    return url, token


def end_all(session: Session, clock: Clock) -> None:
    """Every run there is has been evaluated to its end."""
    for seed, run in enumerate(session.scalars(select(Run).order_by(Run.id))):
        seeding.add_evaluations(session, run, seeding.Truth(A=0.66), until=60, now=clock.now, seed=seed)
        seeding.add_forecast(session, run, seeding.Truth(A=0.66), at=60.0, now=clock.now)
        run.status = "succeeded"


def add_going(session: Session, clock: Clock) -> str:
    """A run on its way that is advised to stop, with an alert."""
    run = seeding.add_run(session, now=clock.now, name="going")
    seeding.add_evaluations(session, run, seeding.Truth(A=0.66), until=40, now=clock.now)
    forecast = seeding.add_forecast(session, run, seeding.Truth(A=0.66), at=40.0, now=clock.now)
    seeding.add_recommendation(session, run, forecast).action = "stop"
    seeding.add_alert(session, run, since=30, at=40, now=clock.now)
    return run.id


def test_the_guide_does_what_it_says(
    service: tuple[str, str],
    sessions: sessionmaker[Session],
    clock: Clock,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "docs" / "science").mkdir(parents=True)
    shutil.copy(ROOT / "docs/science/example.csv", tmp_path / "docs/science/example.csv")
    names: dict[str, Any] = {}
    submit, *others = BLOCKS
    exec(submit, names)
    assert capsys.readouterr().out.startswith("4 runs, 240.0 CPU-seconds")
    with sessions.begin() as session:
        end_all(session, clock)
        going = add_going(session, clock)
    for block in others:
        exec(block, names)
    said = capsys.readouterr().out
    with sessions() as session:
        assert session.get_one(Run, going).desired_state == "stop"
        assert session.scalars(select(Recommendation.status)).all() == ["accepted"]
        assert session.scalars(select(Alert.acknowledged_at)).one() is not None
    assert re.search(r"^24\d\.\d of 120\.0 CPU-seconds spent\. ", said, re.MULTILINE)
    assert "Against control" in said
    assert (tmp_path / "forecast.html").stat().st_size > 10_000
    assert "algorithm.loss" in said.splitlines()[-1]
    names["api"].close()


def test_a_run_that_is_not_over_in_time_is_said(
    service: tuple[str, str], sessions: sessionmaker[Session], clock: Clock
) -> None:
    with sessions.begin() as session:
        run_id = add_going(session, clock)
    with connect() as api, pytest.raises(TimeoutError, match=rf"{run_id} is running after 0\.1 s"):
        api.wait(run_id, timeout_s=0.1, every_s=0.05)


def test_a_service_that_is_away_for_a_while_is_waited_for(
    service: tuple[str, str], sessions: sessionmaker[Session], clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sessions.begin() as session:
        run_id = add_going(session, clock)
        session.get_one(Run, run_id).status = "failed"
    asked = []

    def away_at_first(self: Api, method: str, path: str, **options: Any) -> Any:
        asked.append(path)
        if len(asked) < 3:
            raise forecurve.ApiError("nobody listens", code="unreachable")
        return sent(self, method, path, **options)

    sent = api.Api._send_once
    monkeypatch.setattr(api.Api, "_send_once", away_at_first)
    monkeypatch.setattr("forecurve.client.patience.backoff_s", lambda *_, **__: 0.0)
    with connect() as service_:
        assert service_.wait(run_id)["status"] == "failed"
    assert len(asked) == 3


def test_without_a_token_nothing_is_asked(fresh: None) -> None:
    with pytest.raises(ClientError, match="token: there is none; give token= or set FORECURVE_TOKEN"):
        connect("http://127.0.0.1:1")


@pytest.mark.parametrize("url", ["http://127.0.0.1:8400/v1", "https://host/forecurve/v1/"])
def test_an_address_that_goes_on_with_that_of_the_calls_is_refused(url: str) -> None:
    with pytest.raises(ClientError, match=rf"url is '{url}': the service's address ends before its /v1"):
        connect(url, "fc_api_x")


def test_where_nothing_is_said_it_is_the_service_of_this_machine(fresh: None) -> None:
    with connect(token="fc_api_x") as found:
        assert found.url == "http://127.0.0.1:8400"
        assert repr(found) == "Api('http://127.0.0.1:8400')"


def test_what_a_path_asks_for_is_asked_beside_what_is_named(
    service: tuple[str, str], sessions: sessionmaker[Session], clock: Clock
) -> None:
    with sessions.begin() as session:
        going = add_going(session, clock)
        seeding.add_run(session, now=clock.now, name="over", status="succeeded")
    with connect() as api:
        assert [run["id"] for run in api.get("/v1/runs?status=running")["items"]] == [going]
        assert [run["name"] for run in api.items("/v1/runs?status=succeeded", tag=None)] == ["over"]
        assert api.get("/v1/runs?status=running&limit=1", name="over")["items"] == []
        with pytest.raises(forecurve.ApiError, match="lim: is no parameter of GET /v1/runs"):
            api.get("/v1/runs?lim=1")


def test_no_id_at_all_is_refused_as_one_that_is_none(service: tuple[str, str]) -> None:
    with connect() as api, pytest.raises(ClientError, match="id: letters, digits, - and _ are expected, got None"):
        api.run(None)  # type: ignore[arg-type]


def test_advice_is_accepted_without_a_reason_as_by_the_api(
    service: tuple[str, str], sessions: sessionmaker[Session], clock: Clock
) -> None:
    with sessions.begin() as session:
        add_going(session, clock)
    with connect() as api:
        (advice,) = api.recommendations(status="open")
        assert api.accept_recommendation(advice["id"])["status"] == "accepted"
