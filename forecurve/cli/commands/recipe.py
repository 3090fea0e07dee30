"""`forecurve recipe`: presets, show, diff, validate, schema. Works without a service."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from ..given.flags import AsJson, Changes

app = typer.Typer(
    no_args_is_help=True, help="Look at recipes: presets, a recipe in full, differences, validity, the schema."
)

Source = Annotated[str, typer.Argument(metavar="RECIPE", help="A preset's name, or a file in YAML or JSON.")]


@app.command()
def presets(as_json: AsJson = False) -> None:
    """List the presets and how each differs from ScaleRL."""
    from forecurve.recipes import PRESETS, SCALERL, diff
    from forecurve.recipes.presets import ABOUT

    from ..showing.output import changes, print_json, print_table

    differences = {
        name: {path: theirs for path, (_, theirs) in diff(SCALERL, recipe).items()} for name, recipe in PRESETS.items()
    }
    if as_json:
        items = [
            {"name": name, "about": ABOUT[name], "digest": PRESETS[name].digest, "changes": changed}
            for name, changed in differences.items()
        ]
        print_json({"items": items})
    else:
        rows = [(name, ABOUT[name], changes(changed)) for name, changed in differences.items()]
        print_table(["preset", "what it is", "against scalerl"], rows)


@app.command()
def show(source: Source = "scalerl", changes: Changes = None, as_json: AsJson = False) -> None:
    """Print a recipe in full, every default included."""
    import yaml

    from ..given.recipes import load
    from ..showing.output import print_json

    recipe = load(source, changes)
    if as_json:
        print_json({"recipe": recipe.to_dict(), "digest": recipe.digest})
    else:
        print(yaml.safe_dump(recipe.to_dict(), sort_keys=False).rstrip())


@app.command()
def diff(first: Source, second: Source, as_json: AsJson = False) -> None:
    """Show the fields in which two recipes differ."""
    from forecurve.recipes import diff as difference

    from ..given.recipes import load
    from ..showing.output import print_json, print_table

    fields = difference(load(first), load(second))
    if as_json:
        print_json({"fields": {path: {"first": ours, "second": theirs} for path, (ours, theirs) in fields.items()}})
    elif fields:
        print_table(["field", first, second], [(path, *map(_cell, values)) for path, values in fields.items()])
    else:
        print("They train the same way: no field differs.")


def _cell(value: Any) -> str:
    """As a file of a recipe may say it: `null`, `true`; text without its quotes."""
    return value if isinstance(value, str) else json.dumps(value)


@app.command()
def validate(source: Source, changes: Changes = None, as_json: AsJson = False) -> None:
    """Check a recipe; exit 2 with every fault's field, value and way out."""
    from ..given.recipes import load
    from ..showing.output import print_json

    recipe = load(source, changes)
    if as_json:
        print_json({"valid": True, "name": recipe.name, "digest": recipe.digest})
    else:
        print(f"{recipe.name} is valid; digest {recipe.digest[:12]}")


@app.command()
def schema(as_json: AsJson = False) -> None:
    """Print the JSON Schema of a recipe, for editors and programs."""
    from forecurve.recipes.reference import json_schema

    from ..showing.output import print_json

    print_json(json_schema())  # JSON with and without --json
