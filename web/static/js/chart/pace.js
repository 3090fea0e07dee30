// Steps, tokens or time in place of compute. A forecast knows compute alone: what it says of a compute is drawn where the run stood, or at the
// pace of its latter half will stand, when it has spent that.

/** @typedef {import("./axis.js").Mode} Mode */

/**
 * @param {Mode} mode
 * @param {{compute: number, step: number, tokens: number | null, time: string}[]} points evaluations, their compute rising
 * @returns {(compute: number) => number} compute itself, steps, tokens, or seconds since the first evaluation
 */
export function paceOf(mode, points) {
  if (!countsOtherwise(mode) || points.length === 0) return (compute) => compute;
  const reached = rising(points.map(COUNTS[mode](points[0])));
  const compute = points.map((point) => point.compute);
  const [half, last] = [Math.floor((points.length - 1) / 2), points.length - 1];
  const pace = compute[last] > compute[half] ? (reached[last] - reached[half]) / (compute[last] - compute[half]) : 0;
  return (at) => {
    if (at >= compute[last]) return reached[last] + pace * (at - compute[last]);
    const above = firstNotBelow(compute, at);
    if (above === 0) return compute[0] > 0 ? (reached[0] * at) / compute[0] : reached[0];
    const share = (at - compute[above - 1]) / (compute[above] - compute[above - 1]);
    return reached[above - 1] + share * (reached[above] - reached[above - 1]);
  };
}

/** The first place of rising numbers, the last of which is not below, by halves: an axis asks for each of thousands. */
function firstNotBelow(rising, at) {
  let [low, high] = [0, rising.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (rising[middle] >= at) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** What a point had done, by mode, and from which point on. */
const COUNTS = {
  steps: () => ({ step }) => step,
  tokens: () => ({ tokens }) => tokens,
  time: (first) => ({ time }) => (Date.parse(time) - Date.parse(first.time)) / 1000,
};

/** Whether something else than compute stands on the axis. @param {Mode} mode */
export const countsOtherwise = (mode) => mode in COUNTS;

/** The axis for one run: compute goes to where that run stood. @param {import("./axis.js").ComputeAxis} axis @param {any[]} points */
export function along(axis, points) {
  const pace = paceOf(axis.mode, points);
  return { ...axis, place: (compute) => axis.place(pace(compute)) };
}

/** A run that has been resumed may have evaluated a step anew, later: the axis does not run backwards. */
function rising(values) {
  let most = -Infinity;
  return values.map((value) => (most = Math.max(most, value)));
}
