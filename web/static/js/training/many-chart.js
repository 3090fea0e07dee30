// One small chart of several runs: of each the mean, a line in the colour of its arm. The line that is pointed at comes forward and is told.

import { seriesColourName, seriesMarks } from "../chart/palette.js";
import { SIZE, along, element, nearest, range, scaleOf, stretches, vector, written } from "./small-chart.js";

const TOLD = 6; // runs whose newest values a reader of the screen hears
const REACH = 0.02; // of the width: beyond its last value by more, a run is not there

/**
 * @typedef {object} Line
 * @property {string} run its id
 * @property {() => string} name what it is called now
 * @property {number | null} series of its arm's colour, null for the control
 * @property {string} metric the name under which it logged
 * @property {any[]} buckets of ThinnedSeries
 * @property {number[]} places of the buckets, shares of the width
 */

/**
 * @param {import("./panels.js").Panel} panel @param {Line[]} lines @param {(bucket: any) => string} where a bucket lies
 * @param {string} aside a word more below the chart
 * @returns {import("./board.js").Chart & {focus: (run: string | null) => void}} `focus` brings a run forward
 */
export function manyChart(panel, lines, where, aside) {
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
  const names = [...new Set(lines.map(({ metric }) => metric))];
  const figure = element("figure", { class: "small-chart many", tabindex: "0", title: names.join(", "), "data-metric": panel.metrics[0], "aria-label": heard(panel, lines) });
  figure.append(caption, drawn);
  if (panel.says || aside) figure.append(element("p", { class: "quiet" }, [panel.says, aside].filter(Boolean).join("; ")));

  const of = (run) => lines.find((line) => line.run === run);
  const focus = (run) => {
    figure.classList.toggle("focused", groups.has(run));
    for (const [id, group] of groups) group.classList.toggle("near", id === run);
  };
  const show = (place) => {
    const line = place && of(place.run);
    focus(place?.run ?? null);
    rule.setAttribute("visibility", line ? "visible" : "hidden");
    value.textContent = !place ? `${lines.length} ${lines.length === 1 ? "run" : "runs"}` : line ? "" : "not logged";
    if (!line) return null;
    const index = nearest(line.places, place.at);
    for (const end of ["x1", "x2"]) rule.setAttribute(end, String(line.places[index] * SIZE.width));
    const { mean } = line.buckets[index];
    value.textContent = mean === null ? "not finite" : written(mean, panel.unit);
    return { where: `${line.name()}, ${where(line.buckets[index])}`, value: `${panel.title} ${value.textContent}` };
  };
  const near = (at, height, ratio) => {
    const away = ({ buckets, places }) => {
      const index = nearest(places, at);
      const { mean } = buckets[index];
      return mean === null ? Infinity : Math.hypot(beyond(places, at) * ratio, up(mean) - height);
    };
    return { at, run: lines.reduce((best, line) => (away(line) < away(best) ? line : best)).run };
  };
  const reached = (place, key) => {
    const line = of(place?.run) ?? lines[0];
    const index = along(line.places, place && of(place.run) ? nearest(line.places, place.at) : null, key);
    if (index !== null) return { at: line.places[index], run: line.run };
    const step = { ArrowUp: -1, ArrowDown: 1 }[key];
    if (!step) return null;
    const at = place?.at ?? line.places.at(-1);
    const meanOf = ({ buckets, places }) => buckets[nearest(places, at)].mean ?? -Infinity;
    const there = lines.filter((one) => one === line || beyond(one.places, at) <= REACH).toSorted((one, other) => meanOf(other) - meanOf(one));
    return { at, run: (there[there.indexOf(line) + step] ?? line).run };
  };
  show(null);
  return { figure, show, near, reached, focus };
}

/** How far a place lies before the first, or behind the last of these. */
const beyond = (places, at) => Math.max(0, places[0] - at, at - places.at(-1));

function drawnLine({ run, series, buckets, places }, up) {
  const group = vector("g", { class: `run ${seriesColourName(series)}`, "data-run": run });
  const dash = seriesMarks(series).fit;
  const at = (index) => `${(SIZE.width * places[index]).toFixed(2)},${(SIZE.height * up(buckets[index].mean)).toFixed(2)}`;
  const line = (indices) => vector("polyline", { points: indices.map(at).join(" "), ...(dash === "solid" ? {} : { "stroke-dasharray": dash.replaceAll("px", "") }) });
  const dot = ([index]) => vector("path", { class: "dot", d: `M${at(index)}h0` });
  group.append(...stretches(buckets).map((indices) => (indices.length === 1 ? dot(indices) : line(indices))));
  return group;
}

/** What a reader of the screen hears of the chart. */
function heard(panel, lines) {
  const newest = ({ buckets }) => buckets.findLast(({ mean }) => mean !== null)?.mean;
  const values = lines.slice(0, TOLD).map((line) => `${line.name()} ${newest(line) === undefined ? "not finite" : written(newest(line), panel.unit)}`);
  const more = lines.length > TOLD ? ` and ${lines.length - TOLD} more` : "";
  return `${panel.title}${panel.says ? `, ${panel.says}` : ""}, now: ${values.join(", ")}${more}`;
}
