"""HTTP door of the metrics room."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["metrics"])
