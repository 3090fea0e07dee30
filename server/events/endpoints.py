"""HTTP door of the events room."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["events"])
