"""Tags and notes of runs and sweeps: given, changed, found by, told of in the history; faults are named."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import select, text
from sqlalchemy.orm import Session, sessionmaker

from forecurve.client.asking import Asked
from forecurve.client.errors import ClientError
from forecurve.limits import MOST_NOTE, MOST_TAGS
from server.labels.schemas import LabelChange, Labelled
from server.labels.service import relabel
from server.runs.models import Run
from server.runs.service import is_tagged
from tests.server.forecasts.seeds import make_sweep
from tests.server.reporting import Headers, external_run

LEAVE_ONE_OUT = {"preset": "scalerl", "design": {"kind": "leave_one_out", "ingredients": ["cispo"]}}


@pytest.fixture(params=["runs", "sweeps"])
def door(request: pytest.FixtureRequest, api: TestClient, headers: Headers, sessions: sessionmaker[Session]) -> str:
    """The door of a run, and that of a sweep."""
    if request.param == "runs":
        return f"/v1/runs/{external_run(api, headers).run_id}"
    with sessions.begin() as session:
        return f"/v1/sweeps/{make_sweep(session).id}"


def change(api: TestClient, headers: Headers, door: str, **body: Any) -> Any:
    return api.patch(door, json=body, headers=headers["operate"])


def test_tags_and_a_note_are_given_changed_and_taken_away(api: TestClient, headers: Headers, door: str) -> None:
    given = change(api, headers, door, tags=[" baseline ", "paper", "baseline"], note="why\r\nnot\t?  ").json()
    assert (given["tags"], given["note"]) == (["baseline", "paper"], "why\nnot\t?")
    both = change(api, headers, door, add_tags=["new", "paper"], remove_tags=["baseline", "unknown"]).json()
    assert (both["tags"], both["note"]) == (["paper", "new"], "why\nnot\t?")
    assert change(api, headers, door, note="").json()["note"] is None
    assert change(api, headers, door, tags=[]).json()["tags"] == []
    assert api.get(door, headers=headers["read"]).json()["tags"] == []


@pytest.mark.parametrize(
    ("body", "field", "words"),
    [
        ({"tags": ["a,b"]}, "tags", "comma"),
        ({"tags": [" "]}, "tags", "nothing that can be seen"),
        ({"tags": ["x" * 65]}, "tags", "64"),
        ({"tags": [f"t{k}" for k in range(21)]}, "tags", "20"),
        ({"add_tags": ["a\x1b[31m"]}, "add_tags", "command to a terminal"),
        ({"tags": ["a"], "add_tags": ["b"]}, "", "`tags` says all that it has"),
        ({"tags": None}, "tags", "list"),
        ({"note": "x" * 4001}, "note", "4000"),
        ({"note": "bell\x07"}, "note", "command to a terminal"),
    ],
)
def test_what_is_no_tag_and_no_note_is_refused_whole(
    api: TestClient, headers: Headers, door: str, body: dict[str, Any], field: str, words: str
) -> None:
    change(api, headers, door, tags=["kept"])
    answer = change(api, headers, door, **body)
    assert answer.status_code == 422
    (fault,) = answer.json()["errors"]
    assert fault["field"].startswith(field)
    assert words in fault["message"]
    assert api.get(door, headers=headers["read"]).json()["tags"] == ["kept"]


def test_a_tag_too_many_is_refused_by_what_there_is_already(api: TestClient, headers: Headers, door: str) -> None:
    change(api, headers, door, tags=[f"t{k}" for k in range(MOST_TAGS)])
    answer = change(api, headers, door, add_tags=["one more"])
    assert answer.status_code == 422
    assert "it would have 21 tags" in answer.json()["errors"][0]["message"]
    assert change(api, headers, door, add_tags=["one more"], remove_tags=["t0"]).status_code == 200


def test_lists_are_narrowed_to_what_has_all_of_the_tags(
    api: TestClient, headers: Headers, sessions: sessionmaker[Session]
) -> None:
    runs = [external_run(api, headers, tags=tags).run_id for tags in (["a", "b"], ["b"], [])]
    with sessions.begin() as session:
        sweeps = [make_sweep(session) for _ in range(3)]
        for sweep, tags in zip(sweeps, (["a", "b"], ["b"], []), strict=True):
            sweep.tags = tags
        ids = [sweep.id for sweep in sweeps]
    for kind, made in (("runs", runs), ("sweeps", ids)):
        for query, those in (("tag=b", made[1::-1]), ("tag=b&tag=a", made[:1]), ("tag=c", []), ("", made[::-1])):
            items = api.get(f"/v1/{kind}?{query}", headers=headers["read"]).json()["items"]
            assert [item["id"] for item in items] == those


def test_runs_are_found_by_the_tags_of_their_sweep_too(api: TestClient, headers: Headers) -> None:
    sweep = api.post("/v1/sweeps", json=LEAVE_ONE_OUT | {"tags": ["paper"]}, headers=headers["operate"]).json()
    first, second = (run["id"] for run in sweep["runs"])
    other = external_run(api, headers, tags=["paper"]).run_id
    change(api, headers, f"/v1/runs/{first}", tags=["odd"])
    for query, those in (("tag=paper", [other, second, first]), ("tag=paper&tag=odd", [first])):
        items = api.get(f"/v1/runs?{query}", headers=headers["read"]).json()["items"]
        assert [item["id"] for item in items] == those
    assert items[0]["tags"] == ["odd"]


def test_the_history_says_what_was_changed_and_nothing_where_nothing_was(
    api: TestClient, headers: Headers, door: str
) -> None:
    for _ in range(2):
        change(api, headers, door, tags=["a"], note="first")
    change(api, headers, door, add_tags=["b"])
    events = api.get("/v1/events?since=0", headers=headers["read"]).json()["items"]
    kind = "run" if "/runs/" in door else "sweep"
    changed = [event for event in events if event["kind"].endswith((".tagged", ".noted"))]
    assert [tuple(event[name] for name in ("kind", "from_state", "to_state", "evidence")) for event in changed] == [
        (f"{kind}.tagged", "no tags", "a", {"tags": ["a"]}),
        (f"{kind}.noted", None, None, {"note": "first"}),
        (f"{kind}.tagged", "a", "a, b", {"tags": ["a", "b"]}),
    ]


def test_what_is_new_may_have_them_from_the_beginning(api: TestClient, headers: Headers) -> None:
    labels = {"tags": ["ablation"], "note": "which ingredient matters"}
    sweep = api.post("/v1/sweeps", json=LEAVE_ONE_OUT | labels, headers=headers["operate"]).json()
    run = api.post("/v1/runs", json={"preset": "scalerl"} | labels, headers=headers["operate"]).json()
    old = {"name": "old", "compute_unit": "GPU-hours", "evaluations": [{"step": 1, "compute": 1.0, "reward": 0.5}]}
    came_in = api.post("/v1/runs:import", json=old | labels, headers=headers["operate"]).json()
    for made in (sweep, run, came_in):
        assert {name: made[name] for name in labels} == labels
    again = api.post("/v1/runs:import", json=old | {"tags": ["other"]}, headers=headers["operate"]).json()
    assert (again["was_there"], again["tags"]) == (True, ["ablation"])  # what it has is nobody's to lose


def test_a_sweep_gets_another_name(api: TestClient, headers: Headers, sessions: sessionmaker[Session]) -> None:
    with sessions.begin() as session:
        sweep = make_sweep(session).id
    assert change(api, headers, f"/v1/sweeps/{sweep}", name=" ours ").json()["name"] == "ours"
    assert [one["id"] for one in api.get("/v1/sweeps?name=ours", headers=headers["read"]).json()["items"]] == [sweep]
    for body in ({}, {"name": " "}, {"design": {"kind": "grid"}}):
        assert change(api, headers, f"/v1/sweeps/{sweep}", **body).status_code == 422
    assert change(api, headers, "/v1/sweeps/unknown", name="x").status_code == 404


def test_what_has_a_tag_is_found_by_the_index_of_tags(session: Session) -> None:
    session.execute(text("SET LOCAL enable_seqscan = off"))
    query = select(Run.id).where(is_tagged("a")).compile(session.get_bind())
    plan = session.connection().exec_driver_sql(f"EXPLAIN {query}", query.params).scalars()
    assert "ix_runs_tags" in "\n".join(plan)


SIGNS = st.text(st.sampled_from("a, \n\r\t\x0b\x1b\x1c\x1f\x85\u200b\u2028\u3000\U0001f600"), max_size=6)


@given(note=SIGNS, tags=st.lists(SIGNS, max_size=3))
def test_what_the_client_takes_is_taken_by_the_service(note: str, tags: list[str]) -> None:
    try:
        asked = Asked(note=note, tags=tags)
    except ClientError:
        return
    Labelled.model_validate({name: told for name, told in asked.new_run().items() if name in ("note", "tags")})


def test_a_long_note_with_the_ends_of_lines_of_windows_is_taken() -> None:
    Labelled.model_validate({"note": Asked(note="x\r\n" * (MOST_NOTE // 2)).new_run()["note"]})


TAGS = st.lists(st.sampled_from("abcdefghijklmnopqrstuvwxyz"), max_size=12)


@given(st.lists(st.tuples(TAGS, TAGS), max_size=6))
def test_any_changes_leave_what_was_added_last_and_not_removed(changes: list[tuple[list[str], list[str]]]) -> None:
    """Against a set that is kept beside it. Each once, and never more than there may be."""
    run, expected = SimpleNamespace(tags=[], note=None), set[str]()
    for added, removed in changes:
        after = (expected | set(added)) - set(removed)
        body = LabelChange(add_tags=added, remove_tags=removed)
        if len(after) > MOST_TAGS:
            with pytest.raises(Exception, match="tags"):
                relabel(run, body)  # type: ignore[arg-type]
            continue
        events = relabel(run, body)  # type: ignore[arg-type]
        assert bool(events) == (after != expected)
        expected = after
        assert (set(run.tags), len(run.tags)) == (expected, len(expected))
