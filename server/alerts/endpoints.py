"""HTTP door of the alerts room."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["alerts"])
