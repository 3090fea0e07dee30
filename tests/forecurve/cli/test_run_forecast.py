"""`forecurve run forecast` against the real API."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest
from sqlalchemy import insert
from sqlalchemy.orm import Session, sessionmaker

from forecurve.client import connect
from server.metrics.models import MetricPoint
from tests.server.forecasts.seeds import make_run, sigmoid

from .conftest import Forecurve

SPENT = np.linspace(2.0, 30.0, 15)


@pytest.fixture
def run_id(service: str, sessions: sessionmaker[Session]) -> str:
    """A run that has spent 30 of 100 GPU-hours, with a metric as a share, in percent, and one of a few values."""
    shares = sigmoid(SPENT, A=0.5, R0=0.05) + 0.01 * np.random.default_rng(0).standard_normal(len(SPENT))
    logged = {"eval/share": shares, "eval/percent": 100 * shares, "eval/rare": shares[:3], "eval/falls": shares[::-1]}
    with sessions.begin() as session:
        run = make_run(session, "long context")
        for name, values in logged.items():
            row = {"run_id": run.id, "metric": name, "attempt": 1, "time": datetime.now(UTC)}
            points = zip(SPENT, values, strict=False)
            rows = [row | {"step": at, "compute": float(c), "value": float(v)} for at, (c, v) in enumerate(points)]
            session.execute(insert(MetricPoint), rows)
        return run.id


def test_a_metric_is_forecast_in_words(forecurve: Forecurve, run_id: str) -> None:
    told = forecurve("run", "forecast", "long context", "eval/share")
    lines = told.out.splitlines()
    assert (told.code, lines[0]) == (0, "eval/share")
    assert lines[1].startswith("  now         0.4")
    assert lines[1].endswith(" at 30 GPU-hours, step 14")
    assert any(line.startswith("  at budget   0.") and line.endswith(" at 100 GPU-hours") for line in lines)
    assert any(line.startswith("  ending      0.") and line.endswith(", without past runs") for line in lines)
    assert "Expected to end at 0." in lines[-1]


def test_several_metrics_are_asked_for_each_once_and_as_json_they_are_items(forecurve: Forecurve, run_id: str) -> None:
    told = forecurve("run", "forecast", run_id, "eval/share", "eval/rare", "eval/share")
    assert [line for line in told.out.splitlines() if line.startswith("eval/")] == ["eval/share", "eval/rare"]
    assert "Points so far: 3; a forecast takes 4." in told.out
    items = forecurve("run", "forecast", run_id, "eval/share", "eval/rare", "--json").json["items"]
    assert [(one["metric"], one["forecast"] is None) for one in items] == [("eval/share", False), ("eval/rare", True)]


def test_a_range_and_a_budget_of_its_own(forecurve: Forecurve, run_id: str) -> None:
    ask = "run", "forecast", run_id, "eval/percent", "--range", "0,100", "--budget", "60"
    (found,) = forecurve(*ask, "--json").json["items"]
    assert (found["high"], found["budget"], found["ending"]["compute"]) == (100.0, 60.0, 60.0)
    assert 30 < found["ending"]["median"] < 60
    assert " at 60 GPU-hours" in forecurve(*ask).out


def test_where_it_is_withheld_no_ceiling_is_told(forecurve: Forecurve, run_id: str) -> None:
    told = forecurve("run", "forecast", run_id, "eval/falls").out
    assert "The forecast is withheld." in told
    assert "ceiling  " not in told


@pytest.mark.parametrize(
    ("asked", "parts"),
    [
        (["eval/shar"], ["METRIC", "did you mean `eval/share`?"]),
        (["eval/percent"], ["--range: of eval/percent values from", "give the range that they can be in"]),
        (["eval/percent", "--range", "100"], ["--range", "two numbers with a comma between"]),
        (["eval/share", "--budget", "0"], ["budget", "above 0"]),
    ],
)
def test_bad_input_names_what_was_given_and_the_way_out(
    forecurve: Forecurve, run_id: str, asked: list[str], parts: list[str]
) -> None:
    forecurve("run", "forecast", run_id, *asked).check_is_bad_input(parts)


def test_a_run_that_logged_nothing_is_said_to_have(forecurve: Forecurve, service: str) -> None:
    new = forecurve("run", "submit", "--preset", "scalerl", "--json").json["id"]
    said = f"METRIC: run {new} has no metric 'eval/share'; it has logged none, `forecurve run show {new}` says why"
    forecurve("run", "forecast", new, "eval/share").check_is_bad_input([said])


def test_from_python(service: str, run_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with connect() as api:
        found = api.metric_forecast(run_id, "eval/percent", high=100.0)
    assert found["forecast"]["A"]["lower"] > 20
