"""What was read of rows that hardly change, in the memory of this process."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Remembered(Generic[Key, Value]):
    """Values by keys that name a version of what they were read from, so that none is ever stale.

    The `most` that were asked for last are kept. Threads may share it: two that miss the same value both read it.
    """

    def __init__(self, most: int):
        self._most = most
        self._kept: OrderedDict[Key, Value] = OrderedDict()
        self._turn = threading.Lock()

    def of(self, keys: Iterable[Key], read: Callable[[Sequence[Key]], Mapping[Key, Value]]) -> dict[Key, Value]:
        """The values of keys, in their order. What is not kept is read at one go; a key that `read` does not answer is
        left out, and asked for again the next time."""
        wanted = list(dict.fromkeys(keys))
        with self._turn:
            known = {key: self._kept[key] for key in wanted if key in self._kept}
        missing = [key for key in wanted if key not in known]
        if missing:
            known |= read(missing)
        found = {key: known[key] for key in wanted if key in known}
        self._keep(found)
        return found

    def clear(self) -> None:
        """Forget everything."""
        with self._turn:
            self._kept.clear()

    def __len__(self) -> int:
        return len(self._kept)

    def _keep(self, found: Mapping[Key, Value]) -> None:
        with self._turn:
            for key, value in found.items():
                self._kept[key] = value
                self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
