"""`forecurve sweep`: plan, submit, list, show, rename, archive, restore, stop, export.

What extends one is in sweep_extend.py, its policy in sweep_policy.py, tags and notes are in labels.py.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from forecurve.limits import OVER

from ..asking.naming import Named
from ..asking.service import Answer, Service, asks_service
from ..given.flags import Limit, NewNote, NewTags, OfMetric, SweepId, Tagged
from ..showing.rows_out import FormFlag, OutFlag, rows_answer
from .labels import note_sweep, tag_sweep
from .sweep_extend import add_arm, add_seeds
from .sweep_policy import change_policy

app = typer.Typer(no_args_is_help=True, help="Ablation sweeps: plan, submit, list, show, extend, name, stop, export.")

SweepFile = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        help="YAML with preset or recipe, changes, design, and maybe name, policy, budget_compute, tags, note.",
    ),
]


PutAway = Annotated[str, Named("sweep", archived=True), typer.Argument(metavar="SWEEP", help="Its id, or its name.")]


@app.command()
@asks_service
def plan(service: Service, file: SweepFile) -> Answer:
    """Show the arms a sweep would have, their differences and their compute. Creates nothing.

    It refuses what `sweep submit` would refuse.
    """
    from ..given.recipes import sweep_request

    body = sweep_request(file)  # read before a service is looked for
    planned = service.api.plan_sweep(body)
    return Answer(planned, lambda: _print_plan(planned))


@app.command()
@asks_service
def submit(
    service: Service,
    file: SweepFile,
    plan_hash: Annotated[str | None, typer.Option(help="Submit only if it is still this plan.")] = None,
    tags: NewTags = None,
    note: NewNote = None,
) -> Answer:
    """Create a sweep and queue its runs. --tag and --note replace those of the file."""
    import secrets

    from ..given.recipes import sweep_request

    given = {"plan_hash": plan_hash, "tags": tags, "note": note}
    body = sweep_request(file) | {field: told for field, told in given.items() if told}
    sweep = service.api.create_sweep(body, idempotency_key=secrets.token_hex(16))
    queued = f"{len(sweep.get('runs', []))} runs queued"
    return Answer(sweep, f"{sweep['id']}  {queued}  {service.api.url}/sweeps/{sweep['id']}")


@app.command("list")
@asks_service
def list_sweeps(
    service: Service,
    tags: Tagged = None,
    archived: Annotated[bool, typer.Option("--archived", help="Those that were put away.")] = False,
    limit: Limit = 50,
) -> Answer:
    """List sweeps, newest first."""
    from ..showing.output import newest, print_newest

    found = newest(service.api.sweeps(tag=tags, archived=archived or None, limit=limit + 1), limit)
    if not found["items"]:
        return Answer(found, _none_found(bool(tags), archived))
    columns, spare = ["sweep", "name", "design", "policy", "created"], ["created", "policy", "design"]
    return Answer(found, lambda: print_newest(found, columns, _row, spare=spare))


@app.command()
@asks_service
def show(service: Service, sweep_id: SweepId) -> Answer:
    """Show a sweep's arms: state, pass rate now, ceiling, forecast at budget, advice; and what each arm changed.

    Of a sweep whose runs share compute also what is spent, and what becomes of each run.
    """
    sweep = service.api.sweep(sweep_id)
    return Answer(sweep, lambda: _print_sweep(sweep))


@app.command()
@asks_service
def rename(service: Service, sweep_id: SweepId, name: Annotated[str, typer.Argument(metavar="NAME")]) -> Answer:
    """Give a sweep another name."""
    sweep = service.api.rename_sweep(sweep_id, name)
    return Answer(sweep, f"{sweep['id']}  {sweep['name']}")


@app.command()
@asks_service
def archive(service: Service, sweep_id: SweepId) -> Answer:
    """Put a sweep that is over away, with its runs: out of lists, inbox and counts, and no forecast learns from it."""
    sweep = service.api.archive_sweep(sweep_id)
    return Answer(sweep, f"{sweep['id']}  archived; `forecurve sweep restore {sweep['id']}` takes it out again")


@app.command()
@asks_service
def restore(service: Service, sweep_id: PutAway) -> Answer:
    """Take a sweep out of the archive, with the runs that went there with it."""
    sweep = service.api.restore_sweep(sweep_id)
    return Answer(sweep, f"{sweep['id']}  it is listed again, with {len(sweep['runs'])} runs")


app.command("add-seeds")(add_seeds)
app.command("add-arm")(add_arm)
app.command("policy")(change_policy)
app.command("tag")(tag_sweep)
app.command("note")(note_sweep)


@app.command()
@asks_service
def stop(
    service: Service,
    sweep_id: SweepId,
    reason: Annotated[str | None, typer.Option(help="Why; kept in the log.")] = None,
) -> Answer:
    """Stop every run of a sweep that is not over."""
    sweep = service.api.stop_sweep(sweep_id, reason)
    asked = sum(run["desired_state"] == "stop" and run["status"] not in OVER for run in sweep["runs"])
    if not asked:
        return Answer(sweep, f"{sweep_id}: none of its {len(sweep['runs'])} runs goes on; nothing is asked")
    told = f"{asked} of its {len(sweep['runs'])} runs asked to stop; those that train write a checkpoint first"
    return Answer(sweep, f"{sweep_id}: {told}")


@app.command()
@asks_service
def export(
    service: Service, sweep_id: SweepId, metric: OfMetric = None, form: FormFlag = None, out: OutFlag = None
) -> Answer:
    """Write evaluations as `forecurve fit` reads them. Each arm is a series.

    forecurve sweep export SWEEP | forecurve compare - --control control
    forecurve sweep export SWEEP --metric eval/aime24 | forecurve compare - --control control
    """
    from ..showing.curve_rows import CURVE_COLUMNS, checked_metric, curve_rows

    runs = service.api.sweep(sweep_id)["runs"]
    series = [(run["arm"] or run["name"], run) for run in runs]
    metric = checked_metric(service.api, runs, metric)
    return rows_answer(CURVE_COLUMNS, curve_rows(service.api, series, metric), form, out)


def _none_found(filtered: bool, archived: bool) -> str:
    if filtered:
        return "No such sweeps."
    return "No archived sweeps." if archived else "No sweeps. Try: forecurve sweep plan FILE"


def _print_plan(planned: dict[str, Any]) -> None:
    from ..showing.output import changes, compute, print_table

    print_table(["arm", "change"], [(arm["name"], changes(arm["changes"])) for arm in planned["arms"]])
    total = compute(planned["compute"]["total"], planned["compute"]["unit"])
    print(f"\n{planned['runs']} runs, {_spends(planned, total)}; plan {planned['plan_hash'][:12]}")


def _spends(planned: dict[str, Any], total: str) -> str:
    from ..showing.output import compute

    shared = planned["budget_compute"]
    if shared is None:
        return f"{total} in all"
    return f"which share {compute(shared, planned['compute']['unit'])}; the sum of their budgets is {total}"


def _row(sweep: dict[str, Any]) -> list[Any]:
    from ..showing.output import since

    return [sweep["id"], sweep["name"], sweep["design"].get("kind"), sweep["policy"], since(sweep["created_at"])]


def _print_sweep(sweep: dict[str, Any]) -> None:
    from forecurve.signs import visible

    from ..showing.allocation import print_allocation
    from ..showing.deciding import further, told_how
    from ..showing.labels import note_lines, tags_of
    from ..showing.output import left, print_table
    from ..showing.run_rows import ARM_SPARE, NUMERIC, arm_table

    runs = sweep.get("runs", [])
    columns, row = arm_table(runs)
    print_table(columns, [row(run) for run in runs], title=sweep["name"], right=NUMERIC, spare=ARM_SPARE)
    if tags := tags_of(sweep):
        print(f"\nTags: {visible(tags)}")
    if note := note_lines(sweep):
        print("", *note, sep="\n")
    if sentence := sweep.get("sentence"):
        print(f"\n{sentence}")
    if through := sweep.get("through_at"):
        print(f"Until all have spent their budgets, at the pace of now: {left(through)}.")
    for arm in (sweep.get("comparison") or {}).get("arms", []):
        print(f"  {arm['reason']}")
    for arm in further(sweep):
        print(f"  {told_how(sweep, arm)}")
    if sweep.get("allocation"):
        print_allocation(sweep)
