"""Signs that a terminal or a browser obeys instead of showing them."""

from __future__ import annotations

import unicodedata

_TURNING = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")  # of the direction of what follows
SHOWN_AS = "\N{REPLACEMENT CHARACTER}"


def is_obeyed(sign: str) -> bool:
    """A control character, a line or paragraph break, half a surrogate pair, or a change of direction.

    >>> [is_obeyed(sign) for sign in "a\\n\\x1b\\u202e\\u200d"]
    [False, True, True, True, False]
    """
    return unicodedata.category(sign) in ("Cc", "Cs", "Zl", "Zp") or sign in _TURNING


def is_seen(text: str) -> bool:
    """Whether anything of it can be seen.

    >>> [is_seen(text) for text in ("a", " ", "\\u200b")]
    [True, False, False]
    """
    return any(sign.isprintable() and not sign.isspace() for sign in text)


def visible(text: str) -> str:
    """Safe to print on one line, wherever it comes from."""
    return "".join(SHOWN_AS if is_obeyed(sign) else sign for sign in text)
