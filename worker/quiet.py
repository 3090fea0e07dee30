"""What comes every two seconds and went well is no news: without it, a log of a week is one of a day's work. Nor is the
traceback of a database that is away."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from celery.signals import after_setup_logger, after_setup_task_logger

from server.outages import OutagesInOneLine
from worker.schedule import LOGS_TASK, SWEEP_TASK, TICK_TASK

_PERIODIC = frozenset({TICK_TASK, SWEEP_TASK, LOGS_TASK})
_TELL = ("celery.worker.strategy", "celery.app.trace", "celery.beat")
"""Celery's loggers that tell of every task: that it is due, came, and went well."""


class NoNews(logging.Filter):
    """Leaves out that a periodic task is due, came or went well; what goes wrong in one is above INFO."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno > logging.INFO or _task(record.args) not in _PERIODIC


def _task(told: object) -> object:
    """Its name: the worker tells it in a mapping, the scheduler last."""
    if isinstance(told, Mapping):
        return told.get("name")
    return told[-1] if isinstance(told, tuple) and told else None


def leave_out_no_news() -> None:
    """For this process; doing it twice is doing it once."""
    for name in _TELL:
        logger = logging.getLogger(name)
        if not any(isinstance(one, NoNews) for one in logger.filters):
            logger.addFilter(NoNews())


def tell_outages_in_one_line(logger: logging.Logger, **_: object) -> None:
    """Of a logger that Celery has set up."""
    for handler in logger.handlers:
        handler.addFilter(OutagesInOneLine())


after_setup_logger.connect(tell_outages_in_one_line)
after_setup_task_logger.connect(tell_outages_in_one_line)
