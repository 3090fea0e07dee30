"""The command tree. A command's module is imported, and what it takes is read from its function, when it is asked for:
a command line has one command and waits for no other, and `forecurve --help` imports nothing heavy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Any, cast

import typer
from typer.core import TyperGroup

_COMMANDS: Mapping[str, tuple[str, str]] = {
    "demo": ("demo", "demo"),
    "up": ("commands.service", "up"),
    "down": ("commands.service", "down"),
    "status": ("commands.service", "status"),
    "login": ("commands.service", "login"),
    "convert": ("commands.convert", "convert"),
    "fit": ("commands.fit", "fit_command"),
    "backtest": ("commands.backtest", "backtest_command"),
    "score": ("commands.score", "score"),
    "compare": ("commands.compare", "compare_command"),
    "plan": ("commands.plan", "plan_command"),
    "alerts": ("commands.alert", "list_alerts"),
    "sync": ("commands.sync", "sync"),
    "recipe": ("commands.recipe", "app"),
    "sweep": ("commands.sweep", "app"),
    "run": ("commands.run", "app"),
    "advice": ("commands.advice", "app"),
    "alert": ("commands.alert", "app"),
    "channel": ("commands.channels", "app"),
    "token": ("commands.tokens", "app"),
}
"""By name, in the order of the help: the module below this one, and what it calls the command or its group."""
_HELP = {"alerts": "Short for `forecurve alert list`."}
"""Of commands that are told otherwise than by their docstring."""


@cache
def build() -> Any:
    """The root command, ready to be called with arguments."""
    app = typer.Typer(
        cls=_Root,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        help="Forecast RL post-training before it is paid for.",
    )
    app.callback()(_root)
    return typer.main.get_command(app)


class _Root(TyperGroup):
    """A group whose commands are made when they are asked for."""

    def __init__(self, **values: Any):
        super().__init__(**{**values, "commands": None})
        self.commands = cast(Any, _Made())  # only ever read


class _Made(Mapping[str, Any]):
    """The commands of `_COMMANDS` by name, each made once."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = _make(name, *_COMMANDS[name])
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_COMMANDS)

    def __len__(self) -> int:
        return len(_COMMANDS)


def _make(name: str, module: str, called: str) -> Any:
    command = getattr(import_module(f".{module}", __package__), called)
    holder = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    if isinstance(command, typer.Typer):
        holder.add_typer(command, name=name)
    else:
        holder.command(name, help=_HELP.get(name))(command)
    return typer.main.get_group(holder).commands[name]


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(version("forecurve"))
        raise typer.Exit


def _root(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Forecast RL post-training before it is paid for."""
