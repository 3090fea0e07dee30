"""Ids: unique, and in the order in which they were made, however fast."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from server.database import is_id, new_id


def test_ids_made_at_once_stay_in_order() -> None:
    made = [new_id("run") for _ in range(5000)]  # some thousand of them in one millisecond
    assert made == sorted(made)
    assert len(set(made)) == len(made)
    assert all(is_id(one, prefix="run") for one in made)


def test_threads_never_share_an_id() -> None:
    with ThreadPoolExecutor(4) as pool:
        made = [one for batch in pool.map(lambda _: [new_id("run") for _ in range(500)], range(8)) for one in batch]
    assert len(set(made)) == len(made)
