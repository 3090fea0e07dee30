"""A checkpoint of transformers' Trainer as the service keeps note of it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

READ_WHOLE = 2**20
"""Bytes up to which a file is read for the digest. Weights are larger: to read them again would hold training up."""


@dataclass(frozen=True)
class Found:
    """A checkpoint's folder; `digest` is the sha256 of its manifest: names and sizes of all files, and the sha256 of
    the small ones, of which the trainer's state tells runs and steps apart."""

    path: Path
    digest: str
    size_bytes: int


def found(path: Path) -> Found | None:
    """The checkpoint at `path`; None when there is none."""
    files = sorted(file for file in path.rglob("*") if file.is_file())
    if not files:
        return None
    manifest = {file.relative_to(path).as_posix(): _entry(file) for file in files}
    body = json.dumps(manifest, sort_keys=True).encode()
    return Found(path.absolute(), hashlib.sha256(body).hexdigest(), sum(file.stat().st_size for file in files))


def _entry(file: Path) -> dict[str, int | str]:
    size = file.stat().st_size
    return {"size": size} | ({"sha256": hashlib.sha256(file.read_bytes()).hexdigest()} if size <= READ_WHOLE else {})
