"""The spool: on disk before it is sent, replayed under the same number after a crash."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

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

    assert (tmp_path / "queue.jsonl").stat().st_size == 0
    again = Spool(tmp_path)
    assert again.seal_batch({}).body["seq"] == 2


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
