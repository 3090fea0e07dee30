"""Tags and notes from the command line, against the real API."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from forecurve.client import Api

from .conftest import Forecurve

SWEEP = """
name: ablation
preset: scalerl
design: {kind: leave_one_out, ingredients: [cispo]}
tags: [from the file, paper]
note: which ingredient matters
"""


def test_a_run_is_tagged_found_by_its_tags_and_untagged(forecurve: Forecurve, service: str) -> None:
    run = forecurve(
        "run", "submit", "--preset", "scalerl", "--name", "a", "--tag", "new", "--note", "why", "--json"
    ).json
    assert (run["tags"], run["note"]) == (["new"], "why")
    forecurve("run", "submit", "--preset", "scalerl", "--name", "b")
    assert "tags" not in forecurve("run", "list", "--tag", "unknown").out
    assert forecurve("run", "tag", "a", "baseline", "for the paper").out.endswith("  new, baseline, for the paper\n")
    found = forecurve("run", "list", "--tag", "baseline", "--tag", "new", "--json").json["items"]
    assert [one["id"] for one in found] == [run["id"]]
    table = forecurve("run", "list").out
    assert "tags" in table.splitlines()[0]
    assert "new, baseline, for the paper" in table
    assert forecurve("run", "tag", "a", "--remove", "new", "--remove", "unknown").out.endswith(
        "  baseline, for the paper\n"
    )
    assert "tags        baseline, for the paper" in forecurve("run", "show", "a").out
    assert "No such runs." in forecurve("run", "list", "--tag", "new").out
    assert forecurve("run", "tag", "a", "--none").out.endswith("  no tags\n")
    assert forecurve("run", "tag", "a").out.endswith("  no tags\n")
    assert "tags" not in forecurve("run", "list").out


def test_a_note_has_lines_and_is_shown_written_and_taken_away(
    forecurve: Forecurve, service: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = forecurve("run", "submit", "--preset", "scalerl", "--name", "a", "--json").json["id"]
    assert forecurve("run", "note", "a").out == f"{run} has no note\n"
    monkeypatch.setattr("sys.stdin", io.StringIO("first line\n\tsecond\n"))
    assert forecurve("run", "note", "a", "-").out == "first line\n    second\n"
    assert "note        first line\n                  second" in forecurve("run", "show", "a").out
    assert forecurve("run", "note", "a").out == "first line\n    second\n"
    assert forecurve("run", "note", "a", "--none").out == f"{run} has no note\n"


def test_a_sweep_has_a_name_tags_and_a_note(forecurve: Forecurve, service: str, tmp_path: Path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(SWEEP)
    assert forecurve("sweep", "plan", file).code == 0
    sweep = forecurve("sweep", "submit", file, "--tag", "given", "--json").json
    assert (sweep["tags"], sweep["note"]) == (["given"], "which ingredient matters")
    assert forecurve("sweep", "tag", "ablation", "baseline").out == f"{sweep['id']}  given, baseline\n"
    assert forecurve("sweep", "note", "ablation", "it was CISPO").out == "it was CISPO\n"
    assert forecurve("sweep", "rename", "ablation", "ours").out == f"{sweep['id']}  ours\n"
    shown = forecurve("sweep", "show", "ours").out
    assert "Tags: given, baseline\n\nit was CISPO\n" in shown
    assert [one["id"] for one in forecurve("sweep", "list", "--tag", "given", "--json").json["items"]] == [sweep["id"]]
    assert forecurve("sweep", "list", "--tag", "unknown").out == "No such sweeps.\n"


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("run", "tag", "a", "x", "--none"), "--none: it is given with tags"),
        (("run", "note", "a", "x", "--none"), "--none: it is given with a text"),
        (("run", "tag", "a", "x,y"), "comma"),
        (("run", "note", "a", "x" * 4001), "4000"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    forecurve: Forecurve, service: str, command: tuple[str, ...], words: str
) -> None:
    forecurve("run", "submit", "--preset", "scalerl", "--name", "a", "--tag", "kept")
    refused = forecurve(*command)
    assert refused.code == 2
    assert words in refused.err
    assert forecurve("run", "tag", "a").out.endswith("  kept\n")


def test_from_python_labels_are_words_of_a_call(service: str, forecurve: Forecurve) -> None:
    run = forecurve("run", "submit", "--preset", "scalerl", "--json").json["id"]
    with Api(service, os.environ["FORECURVE_TOKEN"]) as api:
        assert api.label_run(run, add_tags=["a"], note="n")["tags"] == ["a"]
        assert [one["id"] for one in api.runs(tag=["a"])] == [run]
        assert api.label_run(run, note=None)["note"] is None
