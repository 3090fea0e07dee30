"""The sampling variance of a pass rate."""

from __future__ import annotations

from collections.abc import Sequence


def sampling_variance(
    reward: float, prompts: int | None, samples: int | None, counts: Sequence[int] | None
) -> float | None:
    """Variance of the pass rate over repeated sampling; None when the number of samples is not known.

    With counts and k >= 2 samples a prompt, for the fixed set of N prompts: sum p_i (1 - p_i) / (k - 1) / N^2, the
    unbiased estimate from each prompt's own successes. Otherwise binomial, p (1 - p) / (N k), which also counts the
    spread between prompts and so is an upper bound.
    """
    if counts is not None and samples is not None and samples >= 2:
        rates = (count / samples for count in counts)
        return sum(p * (1 - p) for p in rates) / (samples - 1) / len(counts) ** 2
    total = (len(counts) if counts is not None else prompts or 0) * (samples or 1)
    return reward * (1 - reward) / total if total else None
