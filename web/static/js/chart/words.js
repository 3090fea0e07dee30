// Estimates in words, with the digits that their interval supports (the rule of forecurve/digits.py, for rates).

import { interpolate } from "./axis.js";

/** @typedef {{median: number, lower: number, upper: number}} Estimate */

const decimals = (lower, upper) => 2 + Number(upper - lower < 0.02) + Number(upper - lower < 0.002);

/** @param {Estimate} estimate @returns {string} the median, `0.78` */
export const middle = ({ median, lower, upper }) => median.toFixed(decimals(lower, upper));

/** @param {Estimate | null | undefined} estimate @returns {string} `0.78 (90 %: 0.77 to 0.80)` */
export function estimate(estimate) {
  if (!estimate) return "not known yet";
  return `${middle(estimate)} (90 %: ${between(estimate.lower, estimate.upper)})`;
}

/** @param {number} lower @param {number} upper @returns {string} `0.77 to 0.80` */
export function between(lower, upper) {
  const digits = decimals(lower, upper);
  return `${lower.toFixed(digits)} to ${upper.toFixed(digits)}`;
}

/** Where the run is expected to end and what the interval rests on, `adjusted by 5 past runs`; the curve alone where that is all there is.
 * @param {any} atBudget @returns {{end: Estimate, restsOn: string}} */
export function ending({ calibrated, curve, conformal }) {
  const [, how, runs] = conformal?.calibration?.match(/^(adjusted|conformal) \((\d+) past runs\)$/) ?? [];
  return { end: calibrated ?? curve, restsOn: runs ? `${how === "adjusted" ? "adjusted by" : "calibrated on"} ${runs} past runs` : "" };
}

/** What a band says of a compute. @param {any} band @param {number} compute @param {"50" | "90"} level @returns {string} */
export function predicted(band, compute, level) {
  const at = (name) => interpolate(band.compute, band[name], compute);
  return !band || at("median") === null ? "–" : between(at(`lower${level}`), at(`upper${level}`));
}

/** Names come from users, and Plotly reads a small HTML in its texts. @param {string} text */
export const escaped = (text) => text.replace(/[&<>"']/g, (sign) => `&#${sign.charCodeAt(0)};`);
