// The axes of a board: all charts have one, so that what happens at once stands below one another; a series without compute has its steps.

import { computeAxis, plain, shareOf } from "../chart/axis.js";

/** The current axis of the chart above. @returns {string} */
const mode = () => document.querySelector("input[name=x]:checked")?.value ?? "log";
const hasCompute = ({ buckets }) => buckets.every(({ compute }) => compute !== null);

/**
 * @typedef {object} Axes
 * @property {(series: any[]) => {aside: string, placed: (bucket: any) => number, where: (bucket: any) => string}} of
 * what series of one chart stand over, where a bucket stands across the chart and in words; `aside` says it where it is not what the others have
 * @property {string} extent over what the charts are, while no place is pointed at
 *
 * @param {any[]} items all series of the board @param {string | null} unit null where they have several
 * @returns {Axes}
 */
export function axesOf(items, unit) {
  const kind = mode();
  const over = kind === "time" || kind === "tokens" ? "linear" : kind;
  const wanted = kind === "steps" || unit === null ? "step" : "compute";
  const valuesOf = (series, column) => series.flatMap(({ buckets }) => buckets.map((bucket) => bucket[column]));
  const shared = computeAxis(over, valuesOf(items.filter(hasCompute), "compute"));
  const of = (series) => {
    const column = wanted === "compute" && series.every(hasCompute) ? "compute" : "step";
    const axis = column === "compute" ? shared : computeAxis(over, valuesOf(series, "step"));
    return {
      aside: column === "step" && kind !== "steps" ? "over steps" : "",
      placed: (bucket) => shareOf(axis, axis.place(bucket[column])),
      where: (bucket) => `${column === "compute" ? `${plain(bucket.compute)} ${unit}, ` : ""}step ${bucket.step}`,
    };
  };
  const last = Math.max(0, ...valuesOf(items, wanted).map((value) => value ?? 0));
  const extent = last === 0 ? "" : wanted === "step" ? `over steps, up to ${plain(last)}` : `over compute, up to ${plain(last)} ${unit}`;
  return { of, extent };
}
