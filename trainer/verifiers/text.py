"""What of a response counts as its answer."""

from __future__ import annotations

import re

THINKING_ENDS = "</think>"
_FENCED = re.compile(r"```[ \t]*(?:python3?|py)?[ \t]*\n(.*?)```", re.DOTALL | re.IGNORECASE)
_BOXED = re.compile(r"\\boxed\s*\{")


def final_part(response: str) -> str:
    """What stands behind the last end of thinking; the whole response where nothing ends it."""
    return response.rpartition(THINKING_ENDS)[2]


def last_boxed(text: str) -> str | None:
    r"""What the last complete `\boxed{...}` holds, braces inside it matched; None without one."""
    for opened in reversed(list(_BOXED.finditer(text))):
        depth = 1
        for place in range(opened.end(), len(text)):
            depth += {"{": 1, "}": -1}.get(text[place], 0)
            if depth == 0:
                return text[opened.end() : place]
    return None


def last_code_block(text: str) -> str | None:
    """The last fenced block that is Python or says no language; None without one."""
    blocks = _FENCED.findall(text)
    return blocks[-1] if blocks else None
