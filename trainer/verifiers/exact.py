"""Exact match: the answer as it stands, white space aside."""

from __future__ import annotations

from .text import final_part, last_boxed


def check(response: str, answer: str) -> bool:
    r"""True when the last `\boxed{}` of a response holds `answer`; without one, when its last line or all of it is."""
    text = final_part(response)
    boxed = last_boxed(text)
    lines = [line for line in text.splitlines() if line.strip()]
    stated = [boxed] if boxed is not None else [text, *lines[-1:]]
    return " ".join(answer.split()) in {" ".join(candidate.split()) for candidate in stated}
