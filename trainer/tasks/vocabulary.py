"""The torus task's 24 tokens: one character each, and three that are no text."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

PAD, END, BEGIN = 0, 1, 2
CHARACTERS = "0123456789NSEW=>."
SIZE = 24
"""Named tokens rounded up to a multiple of 8; the rest are reserved and mean nothing."""

_OFFSET = BEGIN + 1
_IDS = {character: index + _OFFSET for index, character in enumerate(CHARACTERS)}
_TEXT = "_$^" + CHARACTERS + "?" * (SIZE - _OFFSET - len(CHARACTERS))
_TABLE = bytes(_TEXT, "ascii").ljust(256, b"?")


def encode(text: str) -> list[int]:
    """Token ids of a text; KeyError for a character that has no token."""
    return [_IDS[character] for character in text]


def texts(tokens: NDArray[np.int64], lengths: Sequence[int]) -> list[str]:
    """Readable text of each row of `tokens` [N, T], cut at `lengths` [N]; `$` stands for the end token."""
    width = tokens.shape[1]
    whole = tokens.astype(np.uint8).tobytes().translate(_TABLE).decode("ascii")
    return [whole[row * width : row * width + n] for row, n in zip(range(len(tokens)), lengths, strict=True)]
