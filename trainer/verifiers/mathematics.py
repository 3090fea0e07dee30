"""Mathematical answers, compared by math-verify (sympy): 1/2 is 0.5 is \\frac{1}{2} (ScaleRL A.3).

Runs in a worker process: sympy can take for ever and all memory on what a model writes.
"""

from __future__ import annotations

import logging

from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

from .text import final_part, last_boxed

logging.getLogger("math_verify").setLevel(logging.ERROR)  # it warns that its own time limits are off; ours is outside


def check(response: str, answer: str) -> bool:
    r"""True when the last `\boxed{}` of a response, or else its last expression, equals `answer`."""
    text = final_part(response)
    boxed = last_boxed(text)
    stated = _parsed(text if boxed is None else rf"\boxed{{{boxed}}}")
    return bool(stated) and bool(verify(_parsed(rf"\boxed{{{answer}}}"), stated, timeout_seconds=None))


def _parsed(text: str) -> list[object]:
    wanted = (LatexExtractionConfig(boxed_match_priority=0), ExprExtractionConfig())
    found: list[object] = parse(text, wanted, parsing_timeout=None)
    return found
