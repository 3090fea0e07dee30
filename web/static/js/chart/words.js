// Estimates in words, with the digits that their interval supports (the rule of forecurve/digits.py, for rates).

import { fixed, interpolate, plain } from "./axis.js";

/** @typedef {{median: number, lower: number, upper: number}} Estimate */

/** @param {number} lower @param {number} upper @returns {number} digits after the point, four of a point; few of a metric in percent */
function decimals(lower, upper) {
  if (upper - lower >= 2) return upper - lower < 20 ? 1 : 0;
  const further = Math.ceil(Math.log10(0.02 / (upper - lower)));
  return upper > lower ? Math.min(Math.max(2, 2 + further), 9) : 4;
}

/** @param {Estimate} estimate @returns {string} the median, `0.78` */
export const middle = ({ median, lower, upper }) => fixed(median, decimals(lower, upper));

/** @param {Estimate | null | undefined} estimate @returns {string} `0.78 (90 %: 0.77 to 0.80)` */
export function estimate(estimate) {
  if (!estimate) return "not known yet";
  return `${middle(estimate)} (90 %: ${between(estimate.lower, estimate.upper)})`;
}

/** @param {number} lower @param {number} upper @param {number} [digits] @returns {string} `0.77 to 0.80` */
export function between(lower, upper, digits = decimals(lower, upper)) {
  return `${fixed(lower, digits)} to ${fixed(upper, digits)}`;
}

/** Where the run is expected to end and what the interval rests on, `adjusted by 5 past runs`; the curve alone where that is all there is.
 * @param {any} atBudget @returns {{end: Estimate, restsOn: string}} */
export function ending({ calibrated, curve, conformal }) {
  const [, how, runs] = conformal?.calibration?.match(/^(adjusted|conformal) \((\d+) past runs\)$/) ?? [];
  return { end: calibrated ?? curve, restsOn: runs ? `${how === "adjusted" ? "adjusted by" : "calibrated on"} ${runs} past runs` : "" };
}

/** What a curve's band says of a compute, a line of a hover; none where no curve is drawn. @param {any} band @param {number} compute @returns {string} */
export function curveThere(band, compute) {
  const at = band && bandAt(band, compute, "90");
  return at ? `<br>the curve, 90 %: ${between(at.lower, at.upper)}` : "";
}

/** What a hover says, in one line for a reader of the screen. @param {string} text */
export const inOneLine = (text) => text.replaceAll("<br>", "; ");

/** @returns {Estimate | null} null outside of what the band covers */
function bandAt(band, compute, level) {
  const at = (name) => interpolate(band.compute, band[name], compute);
  return at("median") === null ? null : { median: at("median"), lower: at(`lower${level}`), upper: at(`upper${level}`) };
}

/**
 * What a line of medians says where it is pointed at: compute, median, 90 % interval and 50 % interval, all rates with the digits that the
 * 90 % interval supports.
 * @param {any} band @param {number[]} computes of the line's points @returns {string[][]} Plotly's customdata, for `reading`
 */
export function readings(band, computes) {
  return computes.map((compute) => {
    const [at, inner] = ["90", "50"].map((level) => bandAt(band, compute, level));
    if (!at) return [plain(compute), "–", "–", "–"];
    return [plain(compute), middle(at), between(at.lower, at.upper), between(inner.lower, inner.upper, decimals(at.lower, at.upper))];
  });
}

/** The hover of such a line. @param {string} what `fit`, `forecast` @param {string} unit */
export const reading = (what, unit) => `%{customdata[0]} ${escaped(unit)}<br>${what} %{customdata[1]}<br>90 %: %{customdata[2]}`;

/** Names come from users, and Plotly reads a small HTML in its texts, `%{y}` in those of hovers. @param {string} text */
export const escaped = (text) => text.replace(/[&<>"'%]/g, (sign) => `&#${sign.charCodeAt(0)};`);

const LETTER = 6.5; // the width of a letter or digit at 12 px, in pixels

/** About how wide lines of Plotly's HTML stand at 12 px, in pixels. @param {string[]} lines */
export function widthOf(lines) {
  const letters = lines.map((line) => line.replace(/<[^>]*>/g, "").replace(/&#\d+;/g, "&").length);
  return LETTER * Math.max(...letters);
}
