"""What is in W&B's own file of a run (`run-ID.wandb`): its records, one after another.

The file is a log as LevelDB writes it, with a head and a checksum of W&B's own, and each record is a protobuf message.
Both are read here: `wandb` brings no reader of its files any more, and its messages change their Python with protobuf's
versions while their numbers stay.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import IO

HEAD = b":W&B\xe1\xbe\x00"  # name, magic number and version of the format
_BLOCK = 32_768  # bytes; no piece of a record goes beyond the end of one
_PIECE = struct.Struct("<IHB")  # checksum, length and kind of the piece that follows
_FULL, _FIRST, _MIDDLE, _LAST = 1, 2, 3, 4
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5  # how protobuf writes a value


class DamagedFile(ValueError):
    """A file is not as it was written."""


class Records:
    """The records of a file, in order; `whole` says how many of its bytes those are that were read.

    What is behind them was being written: a run that is killed, or still on its way, leaves half a record.
    """

    def __init__(self, stream: IO[bytes]):
        self._stream = stream
        self.whole = 0

    def __iter__(self) -> Iterator[bytes]:
        """Raises: DamagedFile: a piece is not what was written there."""
        head = self._stream.read(len(HEAD))
        if head != HEAD and HEAD.startswith(head):
            return  # the run has just begun
        if head != HEAD:
            raise DamagedFile("it begins unlike the files of this format's version 0")
        self.whole = at = len(HEAD)
        pieces: list[bytes] = []
        while True:
            at += self._skip_to_piece(at)
            piece = self._piece(at)
            if piece is None:
                return
            kind, data = piece
            if (kind in (_FULL, _FIRST)) == bool(pieces):
                raise DamagedFile(f"a record is cut at byte {at:,}")
            at += _PIECE.size + len(data)
            pieces.append(data)
            if kind in (_FULL, _LAST):
                self.whole = at
                yield b"".join(pieces)
                pieces.clear()

    def _skip_to_piece(self, at: int) -> int:
        """The end of a block that is too short for a piece is left empty."""
        left = _BLOCK - at % _BLOCK
        return len(self._stream.read(left)) if left < _PIECE.size else 0

    def _piece(self, at: int) -> tuple[int, bytes] | None:
        """None at the end of what was written."""
        head = self._stream.read(_PIECE.size)
        if len(head) < _PIECE.size:
            return None
        checksum, length, kind = _PIECE.unpack(head)
        if at % _BLOCK + _PIECE.size + length > _BLOCK:
            raise DamagedFile(f"byte {at:,} is not what was written there")
        data = self._stream.read(length)
        if len(data) < length:
            return None
        if not _FULL <= kind <= _LAST or zlib.crc32(data, zlib.crc32(bytes([kind]))) != checksum:
            raise DamagedFile(f"byte {at:,} is not what was written there")
        return kind, data


def fields_of(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Number and value of every field of a protobuf message: whole numbers as they are written, all else as bytes.

    >>> list(fields_of(bytes([0x08, 0x96, 0x01, 0x12, 0x02, 0x68, 0x69])))
    [(1, 150), (2, b'hi')]

    Raises:
        DamagedFile: it is no message.
    """
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if kind == _BYTES:
            length, at = _varint(message, at)
        elif kind in (_FIXED64, _FIXED32):
            length = 8 if kind == _FIXED64 else 4
        else:
            raise DamagedFile(f"field {number} of a record is of kind {kind}, which is none")
        if at + length > len(message):
            raise DamagedFile(f"field {number} of a record goes beyond its end")
        yield number, message[at : at + length]
        at += length


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A whole number in groups of seven bits, least first; and where it ends."""
    if at < len(message) and message[at] < 0x80:  # most are as short as that
        return message[at], at + 1
    value = shift = 0
    while True:
        if at >= len(message) or shift > 63:
            raise DamagedFile("a number in a record has no end")
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at += 1
        if byte < 0x80:
            return value, at
        shift += 7
