// The small fixed overview of a training run: what matters for every trainer, under the names that trainers give it. The first name
// that a run has reported is shown. Everything else that was logged is one choice away.

/**
 * @typedef {object} Panel
 * @property {string[]} metrics the names under which it was reported, that which counts first: runs of several trainers may have several
 * @property {string} title
 * @property {string} says what it is, in a few words; empty for a metric that is not of the overview
 * @property {string} unit "share" is written as per cent
 */

const OVERVIEW = [
  ["Training reward", "mean reward of all samples, before any filter", "", ["train/reward", "reward", "train/rewards", "rewards/mean", "critic/rewards/mean", "critic/score/mean", "train/pass_rate_all"]],
  ["Loss", "as it was minimised", "", ["train/loss", "loss", "train/policy_loss", "policy_loss", "actor/pg_loss"]],
  ["Entropy", "of the policy at the tokens trained on", "nats", ["train/entropy", "entropy", "policy/entropy", "actor/entropy", "actor/entropy_loss"]],
  ["Gradient norm", "before clipping", "", ["train/grad_norm", "grad_norm", "actor/grad_norm", "policy/grad_norm"]],
  ["Mismatch", "KL of the learner from the generator", "nats", ["policy/mismatch_kl", "mismatch_kl", "train/mismatch_kl", "rollout_corr/kl", "actor/ppo_kl", "train/kl", "kl"]],
  ["Response length", "mean over all responses", "tokens", ["generation/response_length", "completions/mean_length", "response_length/mean", "completion_length", "train/response_length"]],
  ["Truncated", "responses cut at the length limit", "share", ["generation/truncated_share", "completions/clipped_ratio", "response_length/clip_ratio", "train/truncated"]],
  ["Staleness", "age of the tokens trained on", "versions", ["staleness/mean", "staleness/max", "train/staleness"]],
  ["Learner waits", "for a batch, of each step's time", "share", ["time/learner_wait_share", "time/wait_for_batch", "train/wait_for_batch"]],
  ["Step time", "wall time from step to step", "s", ["time/step", "step_time", "timing_s/step", "perf/time_per_step"]],
];

/** @param {string[]} names of all metrics that were logged @returns {Panel[]} */
export function overview(names) {
  const reported = new Set(names);
  return OVERVIEW.flatMap(([title, says, unit, candidates]) => {
    const metrics = candidates.filter((name) => reported.has(name));
    return metrics.length > 0 ? [{ metrics, title, says, unit }] : [];
  });
}

/** @param {string} metric @returns {Panel} one that a person chose; its name is all that is known of it */
export const chosen = (metric) => ({ metrics: [metric], title: metric, says: "", unit: "" });
