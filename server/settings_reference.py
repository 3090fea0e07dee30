"""The settings as a page for people: `python -m server.settings_reference` prints docs/reference/settings.md."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from forecurve.recipes.reference import bounds

from .settings import Settings, variable

_HEAD = """\
# Settings of the service

Written by `make settings-reference` from `server/settings.py`; change it there. API, worker and scheduler read them
from their environment, each from its own: give all of them the same. `forecurve up` passes its environment on, and sets
by itself what it starts (database, broker, Ray) and what follows from its flags.
[A cluster of your own](../guides/own-cluster.md) says which of them matter there.

| variable | default | meaning |
|---|---|---|"""

_TAIL = """
Clients, the command line among them, read `FORECURVE_URL` and `FORECURVE_TOKEN`; the command line also
`FORECURVE_DATA_DIR`, by which it finds the `forecurve up` of that directory. Trainers keep base models in
`FORECURVE_CACHE`, by default `.cache` beside the run's directory. Migrations wait for locks of other sessions for
`FORECURVE_MIGRATION_LOCK_TIMEOUT`, by default `10s`."""


def page() -> str:
    """The page, as Markdown."""
    return "\n".join([_HEAD, *_rows(), _TAIL]) + "\n"


def _rows() -> Iterator[str]:
    for name, info in Settings.model_fields.items():
        limits = bounds(info)
        meaning = f"{info.description} ({limits})" if limits else info.description
        yield f"| `{variable(name, info)}` | {_default(info)} | {meaning} |"


def _default(info: FieldInfo) -> str:
    if info.is_required():
        return "required"
    value = info.default
    if value in (None, ""):
        return "none"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, Path | str):
        return f"`{value}`"
    if isinstance(value, SecretStr):
        assert not value.get_secret_value(), "a secret has no default"
        return "none"
    return f"`{value:g}`"


if __name__ == "__main__":
    print(page(), end="")
