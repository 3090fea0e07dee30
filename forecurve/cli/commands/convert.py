"""`forecurve convert SOURCE...`: what other tools left of runs, as a curve file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..given.curves import STDIN, from_stdin
from ..given.logs import Compute, LogUnit, Metric, PerStep, Prompts, RunPatterns, Samples, or_refused
from ..showing.rows_out import FormFlag, OutFlag

if TYPE_CHECKING:
    from forecurve.importers import Imported


def convert(
    context: typer.Context,
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE...",
            help="W&B's folder, its CSV of a chart or a history, MLflow's or trackio's database, mlruns/, "
            "trainer_state.json, TensorBoard's event files, JSONL, Parquet; or a folder of runs. - is stdin.",
        ),
    ],
    metric: Metric = None,
    compute: Compute = None,
    per_step: PerStep = None,
    unit: LogUnit = None,
    series: Annotated[
        str | None, typer.Option("--series", metavar="COLUMN", help="The column that names the run of a row.")
    ] = None,
    runs: RunPatterns = None,
    seed: Annotated[
        str | None, typer.Option("--seed", metavar="COLUMN", help="What tells the seed; else `seed`, if it is logged.")
    ] = None,
    seeds_in_names: Annotated[
        bool, typer.Option("--seed-in-name", help="Take seed3 or s3 at the end of a run's name as its seed.")
    ] = False,
    prompts: Prompts = None,
    samples: Samples = None,
    listed: Annotated[bool, typer.Option("--list", help="Name the numbers that are logged, and convert none.")] = False,
    form: FormFlag = None,
    out: OutFlag = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False,
) -> None:
    """Write what W&B, MLflow, TRL, verl, TensorBoard and others logged as a curve file.

    forecurve convert chart.csv --metric eval/pass_rate -o curves.csv && forecurve fit curves.csv
    """
    from forecurve.importers import metrics, read

    from ..asking.service import print_answer
    from ..showing.curve_rows import CURVE_COLUMNS
    from ..showing.rows_out import rows_answer

    files = [from_stdin(context, source) if source == STDIN else source for source in sources]
    if listed:
        _show(or_refused(lambda: metrics(files, series=series, runs=runs or ())), as_json)
        return
    found = or_refused(
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
        ),
        ranged_by="`forecurve fit --range LOW,HIGH`",
    )
    print_answer(rows_answer(CURVE_COLUMNS, found.rows, form, out), as_json)
    _tell(found)


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
