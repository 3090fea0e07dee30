"""What a fit says by itself is worked out once, however many families it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from ..fitting.fit import Fit

Said = TypeVar("Said")


def remembered(said_of: Callable[[Fit], Said]) -> Callable[[Fit], Said]:
    """The function of a fit alone, which keeps its answer as long as the fit is kept."""
    known: WeakKeyDictionary[Fit, Said] = WeakKeyDictionary()

    @wraps(said_of)
    def once(fit: Fit) -> Said:
        said = known.get(fit)
        if said is None:
            said = known[fit] = said_of(fit)
        return said

    return once
