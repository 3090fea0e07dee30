"""HTTP door of the checkpoints room."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["checkpoints"])
