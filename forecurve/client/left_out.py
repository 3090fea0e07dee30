"""Evaluations that cannot be sent: the first is warned of, each is put aside, all are counted at the end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from forecurve.reports import as_json_number

from .once import Once
from .spool import Spool


class LeftOut:
    """Those of one attempt.

    Args:
        spool: of a disabled run there is none, and nothing is left out of it.
    """

    def __init__(self, spool: Spool | None, once: Once):
        self._spool, self._once = spool, once
        self._count = 0

    def add(self, evaluation: Mapping[str, Any], fault: str) -> None:
        self._once.say("evaluation", f"the evaluation at step {evaluation['step']} is left out: {fault}")
        self._count += 1
        if self._spool:
            shown = {name: as_json_number(one) if isinstance(one, float) else one for name, one in evaluation.items()}
            self._spool.put_aside({"kind": "evaluation", "body": shown}, {"detail": fault, "by": "client"})

    def say_all(self) -> None:
        """How many, where it is more than the one that was warned of."""
        if self._count > 1 and self._spool:
            self._once.say(
                "left-out", f"{self._count} evaluations were left out; {self._spool.rejected} says why of each"
            )
