"""HTTP door of the sweeps room."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["sweeps"])
