"""`forecurve run import`: runs that are over elsewhere come into the service, from a file of curves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..asking.service import Answer, Service, asks_service
from ..given.curves import CurveFile, Range, read_arms, read_long_arms
from ..given.flags import NewTags

if TYPE_CHECKING:
    from forecurve.science import Curve


@asks_service
def import_runs(
    service: Service,
    file: CurveFile,
    task: Annotated[
        str, typer.Option("--task", help="What is trained and evaluated; runs of one task tell of one another.")
    ],
    unit: Annotated[str | None, typer.Option("--unit", help="Unit of compute; else the file's column `unit`.")] = None,
    series: Annotated[list[str] | None, typer.Option("--series", help="Only this series; may be repeated.")] = None,
    project: Annotated[str | None, typer.Option("--project", help="Runs are called PROJECT/SERIES.")] = None,
    tags: NewTags = None,
    range_: Range = None,
) -> Answer:
    """Bring finished runs into the service, from a file as `forecurve fit` reads it: the past of runs to come.

    forecurve run import curves.csv --task "gsm8k, 512 held-out prompts" --unit GPU-hours

    Each series, or each seed of one, becomes a run that is over, with what it spent as its budget. The same runs again
    change nothing; one that has more evaluations by now gets these. Rewards of another range than 0 to 1 (--range) are
    kept as shares of it.
    """
    from forecurve.science.curves.curve import DEFAULT_UNIT

    from ..errors import bad_input

    arms = read_arms(file, unit, range_, series) if series else read_long_arms(file, unit, range_)
    if next(iter(arms.values()))[0].unit == DEFAULT_UNIT:
        raise bad_input(f"--unit: {file.name} does not say in what compute is counted; give one such as GPU-hours")
    found: list[dict[str, Any]] = []
    for body in _bodies(arms, task, project):
        found.append(_taken(service, body | {"tags": tags or []}, len(found)))
    return Answer({"items": found}, lambda: _say(found))


def _taken(service: Service, body: dict[str, Any], before: int) -> dict[str, Any]:
    from forecurve.client.errors import ApiError

    try:
        return service.api.import_run(body)
    except ApiError as error:
        for fault in error.errors:
            fault["field"] = f"run {body['name']!r}, {fault['field']}"
        if before:
            typer.echo(f"{before} runs are there by now; the same command again goes on with the others.", err=True)
        raise


def _bodies(arms: dict[str, list[Curve]], task: str, project: str | None) -> Iterator[dict[str, Any]]:
    from forecurve.client.importing import import_body

    for arm, curves in arms.items():
        for curve in curves:
            yield import_body(curve, task, name=_in_project(curve.name, project), arm=arm)


def _in_project(name: str, project: str | None) -> str:
    """What went out of the project has its name already."""
    return f"{project}/{name}" if project and not name.startswith(f"{project}/") else name


def _say(found: list[dict[str, Any]]) -> None:
    from ..showing.output import line_of

    for run in found:
        print(line_of(f"{run['id']}  {run['name']}{_before(run)}"))
    new = sum(not run["was_there"] for run in found)
    print(f"{new} of {len(found)} runs are new; runs of task {found[0]['task']!r} are forecast with them from now on.")


def _before(run: dict[str, Any]) -> str:
    if not run["was_there"]:
        return ""
    put_away = ", archived" if run["archived_at"] else ""
    more = f"; got {run['added']:,} more evaluation{'' if run['added'] == 1 else 's'}" if run["added"] else ""
    return f"  was there already{put_away}{more}"
