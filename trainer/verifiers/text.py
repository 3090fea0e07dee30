"""What of a response counts as its answer."""

from __future__ import annotations

import re
import textwrap

THINKING_ENDS = "</think>"
_OPENING = re.compile(r"(?P<before>[^`]*+)(?P<mark>`{3,}+)\s*+\{?+\.?+(?P<language>[\w.+#-]*+)[^`]*+")
_PYTHON = re.compile(r"py(thon)?(3(\.\d+)*)?", re.IGNORECASE)
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
    """The last closed fenced block that is Python or says no language; None without one.

    Line by line, since only what came before tells a fence that opens a block from one that closes it: prose between
    two blocks stands between two fences as well.
    """
    found: str | None = None
    opening: re.Match[str] | None = None
    body: list[str] = []
    for line in text.split("\n"):
        if opening is None:
            opening, body = _opening(line), []
            continue
        rest = _before_closing(line, opening)
        if rest is None:
            body.append(line)
            continue
        if _is_python(opening):
            found = _program([*body, rest], opening)
        opening = None
    return found


def _opening(line: str) -> re.Match[str] | None:
    """The fence that opens a block at the end of a line. Behind prose it must say that Python comes."""
    fence = _OPENING.fullmatch(line)
    if fence is None or not fence["before"].strip() or _PYTHON.fullmatch(fence["language"]):
        return fence
    return None


def _before_closing(line: str, opening: re.Match[str]) -> str | None:
    """What stands in front of the fence that closes the block, mostly nothing; None where the line closes nothing.

    A fence that is much further in than the opening one is in a docstring (Markdown allows three spaces).
    """
    line = line.rstrip()
    code = line.rstrip("`")
    if len(line) - len(code) < len(opening["mark"]) or "`" in code:
        return None
    if not code.strip() and len(code) > len(_indent(opening)) + 3:
        return None
    return code.strip() and code


def _is_python(opening: re.Match[str]) -> bool:
    return not opening["language"] or _PYTHON.fullmatch(opening["language"]) is not None


def _program(lines: list[str], opening: re.Match[str]) -> str:
    """The block's lines; one inside a list is as far in as its fence."""
    program = "\n".join(lines)
    return textwrap.dedent(program) if _indent(opening) else program


def _indent(opening: re.Match[str]) -> str:
    before = opening["before"]
    return "" if before.strip() else before
