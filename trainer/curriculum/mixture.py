"""Which of several tasks each ordinal belongs to: shares that hold in every stretch of the order, not only at its end.

Tijdeman's solution of the chairman assignment problem (Discrete Mathematics 32, 1980): among those that have fallen
at least 1/(2k - 2) behind their share, whoever must be served soonest. After n choices every count is then within
1 - 1/(2k - 2) of n times its share, so any stretch of the order is within two of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

TOLERANCE = 1e-9
"""Slack for sums of shares that are not exact in binary."""


class Mixture:
    """An endless order of names in which each has its share. A pure function of weights and drops.

    `weights` need not sum to one; names without weight never come; ties go to the first. `drop` takes a
    name out from an ordinal on, `take_all` brings those that were dropped back.
    """

    def __init__(self, weights: Mapping[str, float]):
        self._weights = {name: weight for name, weight in weights.items() if weight > 0}
        self._segments: list[tuple[int, tuple[str, ...]]] = [(0, tuple(self._weights))]
        self._chosen: list[tuple[str, int]] = []
        self._drawn: Counter[str] = Counter()
        self._served: Counter[str] = Counter()

    @property
    def names(self) -> tuple[str, ...]:
        """Names that still come."""
        return self._segments[-1][1]

    def at(self, ordinal: int) -> tuple[str, int]:
        """Name of the task at `ordinal`, and how often it came before."""
        while len(self._chosen) <= ordinal:
            self._choose()
        return self._chosen[ordinal]

    def came_before(self, ordinal: int) -> Counter[str]:
        """How often each name came before `ordinal`."""
        if ordinal:
            self.at(ordinal - 1)
        return Counter(name for name, _ in self._chosen[:ordinal])

    def drop(self, name: str, ordinal: int) -> None:
        """From `ordinal` on, `name` comes no more; the others share what was its own. At least one must be left."""
        rest = tuple(other for other in self.names if other != name)
        assert rest, f"{name} is the only one left"
        self._segments.append((ordinal, rest))
        self._forget_choices()

    def take_all(self, ordinal: int) -> None:
        """From `ordinal` on, names that were dropped come again."""
        if self.names != tuple(self._weights):
            self._segments.append((ordinal, tuple(self._weights)))
            self._forget_choices()

    def state(self) -> list[list[object]]:
        """The drops and what came again after them, as JSON."""
        return [[start, list(names)] for start, names in self._segments]

    def load_state(self, state: Sequence[Sequence[object]]) -> None:
        """Back to `state`, of a mixture with the same weights."""
        self._segments = [(int(str(start)), tuple(names)) for start, names in state]  # type: ignore[arg-type]
        self._forget_choices()

    def _forget_choices(self) -> None:
        """They follow from the weights and the segments, and are made again when asked for."""
        self._chosen, self._drawn, self._served = [], Counter(), Counter()

    def _choose(self) -> None:
        ordinal = len(self._chosen)
        start, names = next(segment for segment in reversed(self._segments) if segment[0] <= ordinal)
        if ordinal == start:
            self._served.clear()
        name = self._most_urgent(names)
        self._chosen.append((name, self._drawn[name]))
        self._drawn[name] += 1
        self._served[name] += 1

    def _most_urgent(self, names: Sequence[str]) -> str:
        if len(names) == 1:
            return names[0]
        total, slack = sum(self._weights[name] for name in names), 1 / (2 * len(names) - 2)
        shares = {name: self._weights[name] / total for name in names}
        places = self._served.total() + 1
        behind = {name: shares[name] * places - self._served[name] for name in names}
        due = [name for name in names if behind[name] >= slack - TOLERANCE]
        return min(due, key=lambda name: (1 - slack - behind[name]) / shares[name])
