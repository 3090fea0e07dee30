"""What the cluster has for runs, as far as this service was told."""

from __future__ import annotations

from dataclasses import dataclass

from forecurve.recipes import Recipe, RecipeError
from server.settings import Settings

_SLACK = 1e-6  # of sums of shares such as 0.1


@dataclass(frozen=True)
class Room:
    """Devices of the whole cluster; None where it is not known."""

    cpus: float | None = None
    gpus: float | None = None

    @classmethod
    def of(cls, settings: Settings) -> Room:
        """That of FORECURVE_CLUSTER_CPUS and FORECURVE_CLUSTER_GPUS."""
        return cls(settings.cluster_cpus, settings.cluster_gpus)

    @property
    def known(self) -> dict[str, float]:
        """What is known, by the names of a recipe's `resources`."""
        has = {"cpus": self.cpus, "gpus": self.gpus}
        return {name: amount for name, amount in has.items() if amount is not None}

    def holds(self, taken: dict[str, float]) -> bool:
        """Whether so much can be taken at once."""
        return all(taken[name] <= amount + _SLACK for name, amount in self.known.items())

    def check(self, recipe: Recipe) -> None:
        """RecipeError when a run of this recipe could never begin."""
        for name, amount in self.known.items():
            asked = getattr(recipe.resources, name)
            if asked > amount + _SLACK:
                has = f"the cluster has {amount:g} for runs"
                way_out = f"ask for less, or correct FORECURVE_CLUSTER_{name.upper()} of the service"
                raise RecipeError.one(f"resources.{name}", asked, f"{has}; {way_out}")
