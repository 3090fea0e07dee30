"""Work that several do at the same moment, as the service's processes may."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def at_once(times: int, work: Callable[[], Result]) -> list[Result]:
    """What `work` returns in each of so many threads that begin it together; raises what it raised in one of them."""
    start = threading.Barrier(times)

    def begin() -> Result:
        start.wait()
        return work()

    with ThreadPoolExecutor(times) as pool:
        begun = [pool.submit(begin) for _ in range(times)]
    return [each.result() for each in begun]
