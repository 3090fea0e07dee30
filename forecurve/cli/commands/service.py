"""`forecurve up`, `down`, `status`, `login`: the service on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from ..given.flags import DATA_DIR, AsJson, DataDir


def up(
    data_dir: DataDir = DATA_DIR,
    host: Annotated[str, typer.Option(help="Address the API listens on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of the API; 0 for any free one.")] = 8400,
    workers: Annotated[int, typer.Option(min=1, max=64, help="Processes of the Celery worker.")] = 2,
    allow_remote: Annotated[
        bool, typer.Option("--allow-remote", help="Let --host be reachable from other machines.")
    ] = False,
    without_ray: Annotated[
        bool, typer.Option("--without-ray", help="No Ray head: only runs that you launch yourself.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Start the whole service here: database, broker, Ray, API, pages, worker, scheduler. Ctrl-C stops it.

    DATABASE_URL, REDIS_URL and RAY_ADDRESS (the URL of a Jobs API), when set, are used instead of starting one.
    """
    from ..embedded import require_embedded

    require_embedded()
    from ..supervisor.console import UpConsole
    from ..supervisor.options import UpOptions
    from ..supervisor.up import up as run_up

    options = UpOptions(data_dir, host, port, workers, allow_remote, with_ray=not without_ray)
    raise typer.Exit(run_up(options, UpConsole(as_json=as_json)))


def down(
    data_dir: DataDir = DATA_DIR,
    timeout: Annotated[float, typer.Option(min=1, max=3600, help="Seconds to wait for a clean stop.")] = 120.0,
    as_json: AsJson = False,
) -> None:
    """Stop the service of a data directory, from any terminal. Runs that it trains here write a checkpoint first, and
    go on from there at the next `up`."""
    from ..embedded import require_embedded

    require_embedded()
    from ..showing.output import print_json
    from ..supervisor.down import down as stop_service

    stopped = stop_service(data_dir, timeout)
    if as_json:
        print_json({"stopped": stopped.what, "seconds": stopped.seconds})
    else:
        print(stopped.sentence)


def status(data_dir: DataDir = DATA_DIR, as_json: AsJson = False) -> None:
    """Show the parts, the runs and a fresh login link. Exit 1 when the service is not running."""
    from ..embedded import require_embedded

    require_embedded()
    from ..showing.output import print_json
    from ..showing.status import print_status, read_status

    report = read_status(data_dir)
    if as_json:
        print_json(report)
    else:
        print_status(report)
    if not report["running"]:
        raise typer.Exit(1)


def login(data_dir: DataDir = DATA_DIR, as_json: AsJson = False) -> None:
    """Print a fresh login link for the pages; it is good once."""
    from ..embedded import require_embedded

    require_embedded()
    from ..showing.output import print_json
    from ..showing.status import login_link

    link = login_link(data_dir)
    if as_json:
        print_json({"login_url": link})
    else:
        print(link)
