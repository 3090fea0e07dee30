"""The Celery application: short, idempotent, id-only tasks. A task is never the training run.

Redis is a doorbell: what is to be done stands in Postgres, and an empty Redis costs latency only. Hence late
acknowledgement and redelivery are safe, and no result is ever kept.

    python -m celery -A worker.app worker     consumes both queues, and publishes the outbox twice a second
    python -m celery -A worker.app beat       rings `tick` and `sweep_up`
"""

from __future__ import annotations

import logging
from typing import Any

import redis
from celery import Celery
from kombu.entity import Exchange, Queue
from kombu.exceptions import OperationalError

from server.settings import Settings, get_settings
from worker.context import TASK_S, BrokerDown
from worker.first_fit import warm_up_with
from worker.quiet import leave_out_no_news
from worker.schedule import beat_schedule
from worker.signs import leave_signs

CONTROL, WORK = "control", "work"
"""Queues. Slow tasks have their own, and workers take from both in turn: fits never hold up a launch."""

VISIBILITY_S = 300
"""When an unacknowledged message is delivered again. Five times the longest task, so never while one runs."""

_queue: Any = Queue  # kombu carries no types
_exchange: Any = Exchange

app = Celery("forecurve", include=["worker.tasks", "worker.ringer"])


def configuration(settings: Settings) -> dict[str, Any]:
    """Celery's configuration from ours."""
    return {
        "broker_url": settings.redis_url,
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,  # for ever: a worker that gave up would have to be noticed
        "broker_transport_options": {
            "visibility_timeout": VISIBILITY_S,
            "unacked_restore_interval": 10,
            "unacked_restore_throttle": 1,  # else only every tenth look restores
            "socket_connect_timeout": 3,
            "socket_timeout": 10,  # else a publish to a broker that vanished waits for ever
            "socket_keepalive": True,
            "health_check_interval": 10,
        },
        "result_backend_transport_options": {"visibility_timeout": VISIBILITY_S},
        "visibility_timeout": VISIBILITY_S,
        "task_acks_late": True,
        "task_reject_on_worker_lost": True,  # else a task whose process was killed counts as done
        "worker_prefetch_multiplier": 1,
        "task_ignore_result": True,
        "task_store_errors_even_if_ignored": False,
        "task_soft_time_limit": 45,
        "task_time_limit": TASK_S,
        "task_serializer": "json",
        "accept_content": ["json"],
        "enable_utc": True,
        "timezone": "UTC",
        "task_publish_retry_policy": {"max_retries": 1, "interval_start": 0.0, "interval_step": 0.1},
        "task_default_queue": CONTROL,
        # each with an exchange and key of its own: by default they would share one and get each other's messages
        "task_queues": [_queue(name, _exchange(name), routing_key=name) for name in (CONTROL, WORK)],
        "task_routes": {
            f"worker.tasks.{slow}": {"queue": WORK} for slow in ("refit", "compare", "deliver", "read_logs")
        },
        "worker_hijack_root_logger": False,
        "beat_schedule": beat_schedule(settings),
        "beat_scheduler": "worker.signs.Scheduler",
        "beat_max_loop_interval": max(min(settings.tick_s, 5.0), 0.1),
    }


logging.getLogger("httpx").setLevel(logging.WARNING)  # it would log a line for every look at the executor
leave_out_no_news()
leave_signs(app)
warm_up_with(app)

app.add_defaults(lambda: configuration(get_settings()))


def ring(task: str, *args: object, expires_s: float | None = None) -> None:
    """Publish a task by its registered name. Raises BrokerDown; see `worker.context.Ring`."""
    try:
        app.send_task(task, args=args, expires=expires_s, retry=True, retry_policy=app.conf.task_publish_retry_policy)
    except (OperationalError, redis.RedisError, OSError) as error:
        raise BrokerDown(f"{type(error).__name__}: {error}") from error
