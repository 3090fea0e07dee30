"""Which runs are seeds of one arm: runs that differ in nothing but their seed tell more of one another."""

from __future__ import annotations

import re
from collections.abc import Sequence

_SEED = r"(?P<arm>.*\S)[\s:_./-]+\(?(?:seed|s)[\s:_=-]?{seed}\)?"


def arm_of(name: str, seed: int | None) -> str | None:
    """What all seeds of an arm have in common: the name without the seed, where it ends in it. None without a seed.

    >>> arm_of("control (seed 3)", 3), arm_of("dapo_s1", 1), arm_of("sac:reach:seed=2", 2)
    ('control', 'dapo', 'sac:reach')
    >>> arm_of("runs1", 1), arm_of("k32", 32), arm_of("dapo_s1", 2), arm_of("dapo_s1", None)
    ('runs1', 'k32', 'dapo_s1', None)
    """
    if seed is None:
        return None
    found = re.fullmatch(_SEED.format(seed=re.escape(str(seed))), name, re.IGNORECASE)
    return name if found is None else found["arm"]


def told_apart(arms: Sequence[str | None]) -> list[str]:
    """A name for each, where runs without an arm are one each."""
    return [f"\0{at}" if arm is None else arm for at, arm in enumerate(arms)]


def past_like(arms: Sequence[str | None], others: Sequence[int], arm: str | None) -> tuple[list[int], bool]:
    """Which of `others` stand to the rest as they all stand to a run of `arm`, and whether its seeds are among them.

    Where they are, all do, each with its own arm's other seeds among its past. Where they are not, one seed of each arm
    does, and its other seeds must be no part of its past: errors of runs whose arm was known say nothing of a new arm.
    """
    names = told_apart(arms)
    if arm is not None and any(arms[at] == arm for at in others):
        return list(others), True
    return list({names[at]: at for at in reversed(others)}.values())[::-1], False
