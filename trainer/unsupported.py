"""Fields of the recipe that no part of this trainer reads yet. Any other value than these is refused by name.

A recipe must never be trained as something else than what it says.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from forecurve.recipes import Recipe, leaf_paths
from trainer.errors import ConfigurationError

IMPLEMENTED: dict[str, tuple[Any, ...]] = {
    "resources.weight_transfer": ("store",),
}
"""Field to the values that this trainer means something by; fields that are not listed are read in full."""


def refuse_unsupported(recipe: Recipe) -> None:
    """Raise ConfigurationError with every field whose value would be ignored."""
    faults = list(_faults(recipe))
    if faults:
        raise ConfigurationError("this trainer does not have yet: " + "; ".join(faults))


def _faults(recipe: Recipe) -> Iterator[str]:
    body = recipe.to_dict()
    present = set(leaf_paths(recipe))
    for path, values in IMPLEMENTED.items():
        if path not in present:
            continue
        section, _, leaf = path.rpartition(".")
        value = body[section][leaf] if section else body[leaf]
        if value not in values:
            yield f"{path} {value!r} (it has {', '.join(map(repr, values))})"
