"""HTTP door of the forecasts room."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["forecasts"])
