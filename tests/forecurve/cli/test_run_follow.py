"""A run is reported from the log that its trainer writes, while it is written, against the real API."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from server.runs.lifecycle import transition
from server.runs.models import Run
from server.runs.states import Status
from tests.conftest import Clock
from tests.forecurve.importers.stores import stored

from .conftest import Forecurve

METRIC = "val-core/gsm8k/acc/mean@8"
TOLD = ("--metric", METRIC, "--per-step", "0.5", "--unit", "GPU-hours", "--prompts", "512", "--samples", "8")
RATES = {0: 0.2, 10: 0.31, 20: 0.44, 30: 0.5, 40: 0.53}


def written(file: Path, *steps: int, scale: float = 1.0) -> None:
    """As verl's file logger writes them."""
    with file.open("a") as stream:
        for step in steps:
            stream.write(json.dumps({"step": step, "data": {METRIC: scale * RATES[step]}}) + "\n")


@pytest.fixture
def meanwhile(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """What happens while the command waits, one after the other; then somebody presses Ctrl-C."""

    def happens(*events: Callable[[], object]) -> None:
        left = list(events)

        def wait(seconds: float) -> None:
            if not left:
                raise KeyboardInterrupt
            left.pop(0)()

        monkeypatch.setattr("forecurve.cli.asking.patience.wait", wait)

    return happens


def curve(forecurve: Forecurve, run: str) -> list[tuple[float, float]]:
    items = forecurve("run", "export", run, "--format", "json").json["items"]
    return [(item["compute"], item["reward"]) for item in items]


def only_run(forecurve: Forecurve) -> dict[str, Any]:
    (run,) = forecurve("run", "list", "--json").json["items"]
    return dict(run)


def test_evaluations_are_sent_as_they_are_logged_and_the_same_command_goes_on(
    forecurve: Forecurve, service: str, tmp_path: Path, meanwhile: Callable[..., None]
) -> None:
    log = tmp_path / "grpo.jsonl"
    written(log, 0, 10)

    def another_writer() -> None:
        log.write_text(log.read_text() + "no JSON\n")
        written(log, 30)

    def mended() -> None:
        log.write_text(log.read_text().replace("no JSON\n", ""))

    meanwhile(lambda: written(log, 20), another_writer, mended)
    told = ("run", "follow", log, *TOLD, "--budget", "40", "--task", "gsm8k")
    first = forecurve(*told)
    assert "step 20  10 GPU-hours  pass rate 0.440" in first.out
    assert "Not read just now" in first.err
    assert "The same command goes on" in first.err
    run = only_run(forecurve)
    assert (run["name"], run["task"], run["budget_compute"]) == ("grpo", "gsm8k", 40.0)
    assert curve(forecurve, run["id"]) == [(0.0, 0.2), (5.0, 0.31), (10.0, 0.44), (15.0, 0.5)]

    written(log, 40)
    again = forecurve(*told, "--over")
    assert again.code == 0, again.err
    assert "goes on" in again.err
    assert "4 evaluations were there already" in again.err
    assert again.out == "step 40  20 GPU-hours  pass rate 0.530\n"
    assert "warn" not in again.err.lower()
    assert len(curve(forecurve, run["id"])) == 5
    assert only_run(forecurve)["attempt"] == 2


def test_a_log_that_has_no_evaluation_yet_is_waited_for(
    forecurve: Forecurve, service: str, tmp_path: Path, meanwhile: Callable[..., None]
) -> None:
    log = tmp_path / "grpo.jsonl"
    meanwhile(lambda: log.write_text('{"step": 1, "data": {"loss": 0.1}}\n'), lambda: written(log, 0, 10))
    answer = forecurve("run", "follow", log, *TOLD, "--name", "mine", "--json")
    assert [json.loads(line)["step"] for line in answer.out.splitlines()] == [0, 10]
    assert answer.err.count("Waiting for the first evaluation") == 2
    assert only_run(forecurve)["name"] == "mine"


def test_epochs_in_fractions_are_counted_and_the_same_when_the_command_goes_on(
    forecurve: Forecurve, service: str, tmp_path: Path, meanwhile: Callable[..., None]
) -> None:
    chart = tmp_path / "chart.csv"
    chart.write_text('"train/epoch","mine - eval/acc"\n0.5,0.2\n1,0.3\n')

    def logged(*lines: str) -> Callable[[], None]:
        return lambda: chart.write_text(chart.read_text() + "".join(f"{line}\n" for line in lines)) and None

    told = ("run", "follow", chart, "--per-step", "10", "--unit", "GPU-hours", "--json")

    def logged_late() -> None:
        chart.write_text(chart.read_text().replace("1,0.3\n", "0.75,0.25\n1,0.3\n"))

    meanwhile(logged("1.5,0.4"), logged("2,0.45", "4,0.5"), logged_late)
    first = forecurve(*told)
    assert [json.loads(line)["step"] for line in first.out.splitlines()] == [1, 2, 3, 4, 5]
    assert "Logged too late to be sent: 0.75" in first.err
    assert "warn" not in first.err.lower()
    run = only_run(forecurve)["id"]
    assert curve(forecurve, run) == [(5, 0.2), (10, 0.3), (15, 0.4), (20, 0.45), (40, 0.5)]

    chart.write_text(chart.read_text().replace("0.75,0.25\n", "") + "4.5,0.52\n")
    again = forecurve(*told, "--over")
    assert [json.loads(line)["step"] for line in again.out.splitlines()] == [6]
    assert curve(forecurve, run) == [(5, 0.2), (10, 0.3), (15, 0.4), (20, 0.45), (40, 0.5), (45, 0.52)]
    assert "warn" not in again.err.lower()


def test_steps_beyond_what_the_service_takes_are_counted(forecurve: Forecurve, service: str, tmp_path: Path) -> None:
    chart = tmp_path / "chart.csv"
    chart.write_text('"tokens","mine - eval/acc"\n0,0.2\n20000000000,0.3\n40000000000,0.4\n')
    answer = forecurve("run", "follow", chart, "--per-step", "1e-9", "--unit", "GPU-hours", "--json", "--over")
    assert [json.loads(line)["step"] for line in answer.out.splitlines()] == [0, 1, 2]
    assert curve(forecurve, only_run(forecurve)["id"]) == [(0, 0.2), (20, 0.3), (40, 0.4)]


def test_a_whole_step_that_is_logged_late_keeps_its_number(
    forecurve: Forecurve, service: str, tmp_path: Path, meanwhile: Callable[..., None]
) -> None:
    log = tmp_path / "grpo.jsonl"
    written(log, 0, 10, 30)
    meanwhile(lambda: written(log, 20), lambda: written(log, 40))
    answer = forecurve("run", "follow", log, *TOLD, "--json")
    assert [json.loads(line)["step"] for line in answer.out.splitlines()] == [0, 10, 30, 20, 40]
    assert [compute for compute, _ in curve(forecurve, only_run(forecurve)["id"])] == [0, 5, 10, 15, 20]


def rated(file: Path, *reports: tuple[int, float]) -> Callable[[], None]:
    """The file is written anew."""
    rows = [json.dumps({"step": step, "data": {METRIC: rate}}) + "\n" for step, rate in reports]
    return lambda: file.write_text("".join(rows)) and None


def test_what_a_resume_of_the_trainer_threw_away_is_taken_back(
    forecurve: Forecurve, service: str, tmp_path: Path, meanwhile: Callable[..., None]
) -> None:
    log = tmp_path / "grpo.jsonl"
    first = (0, 0.2), (10, 0.3), (20, 0.4), (30, 0.5)
    rated(log, *first)()
    again = (10, 0.31), (20, 0.42), (30, 0.6)
    meanwhile(*(rated(log, *first, *again[:count]) for count in (1, 2, 3)))
    told = forecurve("run", "follow", log, *TOLD)
    assert told.err.count("logged anew") == 1, told.err
    assert "warn" not in told.err.lower()
    run = only_run(forecurve)
    assert (run["attempt"], curve(forecurve, run["id"])) == (2, [(0, 0.2), (5, 0.31), (10, 0.42), (15, 0.6)])


def test_a_file_that_begins_anew_replaces_what_was_sent_and_one_that_goes_on_does_not(
    forecurve: Forecurve, service: str, tmp_path: Path, meanwhile: Callable[..., None]
) -> None:
    log = tmp_path / "grpo.jsonl"
    rated(log, (0, 0.2), (10, 0.3), (20, 0.4))()
    while_written = rated(log, (0, 0.2))
    whole = rated(log, (0, 0.2), (10, 0.3), (20, 0.4), (30, 0.5))
    meanwhile(while_written, whole, rated(log, (40, 0.55)), rated(log, (40, 0.55), (50, 0.6)))
    told = forecurve("run", "follow", log, *TOLD)
    assert "logged anew" not in told.err
    run = only_run(forecurve)
    assert [compute for compute, _ in curve(forecurve, run["id"])] == [0, 5, 10, 15, 20, 25]

    seen_once = rated(log, (0, 0.2))
    meanwhile(seen_once, lambda: log.write_text("no JSON\nat all\n"), rated(log, (0, 0.2), (10, 0.25)))
    told = forecurve("run", "follow", log, *TOLD)
    assert told.err.index("Not read just now") < told.err.index("logged anew")
    run = only_run(forecurve)
    assert (run["attempt"], curve(forecurve, run["id"])) == (3, [(0, 0.2), (5, 0.25)])


def test_a_log_of_the_same_name_does_not_go_on_with_the_run_of_another(
    forecurve: Forecurve, service: str, tmp_path: Path, meanwhile: Callable[..., None]
) -> None:
    meanwhile()
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        written(tmp_path / folder / "log.jsonl", 0, 10 if folder == "a" else 20)
    forecurve("run", "follow", "a/log.jsonl", *TOLD)
    refused = forecurve("run", "follow", "b/log.jsonl", *TOLD)
    refused.check_is_bad_input(["--name", str(tmp_path / "a" / "log.jsonl"), "--name log"])
    assert only_run(forecurve)["attempt"] == 1
    (tmp_path / "a" / "log.jsonl").rename(tmp_path / "moved.jsonl")
    moved = forecurve("run", "follow", "moved.jsonl", *TOLD, "--name", "log", "--over")
    assert (moved.code, only_run(forecurve)["attempt"]) == (0, 2)
    assert forecurve("run", "follow", "b/log.jsonl", *TOLD, "--over").code == 0
    assert len(forecurve("run", "list", "--json").json["items"]) == 2


def test_a_run_of_mlflow_is_followed_by_its_database(forecurve: Forecurve, service: str, tmp_path: Path) -> None:
    store = stored(tmp_path / "mlflow.db", "mlflow-3.17.2")
    told = ("run", "follow", store, "--run", "cispo", "--metric", "val/acc", "--unit", "steps", "--over")
    several = forecurve(*(one for one in told if one not in ("--run", "cispo")))
    several.check_is_bad_input(["--run: 3 runs are logged there (gsm8k/grpo, gsm8k/grpo (2), cispo)"])
    assert forecurve(*told).code == 0
    assert (only_run(forecurve)["name"], only_run(forecurve)["last_compute"]) == ("cispo", 20)


def test_a_run_that_is_over_is_not_reported_twice(forecurve: Forecurve, service: str, tmp_path: Path) -> None:
    log = tmp_path / "grpo.jsonl"
    written(log, 0, 10, 20)
    told = ("run", "follow", log, *TOLD, "--over")
    assert forecurve(*told).code == 0
    again = forecurve(*told)
    assert (again.code, "is over and has 3 of these 3 evaluations; nothing is sent" in again.err) == (0, True)
    written(log, 30)
    forecurve(*told).check_is_bad_input(["is over and has 3 of these 4 evaluations", "--name"])
    assert only_run(forecurve)["attempt"] == 1
    rated(log, (0, 0.2), (10, 0.3), (20, 0.4))()  # of another training
    assert forecurve(*told).code == 0
    assert len(forecurve("run", "list", "--json").json["items"]) == 2


def test_a_run_that_somebody_ended_is_not_begun_again(
    forecurve: Forecurve,
    service: str,
    sessions: sessionmaker[Session],
    clock: Clock,
    tmp_path: Path,
    meanwhile: Callable[..., None],
) -> None:
    log = tmp_path / "grpo.jsonl"
    written(log, 0, 10, 20)
    meanwhile()
    forecurve("run", "follow", log, *TOLD)
    with sessions.begin() as session:
        run = session.scalars(select(Run)).one()
        transition(session, run, Status.FAILED, actor="test", reason="silent for a week", now=clock.now)
    again = forecurve("run", "follow", log, *TOLD)
    assert (again.code, "nothing is sent" in again.err) == (0, True), again.err
    written(log, 30)
    forecurve("run", "follow", log, *TOLD).check_is_bad_input(["is over and has 3 of these 4 evaluations"])
    assert only_run(forecurve)["status"] == "failed"


def test_percentages_become_shares_by_their_range(forecurve: Forecurve, service: str, tmp_path: Path) -> None:
    log = tmp_path / "grpo.jsonl"
    written(log, 0, 10, scale=100.0)
    refused = forecurve("run", "follow", log, *TOLD, "--over")
    assert (refused.code, "--range: rewards from 0 to 1 are expected, got 20" in refused.err) == (2, True)
    assert forecurve("run", "follow", log, *TOLD, "--over", "--range", "0,100").code == 0
    assert [rate for _, rate in curve(forecurve, only_run(forecurve)["id"])] == pytest.approx([0.2, 0.31])


def test_what_cannot_be_followed_is_said_and_no_run_is_made(forecurve: Forecurve, service: str, tmp_path: Path) -> None:
    written(tmp_path / "a.jsonl", 0, 10)
    chart = tmp_path / "chart.csv"
    chart.write_text('"Step","a - eval/acc","b - eval/acc"\n0,0.2,0.3\n10,0.3,0.4\n')
    of_two = ("run", "follow", chart, "--per-step", "0.5", "--unit", "GPU-hours", "--over")
    several = forecurve(*of_two)
    assert (several.code, "--run: 2 runs are logged there" in several.err) == (2, True), several.err
    unit = forecurve("run", "follow", tmp_path / "a.jsonl", "--metric", METRIC, "--per-step", "0.5", "--over")
    assert (unit.code, "--unit" in unit.err) == (2, True), unit.err
    metric = forecurve("run", "follow", tmp_path / "a.jsonl", "--metric", "acc", "--over")
    assert (metric.code, METRIC in metric.err) == (2, True), metric.err
    seed = forecurve("run", "follow", tmp_path / "a.jsonl", *TOLD, "--arm", "base", "--over")
    assert (seed.code, "seed" in seed.err) == (2, True), seed.err
    assert forecurve("run", "list", "--json").json["items"] == []
    assert forecurve(*of_two, "--run", "a").code == 0
    assert only_run(forecurve)["name"] == "a"


def test_a_number_that_is_half_written_is_not_sent(
    forecurve: Forecurve, service: str, tmp_path: Path, meanwhile: Callable[..., None]
) -> None:
    log = tmp_path / "grpo.csv"
    log.write_text("step,eval/acc\n0,0.21\n10,0.")

    def goes_on(text: str) -> Callable[[], None]:
        return lambda: log.write_text(log.read_text() + text) and None

    meanwhile(goes_on("375\n20,0.4"), goes_on("75\n30,0.5"))
    told = ("run", "follow", log, "--unit", "GPU-hours", "--per-step", "1")
    forecurve(*told)
    run = only_run(forecurve)["id"]
    assert curve(forecurve, run) == [(0, 0.21), (10, 0.375), (20, 0.475)]
    forecurve(*told, "--over")
    assert curve(forecurve, run)[-1] == (30, 0.5)


def test_what_else_is_logged_there_meanwhile_leaves_the_curve_alone(
    forecurve: Forecurve, service: str, tmp_path: Path, meanwhile: Callable[..., None]
) -> None:
    log = tmp_path / "logs.csv"
    log.write_text("run,step,eval/acc,test/acc\na,0,0.2,\n")

    def appended(text: str) -> Callable[[], None]:
        return lambda: log.write_text(log.read_text() + text) and None

    meanwhile(appended("b,10,0.9,\n"), appended("a,10,0.3,\n"), appended("a,20,0.4,0.8\n"))
    answer = forecurve("run", "follow", log, "--unit", "GPU-hours", "--per-step", "1")
    assert "b is logged there too now; only a is followed" in answer.err
    assert "Not read" not in answer.err
    assert curve(forecurve, only_run(forecurve)["id"]) == [(0, 0.2), (10, 0.3), (20, 0.4)]


def test_seeds_of_one_log_are_not_followed_as_one_run(forecurve: Forecurve, service: str, tmp_path: Path) -> None:
    log = tmp_path / "seeds.csv"
    log.write_text("step,eval/acc,seed\n0,0.2,1\n0,0.3,2\n")
    answer = forecurve("run", "follow", log, "--unit", "GPU-hours", "--per-step", "1", "--over")
    assert (answer.code, "several seeds of seeds are logged there" in answer.err) == (2, True), answer.err
    assert forecurve("run", "list", "--json").json["items"] == []
