// One small chart of several runs: of each the mean, a line in the colour of its arm. The line that is pointed at comes forward and is told.

import { SIZE, element, nearest, range, scaleOf, stretches, vector, written } from "./small-chart.js";
import { seriesColourName, seriesMarks } from "../chart/palette.js";

const TOLD = 6; // runs whose newest values a reader of the screen hears

/**
 * @typedef {object} Line
 * @property {string} run its id
 * @property {string} name
 * @property {number | null} series of its arm's colour, null for the control
 * @property {any[]} buckets of ThinnedSeries
 * @property {number[]} places of the buckets, shares of the width
 *
 * @typedef {object} ManyChart
 * @property {HTMLElement} figure
 * @property {Line[]} lines
 * @property {(place: number | null, run?: string | null) => number | null} point show what is nearest to a place, of one run; its index there
 * @property {(place: number, height: number) => string | null} runAt the run whose line is nearest to a point of the drawing, shares from the left and from above
 * @property {(run: string | null) => void} focus bring one forward
 */

/** @param {import("./panels.js").Panel} panel @param {Line[]} lines @returns {ManyChart} */
export function manyChart(panel, lines) {
  const all = lines.flatMap(({ buckets }) => buckets);
  const [low, high] = range(all, panel.unit === "share" ? 1 : Infinity);
  const up = (mean) => 1 - (mean - low) / (high - low); // from above
  const value = element("span", { class: "value" });
  const rule = vector("line", { class: "rule", y1: 0, y2: SIZE.height, visibility: "hidden" });
  const drawing = vector("svg", { viewBox: `0 0 ${SIZE.width} ${SIZE.height}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const groups = new Map(lines.map((line) => [line.run, drawnLine(line, up)]));
  drawing.append(...groups.values(), rule);
  const caption = element("figcaption", {});
  caption.append(element("span", { class: "what" }, panel.title), value);
  const drawn = element("div", { class: "drawn" });
  drawn.append(drawing, scaleOf(panel, all.some(({ mean }) => mean !== null) ? [high, low] : []));
  const figure = element("figure", { class: "small-chart many", tabindex: "0", title: panel.metric, "data-metric": panel.metric, "aria-label": told(panel, lines) });
  figure.append(caption, drawn);
  if (panel.says) figure.append(element("p", { class: "quiet" }, panel.says));

  const focus = (run) => {
    figure.classList.toggle("focused", groups.has(run));
    for (const [id, group] of groups) group.classList.toggle("near", id === run);
  };
  const point = (place, run = null) => {
    const line = lines.find((one) => one.run === run) ?? (place === null ? null : lines[0]);
    const index = line && place !== null ? nearest(line.places, place) : -1;
    rule.setAttribute("visibility", index < 0 ? "hidden" : "visible");
    value.textContent = index < 0 ? `${lines.length} ${lines.length === 1 ? "run" : "runs"}` : "";
    if (index < 0) return null;
    for (const end of ["x1", "x2"]) rule.setAttribute(end, String(line.places[index] * SIZE.width));
    const { mean } = line.buckets[index];
    if (run !== null) value.textContent = mean === null ? "not finite" : written(mean, panel.unit);
    return index;
  };
  const runAt = (place, height) => {
    const away = ({ buckets, places }) => {
      const { mean } = buckets[nearest(places, place)];
      return mean === null ? Infinity : Math.abs(up(mean) - height);
    };
    return lines.reduce((best, line) => (best === null || away(line) < away(best) ? line : best), null)?.run ?? null;
  };
  point(null);
  return { figure, lines, point, runAt, focus };
}

function drawnLine({ run, series, buckets, places }, up) {
  const group = vector("g", { class: `run ${seriesColourName(series)}`, "data-run": run });
  const dash = seriesMarks(series).fit;
  const at = (index) => `${(SIZE.width * places[index]).toFixed(2)},${(SIZE.height * up(buckets[index].mean)).toFixed(2)}`;
  group.append(...stretches(buckets).map((indices) => (indices.length === 1 ? vector("path", { class: "dot", d: `M${at(indices[0])}h0` }) : vector("polyline", { points: indices.map(at).join(" "), ...(dash === "solid" ? {} : { "stroke-dasharray": dash.replaceAll("px", "") }) }))));
  return group;
}

/** What a reader of the screen hears of the chart. */
function told(panel, lines) {
  const newest = ({ buckets }) => buckets.findLast(({ mean }) => mean !== null)?.mean;
  const values = lines.slice(0, TOLD).map((line) => `${line.name} ${newest(line) === undefined ? "not finite" : written(newest(line), panel.unit)}`);
  const more = lines.length > TOLD ? ` and ${lines.length - TOLD} more` : "";
  return `${panel.title}${panel.says ? `, ${panel.says}` : ""}, now: ${values.join(", ")}${more}`;
}
