"""Names where ids are taken: runs, sweeps, channels and tokens, when the name is one thing's alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sqlalchemy.orm import Session, sessionmaker

from .conftest import Forecurve
from .seeded import seeded_advice, seeded_run

UNKNOWN = "run_00000000000000000000000000"


def test_a_run_is_found_by_its_name_wherever_its_id_is_taken(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session]
) -> None:
    run_id, other = seeded_run(sessions, "lab/my run"), seeded_run(sessions, "other")
    advice = seeded_advice(sessions, run_id)

    assert forecurve("run", "show", "lab/my run", "--json").json["id"] == run_id
    for command in ("recipe", "forks", "checkpoints", "attempts", "events", "metrics", "export"):
        assert forecurve("run", command, "lab/my run").code == 0, command
    assert len(forecurve("run", "export", "lab/my run", "other", other).out.splitlines()) == 1 + 2 * 21
    listed = forecurve("advice", "list", "--run", "lab/my run", "--json").json["items"]
    assert [one["id"] for one in listed] == [advice]
    assert forecurve("run", "rename", "lab/my run", "renamed").out.split() == [run_id, "renamed"]
    assert forecurve("run", "stop", "renamed").code == 0


def test_several_runs_of_one_name_are_told_apart_by_their_ids(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session]
) -> None:
    ids = [seeded_run(sessions, "twin", until=0) for _ in range(2)]
    shown = forecurve("run", "show", "twin")
    assert (shown.code, shown.out) == (2, "")
    several = f"RUN: 2 runs are called 'twin', newest first {ids[1]}, {ids[0]}"
    assert shown.err == f"forecurve: {several}; give an id, `forecurve run list` shows them\n"

    for _ in range(4):
        seeded_run(sessions, "twin", until=0)
    many = json.loads(forecurve("run", "stop", "twin", "--json").err)
    assert "more than 5 runs are called 'twin'" in many["error"]
    assert many["error"].count("run_") == 5
    assert (many["code"], many["errors"][0]["field"], many["errors"][0]["value"]) == ("invalid", "run_id", "twin")


def test_an_archived_run_is_meant_where_no_other_is_called_so_and_by_restore(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session]
) -> None:
    put_away = seeded_run(sessions, "again", status="succeeded", until=0)
    forecurve("run", "archive", "again")
    assert forecurve("run", "show", "again", "--json").json["id"] == put_away
    listed = seeded_run(sessions, "again", until=0)
    assert forecurve("run", "show", "again", "--json").json["id"] == listed
    assert forecurve("run", "restore", "again").out.startswith(put_away)


@pytest.mark.parametrize("name", ["my-run", "no such run", UNKNOWN])
def test_what_is_neither_an_id_nor_a_name_is_said_with_the_way_out(
    forecurve: Forecurve, service: str, name: str
) -> None:
    shown = forecurve("run", "show", name)
    assert shown.code == 2
    assert name in shown.err
    assert "`forecurve run list`" in shown.err


def test_a_run_of_a_project_is_named_with_it(
    forecurve: Forecurve, service: str, sessions: sessionmaker[Session]
) -> None:
    for name in ("lab/my-run", "lab/my-run", "other/my-run", "lab/not-my-run"):
        seeded_run(sessions, name, until=0)
    forecurve("run", "show", "my-run").check_is_bad_input(
        ["RUN: no run is called 'my-run'; did you mean 'other/my-run' or 'lab/my-run'?"]
    )


def test_sweeps_channels_and_tokens_have_names_too(forecurve: Forecurve, admin: str, tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text("name: what matters\npreset: scalerl\ndesign: {kind: leave_one_out, ingredients: [cispo]}\n")
    sweep = forecurve("sweep", "submit", file, "--json").json["id"]
    assert forecurve("sweep", "show", "what matters", "--json").json["id"] == sweep
    assert len(forecurve("run", "list", "--sweep", "what matters", "--json").json["items"]) == 2
    assert forecurve("sweep", "stop", "what matters").out.startswith(sweep)
    forecurve("sweep", "submit", file)
    assert "2 sweeps are called 'what matters'" in forecurve("sweep", "show", "what matters").err

    forecurve("channel", "add", "ops", "--kind", "webhook", "--to", "https://example.com/x")
    assert forecurve("channel", "remove", "ops").code == 0
    assert "no channel is called 'the ops'" in forecurve("channel", "remove", "the ops").err

    forecurve("token", "create", "ci", "--scope", "read")
    assert "ci is revoked" in forecurve("token", "revoke", "ci").out
    assert forecurve("token", "revoke", "ci").code == 2, "a token that is revoked has given up its name"


def test_a_secret_given_for_a_name_is_neither_sent_nor_shown(forecurve: Forecurve, admin: str) -> None:
    secret = forecurve("token", "create", "ci", "--scope", "read", "--quiet").out.strip()
    shown = forecurve("token", "revoke", secret)
    assert shown.code == 2
    assert "the secret of a token" in shown.err
    assert secret not in shown.err
