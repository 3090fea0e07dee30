"""`forecurve score` against the real API."""

from __future__ import annotations

from sqlalchemy.orm import Session, sessionmaker

from tests.server.forecasts.seeds import make_forecast, make_run
from tests.server.forecasts.test_track_record import finished

from .conftest import Forecurve


def test_the_track_record_is_a_table_and_one_json_object(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session]
) -> None:
    with sessions.begin() as session:
        for offset in (0.0, 0.01):
            run = finished(session, offset)
            for at in (10.0, 25.0, 80.0):
                make_forecast(session, run, at_compute=at)
        make_forecast(session, make_run(session))

    shown = forecurve("score")
    body = forecurve("score", "--limit", "1", "--json").json

    assert shown.code == 0
    assert "18 to 38 %" in shown.out
    assert "from 75 %" in shown.out
    assert "1 forecast of a run that is not over waits" in shown.out
    assert body["scored"] == 6
    assert len(body["forecasts"]) == 1
    assert [line["runs"] for line in body["table"]] == [2, 2, 2]


def test_an_empty_store_says_so(forecurve: Forecurve, service: str) -> None:
    assert "No finished run has a forecast" in forecurve("score").out


def test_without_a_service_it_is_one_line(forecurve: Forecurve) -> None:
    result = forecurve("score")
    assert result.code == 1
    assert "forecurve up" in result.err
