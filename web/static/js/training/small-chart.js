// One small chart: the mean as a line, least to greatest as a field behind it, and a rule that all charts of the section move together.
// It is plain SVG that stretches with its box, so neither a new width nor a new theme asks for another drawing.

import { plain } from "../chart/axis.js";

export const SIZE = { width: 1000, height: 100 };
const SVG = "http://www.w3.org/2000/svg";

/**
 * @typedef {object} SmallChart
 * @property {HTMLElement} figure
 * @property {number[]} places of the buckets, shares of the width
 * @property {() => string} value what is written of the place that is shown
 * @property {(place: number | null) => number | null} point show what is nearest to a place, the newest for null; gives its index
 */

/**
 * @param {import("./panels.js").Panel & {metric: string}} panel
 * @param {any} series ThinnedSeries of the API
 * @param {number[]} places
 * @returns {SmallChart}
 */
export function smallChart(panel, series, places) {
  const { buckets } = series;
  const newest = buckets.findLastIndex((bucket) => bucket.mean !== null);
  const value = element("span", { class: "value" });
  const rule = vector("line", { class: "rule", y1: 0, y2: SIZE.height, visibility: "hidden" });
  const [low, high] = range(buckets, panel.unit === "share" ? 1 : Infinity);
  const drawing = vector("svg", { viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  drawing.append(...shapes(buckets, places, low, high), rule);
  const figure = element("figure", { class: "small-chart", tabindex: "0", title: `${panel.metric}, ${series.points} points`, "data-metric": panel.metric });
  const faults = series.not_finite ? [element("span", { class: "alarm" }, `${series.not_finite} not finite`)] : [];
  const drawn = element("div", { class: "drawn" });
  drawn.append(drawing, scaleOf(panel, newest < 0 ? [] : [high, low]));
  const caption = element("figcaption", {});
  caption.append(element("span", { class: "what" }, panel.title), ...faults, value);
  figure.append(caption, drawn);
  if (panel.says) figure.append(element("p", { class: "quiet" }, panel.says));
  const extent = newest < 0 ? "no finite value" : `${written(buckets[newest].mean, panel.unit)} now, between ${written(low, panel.unit)} and ${written(high, panel.unit)}`;
  figure.setAttribute("aria-label", `${panel.title}${panel.says ? `, ${panel.says}` : ""}: ${extent}`);

  const point = (place) => {
    const index = place === null ? newest : nearest(places, place);
    rule.setAttribute("visibility", place === null || index < 0 ? "hidden" : "visible");
    if (index < 0) return null;
    const x = places[index] * SIZE.width;
    rule.setAttribute("x1", x);
    rule.setAttribute("x2", x);
    value.textContent = buckets[index].mean === null ? "not finite" : written(buckets[index].mean, panel.unit);
    return index;
  };
  point(null);
  return { figure, places, point, value: () => value.textContent };
}

/** The index that a key leads to along places. @param {number[]} places @param {number | null} at where it is, null for nowhere yet @param {string} key @returns {number | null} */
export function along(places, at, key) {
  const last = places.length - 1;
  const moves = { ArrowLeft: at === null ? last : Math.max(0, at - 1), ArrowRight: at === null ? last : Math.min(last, at + 1), Home: 0, End: last };
  return last >= 0 && key in moves ? moves[key] : null;
}

/** The ends of the axis, from above to below. @param {import("./panels.js").Panel} panel @param {number[]} ends */
export function scaleOf(panel, ends) {
  const scale = element("div", { class: "scale", "aria-hidden": "true" });
  scale.append(...ends.map((end) => element("span", {}, panel.unit === "share" ? written(end, "share") : plain(end))));
  return scale;
}

/** The range of the means and some air, within what such values can be: one step's spike shall not press everything else flat. */
export function range(buckets, most) {
  const means = buckets.map((bucket) => bucket.mean).filter((mean) => mean !== null);
  if (means.length === 0) return [0, 1];
  const [low, high] = [Math.min(...means), Math.max(...means)];
  const air = 0.06 * (high - low) || 0.05 * Math.abs(high) || 0.5;
  return [low >= 0 ? Math.max(0, low - air) : low - air, high <= most ? Math.min(most, high + air) : high + air];
}

function shapes(buckets, places, low, high) {
  const y = (rate) => (SIZE.height * (1 - (rate - low) / (high - low))).toFixed(2);
  const x = (index) => (SIZE.width * places[index]).toFixed(2);
  return stretches(buckets).flatMap((indices) => {
    if (indices.length === 1) return [vector("path", { class: "mean dot", d: `M${x(indices[0])},${y(buckets[indices[0]].mean)}h0` })];
    const line = (column) => indices.map((index) => `${x(index)},${y(buckets[index][column])}`);
    const field = [...line("greatest"), ...line("least").reverse()];
    return [vector("polygon", { class: "spread", points: field.join(" ") }), vector("polyline", { class: "mean", points: line("mean").join(" ") })];
  });
}

/** Indices of buckets between those without a finite value, which leave a gap. */
export function stretches(buckets) {
  const found = [[]];
  buckets.forEach((bucket, index) => (bucket.mean === null ? found.push([]) : found.at(-1).push(index)));
  return found.filter((indices) => indices.length > 0);
}

export function nearest(places, place) {
  return places.reduce((best, at, index) => (best < 0 || Math.abs(at - place) < Math.abs(places[best] - place) ? index : best), -1);
}

/** @param {number} value @param {string} unit in the plural, where it has one */
export function written(value, unit) {
  if (unit === "share") return `${plain(100 * value)} %`;
  return `${plain(value)} ${plain(value) === "1" ? unit.replace(/s$/, "") : unit}`.trim();
}

/** @param {string} tag @param {Record<string, string>} attributes @param {string} [text] */
export function element(tag, attributes, text) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

export function vector(tag, attributes) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}
