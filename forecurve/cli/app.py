"""The command tree. Modules imported here import nothing heavy, so that `forecurve --help` is quick."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import typer

from .commands import advice, alert, channels, recipe, run, sweep, tokens
from .commands.backtest import backtest_command
from .commands.compare import compare_command
from .commands.convert import convert
from .commands.fit import fit_command
from .commands.plan import plan_command
from .commands.score import score
from .commands.service import down, login, status, up
from .commands.sync import sync
from .demo import demo


def build() -> Any:
    """The root command, ready to be called with arguments."""
    app = typer.Typer(
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Forecast RL post-training before it is paid for.",
    )
    app.callback()(_root)
    _add(app, demo, up, down, status, login)
    _add(app, convert)
    app.command("fit")(fit_command)
    app.command("backtest")(backtest_command)
    _add(app, score)
    app.command("compare")(compare_command)
    app.command("plan")(plan_command)
    app.add_typer(recipe.app, name="recipe")
    app.add_typer(sweep.app, name="sweep")
    app.add_typer(run.app, name="run")
    app.add_typer(advice.app, name="advice")
    app.add_typer(alert.app, name="alert")
    app.command("alerts", help="Short for `forecurve alert list`.")(alert.list_alerts)
    app.add_typer(channels.app, name="channel")
    app.add_typer(tokens.app, name="token")
    _add(app, sync)
    return typer.main.get_command(app)


def _add(app: typer.Typer, *commands: Callable[..., None]) -> None:
    for command in commands:
        app.command()(command)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(version("forecurve"))
        raise typer.Exit


def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Forecast RL post-training before it is paid for."""
