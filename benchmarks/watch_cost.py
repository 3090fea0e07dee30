"""What it costs to judge a run after every evaluation: from the verdict before, and from the start each time.

    python benchmarks/watch_cost.py [--evaluations 80 500 2000] [--json]

A healthy run, frozen at a quarter of its budget after 25 evaluations. `earlier` is the CPU of this process, in seconds,
for all looks where each is given the verdict before it; `anew` where none is; `once` for a single look at all of them.
All three come to the same figures.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import common
import numpy as np

from forecurve.science import Curve, FrozenForecast, Watch, fit, freeze, watch
from forecurve.science.posterior.sigmoid import reward_at

TRUTH = tuple(np.array([value]) for value in (0.61, 1.9, 2500.0, 0.2))
SD = 0.0035


def run(rng: np.random.Generator, compute: np.ndarray) -> np.ndarray:
    """Rewards with white noise."""
    return reward_at(compute, *TRUTH)[:, 0] + SD * rng.normal(size=len(compute))


def looks(frozen: FrozenForecast, compute: np.ndarray, reward: np.ndarray, *, informed: bool) -> Watch:
    """The last of the verdicts after every evaluation."""
    verdict = None
    for count in range(1, len(compute) + 1):
        verdict = watch(frozen, compute[:count], reward[:count], earlier=verdict if informed else None)
    return verdict


def timed(look: Callable[[], Watch]) -> tuple[float, Watch]:
    """CPU seconds, and what was said."""
    begun = time.process_time()
    verdict = look()
    return time.process_time() - begun, verdict


def main() -> None:
    """Measure and print."""
    made = common.parser(__doc__)
    made.add_argument("--evaluations", type=int, nargs="*", default=[80, 500, 2000], help="after the freeze")
    asked = made.parse_args()
    rng, past, rows = np.random.default_rng(0), np.linspace(160, 4000, 25), []
    frozen = freeze(fit(Curve(past, run(rng, past), prompts=1000, samples=16, start=0.2)))
    watch(frozen, [5000.0], [0.5])  # what is worked out once for a frozen forecast
    for size in asked.evaluations:
        compute = np.linspace(4160, 16_000, size)
        reward = run(rng, compute)
        earlier, one = timed(lambda: looks(frozen, compute, reward, informed=True))  # noqa: B023
        anew, other = timed(lambda: looks(frozen, compute, reward, informed=False))  # noqa: B023
        once, _ = timed(lambda: watch(frozen, compute, reward))  # noqa: B023
        if one.to_dict() != other.to_dict():
            common.note(f"{size}: the verdicts differ")
        rows.append({"evaluations": size, "earlier": earlier, "anew": anew, "once": once})
    common.show(rows, as_json=asked.json)


if __name__ == "__main__":
    main()
