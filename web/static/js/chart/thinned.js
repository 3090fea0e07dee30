// Of very many evaluations those that tell where they all lie: each is an element of the page, and tens of thousands of them hold it up for
// seconds at every look. All are drawn again where a zoom leaves few enough.

import { toAxis } from "./axis.js";

const MOST = 4000; // of all runs together, in sight
const OF_EACH = 3; // that are kept of a part of the axis

/**
 * @param {{compute: number, reward: number}[][]} runs evaluations, their compute rising
 * @param {import("./axis.js").ComputeAxis[]} axes of each run
 * @param {[number, number]} range in sight, in Plotly's terms
 * @returns {{kept: number[][], near: number}} of each run the places, among its evaluations, of those to draw; and how many they are of,
 * which lie in sight or beside it
 */
export function thinned(runs, axes, range) {
  const shares = runs.map((points, run) => points.map(({ compute }) => shareIn(range, axes[run], compute)));
  const beside = shares.map(besideSight);
  const near = beside.reduce((sum, places) => sum + places.length, 0);
  if (near <= MOST) return { kept: beside, near };
  const parts = Math.max(1, Math.floor(MOST / OF_EACH / runs.length));
  const partOf = (run) => (at) => Math.floor(shares[run][at] * parts);
  const chosen = (places, run) => rising([places[0], ...grouped(places, partOf(run)).flatMap((part) => telling(part, runs[run])), places.at(-1)]);
  return { kept: beside.map((places, run) => (places.length > 0 ? chosen(places, run) : [])), near };
}

/** How far across what is in sight: 0 at its left edge, 1 at its right. */
const shareIn = ([low, high], axis, compute) => (toAxis(axis, axis.place(compute)) - low) / (high - low);

/** As much on either side as is in sight: what is dragged there is drawn when it is let go. */
const besideSight = (shares) => [...shares.keys()].filter((at) => shares[at] >= -1 && shares[at] <= 2);

function grouped(places, partOf) {
  const parts = new Map();
  for (const at of places) {
    const part = partOf(at);
    if (parts.has(part)) parts.get(part).push(at);
    else parts.set(part, [at]);
  }
  return [...parts.values()];
}

/** The lowest, the highest and the one in the middle of the part: those at its edges would stand in stripes. */
function telling(part, points) {
  if (part.length <= OF_EACH) return part;
  const [lowest, highest] = [(a, b) => a < b, (a, b) => a > b].map((before) => part.reduce((best, at) => (before(points[at].reward, points[best].reward) ? at : best)));
  return [lowest, highest, part[part.length >> 1]];
}

/** Each once, in its place. */
const rising = (places) => [...new Set(places)].sort((one, other) => one - other);
