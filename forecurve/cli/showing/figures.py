"""Figures of an answer as a page of their own, which needs no service and no network."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..errors import bad_input
from .rows_out import whole_file

if TYPE_CHECKING:
    import plotly.graph_objects as go

HtmlFlag = Annotated[
    Path | None,
    typer.Option("--html", metavar="FILE", help="Draw it, too: a page that opens in any browser. Needs plotly."),
]
Drawing = tuple[str, Callable[[], "go.Figure"]]

_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 24px auto; max-width: 960px; padding: 0 16px; color: #1a1a1a; font: 14px/20px system-ui, sans-serif; }}
h1, h2 {{ font-size: 18px; font-weight: 600; overflow-wrap: anywhere; }}
h2 {{ font-size: 14px; }}
section {{ margin: 0 0 32px; }}
</style>
</head>
<body>
<h1>{title}</h1>
"""


def write_page(path: Path, title: str, drawings: Iterable[Drawing]) -> None:
    """One figure below the other, drawn one by one; the file is whole or not there.

    Args:
        drawings: what each is called, and what draws it.
    """
    try:
        import plotly  # noqa: F401
    except ImportError:
        raise bad_input("--html: figures need plotly: pip install plotly") from None
    with whole_file(path, "--html") as stream:
        stream.write(_HEAD.format(title=html.escape(title)))
        script = True  # plotly's own, which is there once
        for name, draw in drawings:
            body = draw().to_html(full_html=False, include_plotlyjs=script, default_height="480px")
            stream.write(f"<section>\n<h2>{html.escape(name)}</h2>\n{body}\n</section>\n")
            script = False
        stream.write("</body>\n</html>\n")
    typer.echo(f"Drawn in {path}", err=True)
