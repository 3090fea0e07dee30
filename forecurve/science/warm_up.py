"""Compile the inner loops ahead of the first fit: `python -m forecurve.science.warm_up` (half a minute or so, once)."""

from __future__ import annotations

import numpy as np

from .compiled import compile_at_once
from .curves.curve import Curve
from .fitting.fit import fit
from .posterior.point import least_squares


def warm_up() -> None:
    """One fit of each kind. Where numba is missing there is nothing to compile, and it costs milliseconds."""
    compile_at_once()
    compute = np.linspace(1.0, 30.0, 30)
    curve = Curve(compute, 0.2 + 0.4 / (1 + 8.0 / compute), prompts=1000, samples=16)
    least_squares(curve)
    for prior in ("none", "paper"):
        found = fit(curve, prior=prior)
        found.update((31.0, 0.5))
        _ = found.misfit


if __name__ == "__main__":
    warm_up()
