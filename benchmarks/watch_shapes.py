"""The watch on runs that never fall and are no sigmoids: how many are rung for?

    python benchmarks/watch_shapes.py [--runs 30] [--json]

Smooth curves of benchmarks/misfit.py, 100 evaluations to 8,000 GPU-hours with white noise, frozen after a quarter and
after a half of them and watched to the end, every fourth evaluation: by the frozen forecast alone, and as the service
watches, with the run's own fit of that moment. Such a run does fall below its forecast: the forecast was wrong. `WARN`
and `ALERT` are the highest level that was ever said, as shares of the runs.
"""

from __future__ import annotations

import common
import numpy as np
from misfit import SMOOTH, white

from forecurve.science import Curve, FrozenForecast, fit, freeze, watch

X = np.linspace(0, 8000, 101)
FROZEN = (25, 50)
EVERY = 4
LEVELS = (None, "WARN", "ALERT")


def curve(reward: np.ndarray, size: int) -> Curve:
    """What was seen after so many evaluations."""
    return Curve(X[:size], reward[:size], prompts=1000, samples=16, unit="GPU-hours")


def highest(frozen: FrozenForecast, reward: np.ndarray, first: int, *, informed: bool) -> str | None:
    """The highest level that is said on the way."""
    said = [
        watch(frozen, X[first:size], reward[first:size], fit=fit(curve(reward, size)) if informed else None).level
        for size in range(first + EVERY, len(X) + 1, EVERY)
    ]
    return max(said, key=LEVELS.index)


def main() -> None:
    """Simulate and print."""
    asked = common.parser(__doc__, runs=30).parse_args()
    rows = []
    for kind, make in SMOOTH.items():
        for size in FROZEN:
            found: dict[bool, list[str | None]] = {False: [], True: []}
            for seed in range(asked.runs):
                rng = np.random.default_rng([seed, 9])
                reward = np.clip(make(rng, X) + white(rng, len(X)), 0, 1)
                frozen = freeze(fit(curve(reward, size + 1)))
                for informed, levels in found.items():
                    levels.append(highest(frozen, reward, size + 1, informed=informed))
            row = {"curve": kind, "frozen after": size, "runs": asked.runs}
            for informed, levels in found.items():
                whose = "with fit" if informed else "alone"
                row |= {f"{level} {whose}": levels.count(level) / asked.runs for level in ("WARN", "ALERT")}
            rows.append(row)
        common.note(f"{kind}: done")
    common.show(rows, as_json=asked.json)


if __name__ == "__main__":
    main()
