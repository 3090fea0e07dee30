"""Runs that are over elsewhere come in from a file, against the real API."""

from __future__ import annotations

from pathlib import Path

import pytest

from forecurve.client import init

from .conftest import Forecurve

ROWS = "series,compute,reward,prompts,samples,seed\n" + "".join(
    f"{name},{compute},{20 + 2 * compute + seed},512,4,{seed}\n"
    for name in ("base", "no-kl")
    for seed in (0, 1)
    for compute in (0, 2, 4, 8)
)
TASK = "gsm8k, 512 held-out prompts"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "curves.csv"
    path.write_text(ROWS)
    return path


def test_every_seed_of_a_series_becomes_a_run_that_is_over(forecurve: Forecurve, service: str, file: Path) -> None:
    told = ("run", "import", file, "--task", TASK, "--unit", "GPU-hours", "--range", "0,100", "--project", "lab")
    first = forecurve(*told)
    assert first.code == 0, first.err
    assert "4 of 4 runs are new" in first.out
    items = forecurve("run", "list", "--task", TASK, "--json").json["items"]
    assert {(one["name"], one["arm"], one["seed"], one["status"]) for one in items} == {
        (f"lab/{arm} (seed {seed})", arm, seed, "succeeded") for arm in ("base", "no-kl") for seed in (0, 1)
    }
    newest = next(one for one in items if one["name"] == "lab/no-kl (seed 1)")
    assert (newest["last_reward"], newest["last_compute"], newest["budget_compute"]) == (0.37, 8.0, 8.0)

    again = forecurve(*told, "--json").json["items"]
    assert [one["was_there"] for one in again] == [True] * 4
    assert "0 of 4 runs are new" in forecurve(*told).out


def test_a_run_that_has_gone_on_since_comes_in_once(forecurve: Forecurve, service: str, tmp_path: Path) -> None:
    file = tmp_path / "grows.csv"
    told = ("run", "import", file, "--task", TASK, "--unit", "GPU-hours")
    for points, said in ((5, "1 of 1 runs are new"), (6, "got 1 more evaluation\n"), (8, "got 2 more evaluations\n")):
        file.write_text("series,compute,reward\n" + "".join(f"x,{at},.{at}\n" for at in range(1, points + 1)))
        answer = forecurve(*told)
        assert said in answer.out, answer.err
    assert [one["last_compute"] for one in forecurve("run", "list", "--task", TASK, "--json").json["items"]] == [8.0]


def test_what_came_in_goes_out_as_it_was(forecurve: Forecurve, service: str, file: Path, tmp_path: Path) -> None:
    told = ("run", "import", file, "--task", TASK, "--unit", "steps", "--range", "0,100", "--series", "base", "--json")
    ids = [one["id"] for one in forecurve(*told).json["items"]]
    assert len(ids) == 2
    rows = forecurve("run", "export", *ids).out.splitlines()
    assert rows[0].startswith("series,")
    assert len(rows) == 1 + 8
    assert forecurve("run", "show", ids[0], "--json").json["last_step"] == 8  # compute is counted in them


def test_steps_beyond_what_the_service_takes_are_counted(forecurve: Forecurve, service: str, tmp_path: Path) -> None:
    frames = tmp_path / "frames.csv"
    frames.write_text("series,compute,reward\n" + "".join(f"x,{at}e9,.{at}\n" for at in range(1, 6)))
    answer = forecurve("run", "import", frames, "--task", TASK, "--unit", "steps")
    assert answer.code == 0, answer.err


def test_what_went_out_is_known_when_it_comes_in_again(
    forecurve: Forecurve, service: str, file: Path, tmp_path: Path
) -> None:
    told = ("run", "import", file, "--task", TASK, "--unit", "GPU-hours", "--range", "0,100", "--json")
    ids = [one["id"] for one in forecurve(*told).json["items"]]
    out = tmp_path / "out.csv"
    assert forecurve("run", "export", *ids, "-o", out).code == 0
    again = forecurve("run", "import", out, "--task", TASK)
    assert "0 of 4 runs are new" in again.out, again.out
    assert {line.split(",")[0] for line in out.read_text().splitlines()[1:]} == {"base", "no-kl"}


@pytest.mark.parametrize(("seed", "project"), [(None, None), (3, None), (None, "lab"), (3, "lab")])
def test_what_was_reported_here_is_known_when_it_comes_in_as_it_went_out(
    seed: int | None, project: str | None, forecurve: Forecurve, service: str, tmp_path: Path
) -> None:
    run = init("mine", project=project, task=TASK, unit="GPU-hours", seed=seed, directory=tmp_path)
    for step in (100, 200, 300, 400):
        run.log_evaluation(step=step, compute=step / 7, reward=0.1 + step / 1000, prompts=512, samples=4)
    run.finish()
    out, other = tmp_path / "out.csv", tmp_path / "other.csv"
    assert forecurve("run", "export", str(run.id), "-o", out).code == 0
    again = forecurve("run", "import", out, "--task", TASK, "--json").json["items"]
    assert [(one["id"], one["was_there"]) for one in again] == [(run.id, True)]
    for into in ("lab", "another lab"):
        told = forecurve("run", "import", out, "--task", TASK, "--project", into)
        assert f"{run.id}  {project + '/' if project else ''}mine  was there already" in told.out, told.out
    lines = out.read_text().splitlines()
    other.write_text("\n".join([lines[0], *lines[2:]]))  # without its first evaluation it is another curve
    for changed in ((other, "--task", TASK), (out, "--task", "another")):
        assert "1 of 1 runs are new" in forecurve("run", "import", *changed).out


@pytest.mark.parametrize("renamed", [False, True])
def test_what_went_out_of_a_project_or_was_renamed_is_known_too(
    renamed: bool, forecurve: Forecurve, service: str, file: Path, tmp_path: Path
) -> None:
    told = ("run", "import", file, "--task", TASK, "--unit", "GPU-hours", "--range", "0,100", "--project", "lab")
    ids = [one["id"] for one in forecurve(*told, "--json").json["items"]]
    if renamed:
        for number, run in enumerate(ids):
            assert forecurve("run", "rename", run, f"mine {number}").code == 0
    out = tmp_path / "out.csv"
    assert forecurve("run", "export", *ids, "-o", out).code == 0
    again = forecurve("run", "import", out, "--task", TASK)
    assert "0 of 4 runs are new" in again.out, again.out
    assert "0 of 4 runs are new" in forecurve(*told).out


def test_what_came_in_as_it_went_out_is_known_in_its_project(
    forecurve: Forecurve, service: str, file: Path, tmp_path: Path
) -> None:
    """Of a service that has it in a project to one that is new, and then from where that one had it."""
    out = tmp_path / "out.csv"
    out.write_text(file.read_text().replace("base,", "lab/base,").replace("no-kl,", "lab/no-kl,"))
    told = ("--task", TASK, "--unit", "GPU-hours", "--range", "0,100")
    assert "4 of 4 runs are new" in forecurve("run", "import", out, *told).out
    assert "0 of 4 runs are new" in forecurve("run", "import", file, *told, "--project", "lab").out


def test_another_arm_that_measured_the_same_is_another_run(forecurve: Forecurve, service: str, tmp_path: Path) -> None:
    same = tmp_path / "same.csv"
    rows = [f"{arm},{at},0.{at}5,0" for arm in ("base", "idle") for at in (1, 2, 3)]
    same.write_text("\n".join(["series,compute,reward,seed", *rows]))
    told = forecurve("run", "import", same, "--task", TASK, "--unit", "GPU-hours", "--project", "lab")
    assert "2 of 2 runs are new" in told.out, told.out


@pytest.mark.parametrize(
    ("told", "says"),
    [
        (["--unit", "GPU-hours"], "--task"),
        (["--task", TASK, "--range", "0,100"], "--unit"),
        (["--task", TASK, "--unit", "GPU-hours"], "reward"),  # in percent, and no --range
        (["--task", TASK, "--unit", "dollars", "--range", "0,100"], "run 'base (seed 0)', compute_unit"),
        (["--task", " ", "--unit", "GPU-hours", "--range", "0,100"], "task"),
        (["--task", TASK, "--unit", "GPU-hours", "--range", "0,100", "--series", "bass"], "base"),
    ],
)
def test_what_cannot_come_in_is_said_by_name(
    told: list[str], says: str, forecurve: Forecurve, service: str, file: Path
) -> None:
    answer = forecurve("run", "import", file, *told)
    assert (answer.code, says in answer.err) == (2, True), answer.err
    assert forecurve("run", "list", "--json").json["items"] == []


def test_runs_before_a_faulty_one_stay_and_the_others_come_with_the_same_command(
    forecurve: Forecurve, service: str, file: Path
) -> None:
    told = ("run", "import", file, "--task", TASK, "--unit", "GPU-hours", "--range", "0,100")
    right = file.read_text()
    file.write_text(right.replace("512,4,1\n", "512,99999,1\n"))
    faulty = forecurve(*told)
    assert (faulty.code, "run 'base (seed 1)', evaluations.0.samples" in faulty.err) == (2, True), faulty.err
    assert "1 runs are there by now" in faulty.err
    file.write_text(right)
    assert "3 of 4 runs are new" in forecurve(*told).out
