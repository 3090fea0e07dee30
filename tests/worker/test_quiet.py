"""What an outage of the database leaves in the worker's log."""

from __future__ import annotations

import io
import logging

import pytest
from celery.signals import after_setup_logger
from sqlalchemy.exc import DBAPIError, OperationalError

import worker.app  # noqa: F401 - sets up what its log leaves out
from server.database import connected_once


@pytest.fixture
def logged() -> tuple[logging.Logger, io.StringIO]:
    """A logger as Celery sets one up, and what it wrote."""
    written = io.StringIO()
    logger = logging.Logger("set up")
    logger.addHandler(logging.StreamHandler(written))
    after_setup_logger.send(sender=None, logger=logger)
    return logger, written


def test_a_database_that_is_away_is_told_in_one_line(logged: tuple[logging.Logger, io.StringIO]) -> None:
    logger, written = logged
    try:
        with connected_once("postgresql://nobody:hunter2@127.0.0.1:9/none"):
            pass
    except OperationalError:
        logger.exception("Task %(name)s failed", {"name": "tick"})
    (line,) = written.getvalue().splitlines()
    assert line.startswith("Task tick failed (connection to server at")
    assert "port 9 failed" in line
    assert "hunter2" not in line


@pytest.mark.parametrize("error", [ValueError("ours"), DBAPIError("SELECT 1 / 0", {}, ValueError("division"))])
def test_any_other_fault_keeps_its_traceback(error: Exception, logged: tuple[logging.Logger, io.StringIO]) -> None:
    logger, written = logged
    try:
        raise error
    except Exception:
        logger.exception("Task failed")
    assert written.getvalue().startswith("Task failed\nTraceback")
