"""A job's log as it is read: decoded from pieces cut anywhere, tidied by the line, and no more kept than is shown."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from worker.executors.job_log import CHARACTERS_KEPT, CUT, LINES_KEPT, LONGEST_LINE, JobLog, decoded, job_log

TEXT = st.text(st.characters(codec=None, categories=None) | st.sampled_from('\\"\n\r\t\x1bu\ud83d\ude00é'), max_size=60)


def _cut(body: bytes, places: list[int]) -> Iterator[bytes]:
    edges = sorted({0, len(body), *(place % (len(body) + 1) for place in places)})
    return (body[begin:end] for begin, end in pairwise(edges))


@given(TEXT, st.lists(st.integers(0, 400), max_size=12), st.booleans())
def test_any_text_is_decoded_from_pieces_cut_anywhere(text: str, places: list[int], escaped: bool) -> None:
    sent = text if escaped else text.encode(errors="replace").decode()
    body = json.dumps({"logs": sent}, ensure_ascii=escaped).encode()
    whole = "".join(decoded(_cut(body, places)))
    assert whole.encode("utf-16", "surrogatepass") == sent.encode("utf-16", "surrogatepass")


@given(TEXT, st.lists(st.integers(0, 60), max_size=8))
def test_a_text_that_comes_in_pieces_is_the_log_of_the_whole(text: str, places: list[int]) -> None:
    edges = sorted({0, len(text), *(place % (len(text) + 1) for place in places)})
    pieces = [text[begin:end] for begin, end in pairwise(edges)]
    assert job_log(pieces) == job_log([text])
    assert all(line == line.encode().decode() and "\x00" not in line for line in job_log([text]).ended.lines)


@pytest.mark.parametrize(
    "body", [b"", b"Internal Server Error", b'{"logs": "breaks o', b'{"logs": null}', b'{"logs": "\\x"}', b"x" * 5000]
)
def test_what_is_no_log_is_said_to_be_none(body: bytes) -> None:
    with pytest.raises(ValueError):
        list(decoded(iter([body])))


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("\x1b[36mstep 1\x1b[0m  ", "step 1"),
        ("token fc_ingest_abcdefghijkl", "token fc_ingest_..."),
        (" 10 %|#   |\r 20 %|##  |\r100 %|####|\r", "100 %|####|"),
        ("of Windows\r", "of Windows"),
        ("a\x00b\ud800c \ud83d\ude00", "ab\ufffdc \N{GRINNING FACE}"),
        ("x" * (LONGEST_LINE + 1_500), f"{'x' * LONGEST_LINE} {CUT}"),
    ],
)
def test_a_line_is_shown_as_a_terminal_would(printed: str, shown: str) -> None:
    assert job_log([f"{printed}\n"]) == JobLog(0, (shown,))


def test_what_ray_says_of_a_job_is_no_output_of_it() -> None:
    log = job_log(
        [
            "2026-11-21 01:48:18,234\tINFO job_manager.py:581 -- Runtime env is setting up.\n",
            "Running entrypoint for job run_1-a1: python -m trainer\nstep 0\n\nstep",
        ]
    )
    assert log == JobLog(0, ("step 0", ""), "step")
    assert log.ended == JobLog(0, ("step 0", "", "step"))
    assert log.tail() == "step 0\n\nstep"


def test_of_a_long_log_the_last_lines_are_kept_and_keep_their_numbers() -> None:
    log = job_log(f"{at}\n" for at in range(LINES_KEPT + 70))
    assert (log.first, len(log.lines), log.lines[0], log.lines[-1]) == (70, LINES_KEPT, "70", str(LINES_KEPT + 69))
    wide = job_log(f"{at:03000}\n" for at in range(200))
    assert wide.lines[-1] == f"{199:03000}"
    assert sum(len(line) + 1 for line in wide.lines) <= CHARACTERS_KEPT
    assert wide.first + len(wide.lines) == 200


@given(st.text("ab\r\n", max_size=40), st.integers(1, 7), st.integers(1, 30))
def test_a_line_that_goes_on_and_on_is_the_same_however_it_comes(text: str, size: int, times: int) -> None:
    text *= times
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("worker.executors.job_log._MOST_UNFINISHED", 16)
        patched.setattr("worker.executors.job_log.LONGEST_LINE", 5)
        assert job_log(pieces) == job_log([text])


def test_a_log_of_any_length_is_read_in_little_memory() -> None:
    bar = b'{"logs": "' + b"step of a bar\\r" * 1000
    rest = [b"step of a bar\\r" * 1000] * 300 + [b"a line of it\\n" * 1000] * 300
    tracemalloc.start()
    log = job_log(decoded(iter([bar, *rest, b'"}'])))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert log.first + len(log.lines) == 300_000
    assert most < 4_000_000
