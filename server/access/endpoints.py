"""HTTP door of the access room."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["access"])
