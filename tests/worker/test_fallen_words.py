"""What an alert of a fall says is what its figures show."""

from __future__ import annotations

import numpy as np

from forecurve.science import Curve, fit, freeze, watch
from worker.fallen import words


def test_the_compute_since_which_a_run_is_below_is_told_from_that_of_its_last_evaluation() -> None:
    compute = np.linspace(500, 10_000, 20)
    reward = 0.2 + 0.4 / (1 + (2500 / compute) ** 1.9) + 0.002 * np.random.default_rng(0).normal(size=20)
    frozen = freeze(fit(Curve(compute, reward, unit="steps", name="a")))
    verdict = watch(frozen, [10_100, 10_200, 10_300], [0.4, 0.4, 0.4])
    assert verdict.since_compute == 10_100
    _, text = words("a", verdict)
    assert text.startswith("0.400 at 10,300 steps, where 0.")
    assert "; below it since 10,100 steps. " in text
