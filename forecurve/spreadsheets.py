"""Text in CSV that a spreadsheet would compute: who opens `=HYPERLINK(...)` is to see it, not to follow it.

An apostrophe before it makes it text. Reading takes that off again, so that names come back as they were: one that
begins with an apostrophe and such a sign itself gets one more.
"""

from __future__ import annotations

import re

_COMPUTED = re.compile(r"'*[=+\-@\t\r]")


def guarded(text: str) -> str:
    """The text as it is written; a number stays what it is.

    >>> [guarded(text) for text in ("=1+1", "-entropy", "'@me", "run a", "-0.5", "-Infinity")]
    ["'=1+1", "'-entropy", "''@me", 'run a', '-0.5', '-Infinity']
    """
    return f"'{text}" if _COMPUTED.match(text) and not _is_number(text) else text


def unguarded(text: str) -> str:
    """The text that was written.

    >>> [unguarded(text) for text in ("'=1+1", "''@me", "run a", "-0.5", "'tis")]
    ['=1+1', "'@me", 'run a', '-0.5', "'tis"]
    """
    return text[1:] if text[:1] == "'" and _COMPUTED.match(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
