"""`forecurve run recipe` and `run forks`: what a run was made of, and what was made of it."""

from __future__ import annotations

from typing import Any

from ..asking.service import Answer, Service, asks_service
from ..given.flags import Limit, RunId


@asks_service
def recipe(service: Service, run_id: RunId) -> Answer:
    """Print a run's recipe in full. As a file it is what `run submit --recipe` takes."""
    found = service.api.recipe(run_id)
    return Answer(found, _as_yaml(found["recipe"]))


@asks_service
def forks(service: Service, run_id: RunId, limit: Limit = 50) -> Answer:
    """List the runs that began at a checkpoint of RUN, newest first."""
    from ..showing.output import newest, print_newest
    from ..showing.run_rows import NUMERIC, RUN_COLUMNS, RUN_SPARE, run_row

    found = newest(service.api.forks(run_id, limit=limit + 1), limit)
    if not found["items"]:
        return Answer(found, lambda: print(_no_forks(service.api.run(run_id))))
    return Answer(found, lambda: print_newest(found, RUN_COLUMNS, run_row, right=NUMERIC, spare=RUN_SPARE))


def _no_forks(run: dict[str, Any]) -> str:
    if run["executor"] == "external":
        return "No forks: its trainer was launched by you and keeps its checkpoints itself."
    return f"No forks. Try: forecurve run fork {run['id']} --set FIELD=VALUE"


def _as_yaml(body: dict[str, Any]) -> str:
    import yaml

    return yaml.safe_dump(body, sort_keys=False).rstrip()
