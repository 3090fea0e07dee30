"""Every metric that a step reports, with its unit and meaning: the small overview first. Written into
`docs/reference/metrics.md` by `python -m trainer.measuring.metric_names`."""

from __future__ import annotations

OVERVIEW: dict[str, tuple[str, str]] = {
    "train/pass_rate_all": ("share", "right answers among all that were sampled for the batch, before any filter"),
    "train/pass_rate_kept": ("share", "the same of the prompts with variance, which teach; absent when there is none"),
    "train/entropy": ("nats", "mean entropy of the policy at the tokens that are trained on"),
    "train/grad_norm": ("", "norm of the gradient before clipping"),
    "policy/mismatch_kl": ("nats", "mean of ratio - log ratio - 1: how far the learner is from the generator"),
    "staleness/mean": ("versions", "age of the tokens that are trained on; this family is absent when there are none"),
    "staleness/max": ("versions", "the oldest of them; never above `algorithm.max_staleness`"),
    "generation/response_length": ("tokens", "mean length of all responses"),
    "generation/truncated_share": ("share", "responses cut at the budget; 10 to 15 % precede a collapse (paper §6)"),
    "throughput/completions_per_second": ("1/s", "completions trained on per wall second, end to end"),
    "time/learner_wait_share": ("share", "of the step's wall time, the learner waited for a batch: generator bound"),
    "time/generator_wait_share": ("share", "of their time since the last step, generators waited: learner bound"),
    "ledger/compute": ("budget.unit", "training compute so far: the x-axis of every curve"),
}

FAMILIES: dict[str, tuple[str, str]] = {
    "train/reward": ("", "mean reward of all samples, penalties included"),
    "train/solved_prompts_share": ("share", "prompts of the batch with right answers only"),
    "train/zero_variance_share": ("share", "prompts whose rewards are all equal"),
    "train/kept_prompts": ("prompts", "prompts that the learner trained on"),
    "train/advantage_mean": ("", "mean size of the advantages, over tokens"),
    "train/advantage_max": ("", "the largest of them"),
    "train/loss": ("", "the loss as it was minimised"),
    "train/lr": ("", "learning rate of the step"),
    "train/skipped": ("0 or 1", "the step was skipped: loss or gradient was not finite"),
    "train/skipped_steps": ("steps", "such steps so far"),
    "train/empty_steps": ("steps", "steps so far in which the filter left nothing"),
    "filter/all_right_share": ("share", "prompts without variance whose answers were all right"),
    "filter/all_wrong_share": ("share", "prompts without variance whose answers were all wrong"),
    "filter/refilled_groups": ("prompts", "dropped and replaced on the way to this batch (`refill`)"),
    "policy/ratio_mean": ("", "mean importance ratio, learner to generator"),
    "policy/ratio_cut_mean": (
        "",
        "mean over tokens of the ratio (their sequence's with gspo) within the loss's cap or clip",
    ),
    "policy/ratio_min": ("", "the smallest importance ratio"),
    "policy/ratio_max": ("", "the largest ratio, before any cap"),
    "policy/ratio_capped_share": (
        "share",
        "tokens whose ratio (their sequence's with gspo) is above cispo's cap, or clipped so that it has no gradient",
    ),
    "policy/mismatch_kl_per_entropy": ("", "`policy/mismatch_kl` over `train/entropy`"),
    "policy/logprob_diff_mean": ("nats", "mean absolute difference of learner's and generator's log-probs"),
    "policy/effective_sample_share": ("share", "effective sample size of the uncapped ratios: (sum w)^2 / (n sum w^2)"),
    "policy/not_finite_tokens": ("tokens", "left out because their generator log-prob is not finite"),
    "policy/reference_kl": (
        "nats",
        "k3 estimate of the KL to the starting weights; with `algorithm.kl_coefficient` only",
    ),
    "staleness/in_flight_mean": ("versions", "age gained while the group was generated"),
    "staleness/in_flight_max": ("versions", "the largest of them"),
    "staleness/in_queue_mean": ("versions", "age gained while the finished group waited for its batch"),
    "staleness/in_queue_max": ("versions", "the largest of them"),
    "generation/response_length_min": ("tokens", "the shortest response"),
    "generation/response_length_max": ("tokens", "the longest response"),
    "generation/response_length_finished": ("tokens", "mean of those that ended themselves; absent when none did"),
    "generation/response_length_right": ("tokens", "mean of the right ones; absent when there is none"),
    "generation/response_length_wrong": ("tokens", "mean of the wrong ones; absent when there is none"),
    "generation/interrupted_share": ("share", "responses into which the phrase was put"),
    "generation/waiting_groups": ("prompts", "finished and waiting for their batch"),
    "generation/lost_generators": ("", "generators that died or stalled and were replaced, in this attempt"),
    "prompts/epoch": ("", "epoch of the prompts, counted from 0; of the task of a mixture that is furthest behind"),
    "prompts/active": ("prompts", "that still come"),
    "prompts/left_out": ("prompts", "left out by No-Positive-Resampling"),
    "verifier/judged": ("", "answers that verifiers have judged so far"),
    "verifier/timeouts": ("", "answers whose verifier ran out of time, so far; they count as wrong"),
    "verifier/crashes": ("", "answers whose verifier crashed, so far; they count as wrong"),
    "time/step": ("s", "wall time from step to step"),
    "time/generation": ("s", "wall time that generating this batch took, summed over generators"),
    "time/learning": ("s", "wall time of the optimiser step"),
    "time/wait_for_batch": ("s", "the learner waited for this batch"),
    "time/generator_busy": ("s", "generators worked on waves that came back since the last step"),
    "time/generator_waited": ("s", "generators waited before those waves"),
    "time/swap_pause": ("s", "generation stood still for new weights"),
    "time/swap_pause_share": ("share", "of the generators' time since the last step"),
    "time/checkpoint": ("s", "spent on writing checkpoints since the last step"),
    "time/zero_variance_generation_share": ("share", "of this batch's generation, spent on prompts without variance"),
    "throughput/tokens_per_second": ("1/s", "sampled tokens trained on per wall second, end to end"),
    "throughput/generation_tokens_per_second": ("1/s", "all sampled tokens per second that a generator generated them"),
    "throughput/learning_tokens_per_second": ("1/s", "tokens trained on per second of optimiser steps"),
    "throughput/generation_tokens_per_cpu_second": ("1/s", "all sampled tokens per CPU second of generating"),
    "throughput/learning_tokens_per_cpu_second": ("1/s", "tokens trained on per CPU second of learning"),
    "ledger/tokens": (
        "tokens",
        "sampled for the steps so far, of dropped groups too; every evaluation says it as well",
    ),
    "ledger/generator": ("device-seconds", "generation of what was trained on, dropped groups included"),
    "ledger/learner": ("device-seconds", "optimiser steps"),
    "ledger/evaluation": ("device-seconds", "evaluations; not on the x-axis"),
    "ledger/waste": ("device-seconds", "lost with a process, done again, or never trained on; not on the x-axis"),
    "ledger/idle": ("device-seconds", "reserved and not used by a role (GPU units only)"),
}

BEHAVIOUR = """## When there is nothing to learn

A batch in which no prompt's rewards differ is an empty step: it counts as a step, the weights stay as they are
(`train/empty_steps`). After 50 batches' worth of such prompts in a row the run ends: as failed (`NothingToLearn`) when
not one answer was right, else as succeeded, with the share of right answers in its reason.

## Files

`metrics.jsonl` has one line a step, and a last one with the ledger. `evaluations.jsonl` has one line an evaluation with
the successes of every prompt. `rollouts.jsonl` has samples every `log_rollouts_every` steps: two prompts, four
responses of each, at most 4,000 characters a text, and no more beyond 64 MiB. A resumed run cuts the files to where its
checkpoint was written, so that no step stands twice. `attempts.jsonl` has one line an attempt: the step it began at,
and `spent`, the device-seconds that all attempts before it had taken; what of that no checkpoint holds is
`ledger/waste`. One process writes to a directory at a time; `.lock` is free when that process ends, however it ends.

## When the disk is full

A checkpoint that cannot be written on the way is said on stderr and left out, lines wait in memory for the disk. If
the last checkpoint or waiting lines are still refused at the end, the run has failed (exit code 1).
"""


def page() -> str:
    """The reference page."""
    parts = [
        "# Metrics of a run",
        "Written by `python -m trainer.measuring.metric_names > docs/reference/metrics.md`; a test keeps it true.",
        "## Overview\n\n" + _table(OVERVIEW),
        "## All others, by family\n\n" + _table(FAMILIES),
        BEHAVIOUR,
    ]
    return "\n\n".join(parts)


def _table(entries: dict[str, tuple[str, str]]) -> str:
    rows = [f"| `{name}` | {unit} | {meaning} |" for name, (unit, meaning) in entries.items()]
    return "\n".join(["| metric | unit | meaning |", "|---|---|---|", *rows])


if __name__ == "__main__":
    print(page(), end="")
