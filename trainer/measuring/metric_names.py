"""Every metric that a step reports, with its unit and meaning: the small overview first. Written into
`docs/reference/metrics.md` by `python -m trainer.measuring.metric_names`."""

from __future__ import annotations

OVERVIEW: dict[str, tuple[str, str]] = {
    "train/pass_rate_all": (
        "share",
        "share of right answers among all that were sampled for the batch, before any filter",
    ),
    "train/pass_rate_kept": (
        "share",
        "the same for prompts with variance, which are those that teach; absent when there is none",
    ),
    "train/entropy": ("nats", "mean entropy of the policy at the tokens that are trained on"),
    "train/grad_norm": ("", "norm of the gradient before clipping"),
    "policy/mismatch_kl": ("nats", "mean of ratio - log ratio - 1: how far the learner is from the generator"),
    "staleness/mean": (
        "versions",
        "mean age of the tokens that are trained on; this family is absent when there are none",
    ),
    "staleness/max": ("versions", "age of the oldest of them; never above `algorithm.max_staleness`"),
    "generation/response_length": ("tokens", "mean length of all responses"),
    "generation/truncated_share": (
        "share",
        "share of responses that were cut at the budget; 10 to 15 % precede a collapse (paper §6)",
    ),
    "throughput/completions_per_second": ("1/s", "completions that are trained on, per wall second, end to end"),
    "time/learner_wait_share": (
        "share",
        "share of the step's wall time that the learner waited for a batch; high means generator bound",
    ),
    "time/generator_wait_share": (
        "share",
        "share of their time since the last step that generators waited; high means learner bound",
    ),
    "ledger/compute": ("budget.unit", "training compute so far: the x-axis of every curve"),
}

FAMILIES: dict[str, tuple[str, str]] = {
    "train/reward": ("", "mean reward of all samples, penalties included"),
    "train/solved_prompts_share": ("share", "share of the batch's prompts with right answers only"),
    "train/zero_variance_share": ("share", "share of the batch's prompts whose rewards are all equal"),
    "train/kept_prompts": ("prompts", "prompts that the learner trained on"),
    "train/advantage_mean": ("", "mean size of the advantages, over tokens"),
    "train/advantage_max": ("", "largest size of an advantage"),
    "train/loss": ("", "the loss as it was minimised"),
    "train/lr": ("", "learning rate of the step"),
    "train/skipped": ("0 or 1", "whether the step was skipped because loss or gradient was not finite"),
    "train/skipped_steps": ("steps", "skipped steps so far"),
    "train/empty_steps": ("steps", "steps so far in which the filter left nothing"),
    "filter/all_right_share": ("share", "share of the batch's prompts that have no variance and only right answers"),
    "filter/all_wrong_share": ("share", "share of the batch's prompts that have no variance and only wrong answers"),
    "filter/refilled_groups": ("prompts", "prompts that were dropped and replaced on the way to this batch (`refill`)"),
    "policy/ratio_mean": ("", "mean importance ratio of learner to generator"),
    "policy/ratio_cut_mean": (
        "",
        "mean over tokens of the ratio within the loss's cap or clip; with gspo, of their sequence's ratio",
    ),
    "policy/ratio_min": ("", "smallest importance ratio"),
    "policy/ratio_max": ("", "largest importance ratio, before any cap"),
    "policy/ratio_capped_share": (
        "share",
        "share of tokens whose ratio (gspo: the sequence's) is above cispo's cap, or clipped and without a gradient",
    ),
    "policy/mismatch_kl_per_entropy": ("", "`policy/mismatch_kl` divided by `train/entropy`"),
    "policy/logprob_diff_mean": ("nats", "mean absolute difference between the log-probs of learner and generator"),
    "policy/effective_sample_share": ("share", "effective sample size of the uncapped ratios: (sum w)^2 / (n sum w^2)"),
    "policy/not_finite_tokens": ("tokens", "tokens that are left out because their generator log-prob is not finite"),
    "policy/reference_kl": (
        "nats",
        "k3 estimate of the KL to the starting weights; only with `algorithm.kl_coefficient`",
    ),
    "staleness/in_flight_mean": ("versions", "mean age that tokens gained while their group was generated"),
    "staleness/in_flight_max": ("versions", "largest age gained so"),
    "staleness/in_queue_mean": (
        "versions",
        "mean age that tokens gained while the finished group waited for its batch",
    ),
    "staleness/in_queue_max": ("versions", "largest age gained so"),
    "generation/response_length_min": ("tokens", "length of the shortest response"),
    "generation/response_length_max": ("tokens", "length of the longest response"),
    "generation/response_length_finished": (
        "tokens",
        "mean length of responses that ended by themselves; absent when none did",
    ),
    "generation/response_length_right": ("tokens", "mean length of right responses; absent when there is none"),
    "generation/response_length_wrong": ("tokens", "mean length of wrong responses; absent when there is none"),
    "generation/interrupted_share": ("share", "share of responses into which the phrase was put"),
    "generation/waiting_groups": ("prompts", "prompts that are finished and wait for their batch"),
    "generation/lost_generators": ("", "generators that died or stalled and were replaced, in this attempt"),
    "prompts/epoch": (
        "",
        "epoch of the prompts, from 0 (in a mixture, of the task furthest behind); family absent for endless tasks",
    ),
    "prompts/active": ("prompts", "prompts that still come"),
    "prompts/left_out": ("prompts", "prompts that No-Positive-Resampling left out"),
    "verifier/judged": ("", "answers that verifiers have judged so far"),
    "verifier/timeouts": ("", "answers so far whose verifier ran out of time; they count as wrong"),
    "verifier/crashes": ("", "answers so far whose verifier crashed; they count as wrong"),
    "time/step": ("s", "wall time from step to step"),
    "time/generation": ("s", "wall time that generating this batch took, summed over generators"),
    "time/learning": ("s", "wall time of the optimiser step"),
    "time/wait_for_batch": ("s", "time that the learner waited for this batch"),
    "time/generator_busy": ("s", "time that generators worked on waves that came back since the last step"),
    "time/generator_waited": ("s", "time that generators waited before those waves"),
    "time/swap_pause": ("s", "time that generation stood still for new weights"),
    "time/swap_pause_share": ("share", "the same as a share of the generators' time since the last step"),
    "time/checkpoint": ("s", "time spent on writing checkpoints since the last step"),
    "time/zero_variance_generation_share": (
        "share",
        "share of this batch's generation time that was spent on prompts without variance",
    ),
    "throughput/tokens_per_second": ("1/s", "sampled tokens that are trained on, per wall second, end to end"),
    "throughput/generation_tokens_per_second": (
        "1/s",
        "all sampled tokens, per second that a generator generated them",
    ),
    "throughput/learning_tokens_per_second": ("1/s", "tokens that are trained on, per second of optimiser steps"),
    "throughput/generation_tokens_per_cpu_second": (
        "1/s",
        "all sampled tokens, per CPU second of generating and judging",
    ),
    "throughput/learning_tokens_per_cpu_second": ("1/s", "tokens that are trained on, per CPU second of learning"),
    "memory/learner_peak": (
        "GiB",
        "the most that a rank of the learner held: on a GPU torch's tensors in this step, on a CPU its process so far",
    ),
    "memory/learner_peak_share": ("share", "the same of all memory of the GPU (on GPUs only)"),
    "ledger/tokens": (
        "tokens",
        "tokens sampled for the steps so far, those of dropped groups included; every evaluation says it as well",
    ),
    "ledger/generator": (
        "device-seconds",
        "time to generate and judge what was trained on, dropped groups included",
    ),
    "ledger/learner": ("device-seconds", "time of optimiser steps"),
    "ledger/evaluation": ("device-seconds", "time of evaluations; not on the x-axis"),
    "ledger/waste": ("device-seconds", "time lost with a process, done again, or never trained on; not on the x-axis"),
    "ledger/idle": ("device-seconds", "time reserved and not used by a role (GPU units only)"),
}

BEHAVIOUR = """## When there is nothing to learn

A batch in which no prompt's rewards differ is an empty step. It counts as a step, and the weights stay as they are
(`train/empty_steps`). After 50 batches' worth of such prompts in a row the run ends:

- as failed (`NothingToLearn`) when not one answer was right,
- else as succeeded, with the share of right answers in its reason.

## Files

| file | what is in it |
|---|---|
| `metrics.jsonl` | one line a step, and a last one with the ledger |
| `evaluations.jsonl` | one line an evaluation, with the successes of every prompt |
| `rollouts.jsonl` | samples every `log_rollouts_every` steps: two prompts, four responses of each, \
at most 4,000 characters a text, and no more beyond 64 MiB |
| `attempts.jsonl` | one line an attempt: the step it began at, and `spent`, the device-seconds that all \
attempts before it had taken |
| `.lock` | held by the one process that writes to the directory; free when that process ends, however it ends |

- A resumed run cuts the files to where its checkpoint was written, so that no step stands twice.
- What no checkpoint holds of `spent` is `ledger/waste`.

## When the disk is full

A checkpoint that cannot be written on the way is reported on stderr and left out. Lines wait in memory for the disk. If
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
