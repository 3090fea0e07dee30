"""A process that serves, as uvicorn starts it."""

from __future__ import annotations

import os
import subprocess
import sys


def test_what_the_application_is_made_of_is_not_looked_through_for_garbage() -> None:
    probe = (
        "import gc; from web.app import create_app; create_app(); print(gc.get_freeze_count(), len(gc.get_objects()))"
    )
    environment = os.environ | {"DATABASE_URL": "postgresql://nowhere/none"}
    ended = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, env=environment, timeout=60, check=True
    )
    frozen, left = map(int, ended.stdout.split())
    assert frozen > 100 * left
