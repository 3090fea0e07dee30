"""The spool: on disk before it is sent, replayed under the same number after a crash."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forecurve.client.lock import InUse
from forecurve.client.spool import COMPACT_BYTES, Spool


def test_entries_come_back_in_order_and_batches_are_numbered_from_one(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.seal_batch({"points": ["a"]})
    spool.seal("checkpoint", {"step": 1})
    spool.seal_batch({"points": ["b"]})

    taken = []
    while entry := spool.first():
        taken.append((entry.kind, entry.body.get("seq")))
        spool.settle(entry)

    assert taken == [("metrics", 1), ("checkpoint", None), ("metrics", 2)]


def test_a_reopened_spool_gives_unsettled_entries_again_with_the_same_number(tmp_path: Path) -> None:
    first = Spool(tmp_path)
    for value in "abc":
        first.seal_batch({"points": [value]})
    first.settle(first.first())  # type: ignore[arg-type]
    first.close()

    again = Spool(tmp_path)
    entry = again.first()

    assert again.waiting == 2
    assert entry is not None
    assert entry.body == {"points": ["b"], "seq": 2}
    assert again.seal_batch({"points": ["d"]}).body["seq"] == 4


def test_a_line_cut_by_a_crash_is_left_out_and_its_number_given_again(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.seal_batch({"points": ["whole"]})
    spool.close()
    with (tmp_path / "queue.jsonl").open("ab") as file:
        file.write(b'{"n":2,"kind":"metrics","body":{"seq":2,"poi')

    again = Spool(tmp_path)

    assert again.waiting == 1
    assert again.seal_batch({"points": ["next"]}).body["seq"] == 2
    again.close()
    assert [json.loads(line)["n"] for line in (tmp_path / "queue.jsonl").read_text().splitlines()] == [1, 2]


def test_a_settled_queue_is_emptied_when_large_and_numbers_go_on(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.seal_batch({"points": ["x" * (COMPACT_BYTES + 1)]})
    spool.settle(spool.first())  # type: ignore[arg-type]
    spool.close()

    assert (tmp_path / "queue.jsonl").stat().st_size < 100
    again = Spool(tmp_path)
    assert again.waiting == 0
    assert again.seal_batch({}).body["seq"] == 2


def test_numbers_are_not_given_again_where_a_crash_of_the_machine_cost_the_note_of_them(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    entry = spool.seal_batch({"points": ["x" * (COMPACT_BYTES + 1)]})
    spool.settle(entry)
    spool.close()
    (tmp_path / "settled.json").write_text("")

    again = Spool(tmp_path)
    assert (again.waiting, again.first()) == (0, None)
    following = again.seal_batch({"points": ["y"]})
    assert (following.n > entry.n, following.body["seq"]) == (True, 2)


def test_a_refused_entry_is_kept_aside_with_the_answer(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    entry = spool.seal_batch({"points": ["a"]})
    spool.reject(entry, {"status": 422, "detail": "no"})

    kept = json.loads((tmp_path / "rejected.jsonl").read_text())

    assert spool.first() is None
    assert kept["body"] == {"points": ["a"], "seq": 1}
    assert kept["answer"]["detail"] == "no"


def test_halves_take_the_place_of_a_divided_batch_over_restarts(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.seal_batch({"points": list("abcd"), "evaluations": []})
    spool.seal("outcome", {"outcome": "succeeded"})
    assert spool.divide(spool.first())  # type: ignore[arg-type]
    spool.settle(spool.first())  # type: ignore[arg-type]
    spool.close()

    again = Spool(tmp_path)
    assert again.divide(again.first())  # type: ignore[arg-type]
    taken = []
    while entry := again.first():
        taken.append((entry.body.get("points"), entry.body.get("seq")))
        again.settle(entry)

    assert taken == [(["c"], 4), (["d"], 5), (None, None)]
    assert again.seal_batch({}).body["seq"] == 6


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("full_after", [0, 1])
def test_a_disk_that_fills_while_a_batch_is_divided_doubles_no_half(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full_after: int, restarted: bool
) -> None:
    spool = Spool(tmp_path)
    spool.seal_batch({"points": list("abcd"), "evaluations": []})
    batch, fsync, left = spool.first(), os.fsync, iter([True] * full_after)
    assert batch

    def full(file: int) -> None:
        if not next(left, False):
            raise OSError(28, "No space left on device")
        fsync(file)

    with monkeypatch.context() as patch, suppress(OSError):
        patch.setattr(os, "fsync", full)
        spool.divide(batch)
    if restarted:
        spool.close()
        spool = Spool(tmp_path)
    if (entry := spool.first()) and entry.n == batch.n:
        assert spool.divide(entry)

    assert waiting(spool) == list("abcd")
    spool.close()


def with_damage(directory: Path, line: int, damage: bytes) -> None:
    """Four batches, a to d, of which the first was taken; then a line of the queue is replaced."""
    spool = Spool(directory)
    for value in "abcd":
        spool.seal_batch({"points": [value]})
    spool.settle(spool.first())  # type: ignore[arg-type]
    spool.close()
    queue = directory / "queue.jsonl"
    lines = queue.read_bytes().splitlines(keepends=True)
    lines[line] = damage + b"\n"
    queue.write_bytes(b"".join(lines))


def waiting(spool: Spool) -> list[str]:
    found = []
    while entry := spool.first():
        found += entry.body["points"]
        spool.settle(entry)
    return found


DAMAGES = [
    b"\0" * 40,
    b'{"n":3',
    b"\xff\xfe",
    b"[1]",
    b'{"n":"3","kind":"metrics","body":{}}',
    b'{"n":3,"kind":"x","body":{}}',
]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_line_is_put_aside_with_a_warning_and_the_rest_is_kept(
    tmp_path: Path, damage: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    with_damage(tmp_path, 2, damage)

    spool = Spool(tmp_path)

    (aside,) = [json.loads(line) for line in (tmp_path / "rejected.jsonl").read_text().splitlines()]
    assert aside["line"] == damage.decode("utf-8", "backslashreplace")
    assert "damaged" in aside["answer"]["detail"]
    assert "damaged" in caplog.text
    assert waiting(spool) == ["b", "d"]
    assert b"\0" not in (tmp_path / "queue.jsonl").read_bytes()
    spool.close()
    Spool(tmp_path).close()
    assert len((tmp_path / "rejected.jsonl").read_text().splitlines()) == 1, "said once, not at every start"


def test_damage_to_what_was_taken_long_ago_is_no_news(tmp_path: Path) -> None:
    with_damage(tmp_path, 0, b"\0\0")
    assert waiting(Spool(tmp_path)) == ["b", "c", "d"]


def test_the_numbers_of_a_damaged_line_are_not_given_again(tmp_path: Path) -> None:
    with_damage(tmp_path, 3, b"\0\0")
    Spool(tmp_path).close()

    entry = Spool(tmp_path).seal_batch({"points": ["next"]})

    assert entry.body["seq"] >= 5
    assert entry.n >= 5


def test_a_line_that_is_damaged_while_the_spool_is_open_does_not_hold_up_the_next(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.seal_batch({"points": ["a"]})
    spool.seal_batch({"points": ["b"]})
    with (tmp_path / "queue.jsonl").open("r+b") as file:
        file.write(b"\0\0\0")

    assert waiting(spool) == ["b"]


def test_a_queue_that_something_else_emptied_gets_no_hole(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    spool.seal_batch({"points": ["a"]})
    os.truncate(tmp_path / "queue.jsonl", 0)
    assert spool.seal_batch({"points": ["b"]}).body["seq"] == 2
    entry = spool.first()
    spool.close()

    assert entry is not None
    assert entry.body["points"] == ["b"]
    assert (tmp_path / "queue.jsonl").read_bytes().count(b"\0") == 0
    assert waiting(Spool(tmp_path)) == ["b"]


def test_what_a_full_disk_took_of_a_line_is_cut_off_before_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path)

    def full(file: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            spool.seal("checkpoint", {"step": 1})
    spool.seal("checkpoint", {"step": 1})
    spool.close()

    assert [json.loads(line)["n"] for line in (tmp_path / "queue.jsonl").read_text().splitlines()] == [1]


def test_one_spool_at_a_time_has_a_directory_and_the_other_hears_which_process_it_is(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    with pytest.raises(InUse, match=f"still being written by process {os.getpid()} on .*; let it finish"):
        Spool(tmp_path)
    spool.close()
    Spool(tmp_path).close()


def test_a_forked_process_that_outlives_the_writer_does_not_hold_its_lock(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    end, begin = os.pipe()
    hear, say = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(begin)
        os.write(say, b"!")
        os.read(end, 1)  # lives until the parent lets go of the pipe
        os._exit(0)
    try:
        os.read(hear, 1)
        with pytest.raises(InUse):
            Spool(tmp_path)
        spool._writer.leave()  # as a kill of the writer does: nothing is unlocked, its files are closed
        Spool(tmp_path).close()
    finally:
        for pipe in (begin, end, hear, say):
            os.close(pipe)
        os.waitpid(child, 0)


def test_a_closed_spool_changes_nothing_any_more(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    entry = spool.seal_batch({"points": ["a"]})
    spool.close()
    spool.settle(entry)  # the answer came too late

    assert spool.first() is None
    assert waiting(Spool(tmp_path)) == ["a"]


@given(st.lists(st.sampled_from(["seal", "settle", "reopen"]), max_size=30))
def test_no_order_of_seals_settles_and_restarts_loses_or_repeats_a_number(tmp_path_factory, steps: list[str]) -> None:
    directory = tmp_path_factory.mktemp("spool")
    spool, sealed, settled = Spool(directory), [], []
    for step in steps:
        if step == "seal":
            sealed.append(spool.seal_batch({}).body["seq"])
        elif step == "settle" and (entry := spool.first()):
            settled.append(entry.body["seq"])
            spool.settle(entry)
        elif step == "reopen":
            spool.close()
            spool = Spool(directory)
    while entry := spool.first():
        settled.append(entry.body["seq"])
        spool.settle(entry)
    spool.close()

    assert settled == sealed == list(range(1, len(sealed) + 1))
