"""`forecurve convert SOURCE...`: what other tools left of runs, as a curve file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from ..given.curves import STDIN, from_stdin
from ..showing.rows_out import FormFlag, OutFlag

if TYPE_CHECKING:
    from forecurve.importers import Imported

Found = TypeVar("Found")
_FLAGS = {"metric", "compute", "per-step", "series", "seed", "run", "unit"}  # fields of faults that are flags here


def convert(
    context: typer.Context,
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE...",
            help="W&B's CSV of a chart or a history, trainer_state.json, TensorBoard's event files, "
            "JSONL, Parquet; or a folder of runs. - is stdin.",
        ),
    ],
    metric: Annotated[
        str | None, typer.Option("--metric", help="The reward; else the only one that looks like a held-out rate.")
    ] = None,
    compute: Annotated[
        str | None, typer.Option("--compute", help="A logged number as compute; else the step or the x axis.")
    ] = None,
    per_step: Annotated[
        float | None, typer.Option("--per-step", help="Compute of one step, or of one unit of --compute.")
    ] = None,
    unit: Annotated[str | None, typer.Option("--unit", help="Unit of compute, e.g. GPU-hours.")] = None,
    series: Annotated[
        str | None, typer.Option("--series", metavar="COLUMN", help="The column that names the run of a row.")
    ] = None,
    runs: Annotated[
        list[str] | None, typer.Option("--run", metavar="PATTERN", help="Only such runs (grpo-*); may be repeated.")
    ] = None,
    seed: Annotated[
        str | None, typer.Option("--seed", metavar="COLUMN", help="What tells the seed; else `seed`, if it is logged.")
    ] = None,
    seeds_in_names: Annotated[
        bool, typer.Option("--seed-in-name", help="Take seed3 or s3 at the end of a run's name as its seed.")
    ] = False,
    prompts: Annotated[int | None, typer.Option("--prompts", min=1, help="Prompts of every evaluation.")] = None,
    samples: Annotated[int | None, typer.Option("--samples", min=1, help="Samples of every prompt.")] = None,
    listed: Annotated[bool, typer.Option("--list", help="Name the numbers that are logged, and convert none.")] = False,
    form: FormFlag = None,
    out: OutFlag = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Write what W&B, TRL, verl, TensorBoard and others logged as a curve file.

    forecurve convert chart.csv --metric eval/pass_rate -o curves.csv && forecurve fit curves.csv
    """
    from forecurve.importers import metrics, read

    from ..asking.service import print_answer
    from ..showing.curve_rows import CURVE_COLUMNS
    from ..showing.rows_out import rows_answer

    files = [from_stdin(context, source) if source == STDIN else source for source in sources]
    if listed:
        _show(_or_refused(lambda: metrics(files, series=series, runs=runs or ())), as_json)
        return
    found = _or_refused(
        lambda: read(
            files,
            metric=metric,
            compute=compute,
            per_step=per_step,
            unit=unit,
            series=series,
            seed=seed,
            seeds_in_names=seeds_in_names,
            runs=runs or (),
            prompts=prompts,
            samples=samples,
        )
    )
    print_answer(rows_answer(CURVE_COLUMNS, found.rows, form, out), as_json)
    _tell(found)


def _or_refused(work: Callable[[], Found]) -> Found:
    """What it finds; a fault as one line, with flags called as they are on the command line."""
    from forecurve.curve_cells import CurveFileError

    from ..errors import bad_input

    try:
        return work()
    except CurveFileError as error:
        text, name = str(error), error.field
        if error.field in _FLAGS:
            text, name = f"--{text}", f"--{name}"
        fault = {"field": name, "value": str(error.value), "message": text}
        raise bad_input(text, errors=[fault]) from error


def _show(counts: dict[str, int], as_json: bool) -> None:
    from ..showing.output import print_json, print_table

    if as_json:
        print_json({"metrics": [{"metric": name, "reports": count} for name, count in counts.items()]})
        return
    print_table(["metric", "reports"], [[name, f"{count:,}"] for name, count in counts.items()], right=["reports"])


def _tell(found: Imported) -> None:
    """Beside the rows, on stderr: what was chosen, and what became of the rest."""
    from forecurve.signs import visible

    for note in found.notes:
        typer.echo(visible(note), err=True)
    typer.echo(visible(found.summary), err=True)
