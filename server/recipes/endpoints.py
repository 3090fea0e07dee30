"""HTTP door of the recipes room."""

from __future__ import annotations

from fastapi import APIRouter

router = APIRouter(tags=["recipes"])
