"""HTTP door of the runs room."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["runs"])
