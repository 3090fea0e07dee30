"""False alarms of the watch on healthy runs frozen early, whose noise is not what the forecast takes it for.

    python benchmarks/watch_noise.py [--runs 200] [--json]

100 evaluations to 16,000 GPU-hours of the sigmoid of ScaleRL's Table 1, noise 0.0035, frozen after 10 or 25 of them and
watched to the end, without fits. `t4` are Student-t tails with 4 degrees of freedom; `grows` a standard deviation that
becomes 4 times as large along the run; `wanders` a part of correlation .9 beside white noise, as large; `untold` white
noise whose size is not told. `WARN` and `ALERT` are shares of the runs that are said to be at that level at least. Of a
`drop` by 0.02, in white noise after 50, they are what is found.
"""

from __future__ import annotations

from collections.abc import Callable

import common
import numpy as np

from forecurve.science import Curve, fit, freeze, watch
from forecurve.science.posterior.sigmoid import reward_at

X = np.linspace(0, 16_000, 101)[1:]
TRUTH = reward_at(X, *(np.array([value]) for value in (0.61, 1.9, 2500.0, 0.2)))[:, 0]
SD, DROP = 0.0035, 0.02
FROZEN = (10, 25)


def wandering(rng: np.random.Generator) -> np.ndarray:
    """White noise and a part that wanders, of one standard deviation each."""
    state, steps = np.empty(len(X)), rng.normal(size=len(X))
    state[0] = steps[0]
    for at in range(1, len(X)):
        state[at] = 0.9 * state[at - 1] + np.sqrt(1 - 0.9**2) * steps[at]
    return state + rng.normal(size=len(X))


NOISES: dict[str, Callable[[np.random.Generator], np.ndarray]] = {
    "white": lambda rng: rng.normal(size=len(X)),
    "untold": lambda rng: rng.normal(size=len(X)),
    "wanders": wandering,
    "t4": lambda rng: rng.standard_t(4, len(X)) / np.sqrt(2),
    "grows": lambda rng: rng.normal(size=len(X)) * 4 ** np.linspace(0, 1, len(X)),
    "drop": lambda rng: rng.normal(size=len(X)) - DROP / SD * (np.arange(len(X)) >= 50),
}


def main() -> None:
    """Simulate and print."""
    asked = common.parser(__doc__, runs=200).parse_args()
    rows = []
    for first in FROZEN:
        for kind, noise in NOISES.items():
            told = {} if kind == "untold" else {"prompts": 1000, "samples": 16}
            levels = []
            for seed in range(asked.runs):
                reward = np.clip(TRUTH + SD * noise(np.random.default_rng([seed, 7])), 0, 1)
                found = fit(Curve(X[:first], reward[:first], **told))
                if not found.withheld:
                    levels.append(watch(freeze(found, horizon=len(X) - first), X[first:], reward[first:]).level)
            reached = {"WARN": len(levels) - levels.count(None), "ALERT": levels.count("ALERT")}
            shares = {level: count / len(levels) for level, count in reached.items()}
            rows.append({"noise": kind, "frozen after": first, "runs": len(levels), **shares})
            common.note(f"{kind}, {first}: done")
    common.show(rows, as_json=asked.json)


if __name__ == "__main__":
    main()
