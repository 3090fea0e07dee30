// Alerts on the chart of a run: a bell over the point that raised one, its words beside it, the stretch below the forecast in the strip.

import { shareOf, toAxis } from "./axis.js";
import { escaped, widthOf } from "./words.js";

// A bell in pixels, y upwards, its middle 17 px above the point that it belongs to.
const BELL = "M-6,12 L6,12 C4.5,13.5 4.3,15 4.3,17.5 C4.3,20.8 2.6,22.5 0,22.5 C-2.6,22.5 -4.3,20.8 -4.3,17.5 C-4.3,15 -4.5,13.5 -6,12 Z M-1.8,10.8 L1.8,10.8 L0,9.2 Z";
const WIDTH = 14; // of a bell with some air, in pixels
const MOST = 3; // lines of words at a bell
const AWAY = 56; // pixels from the bell to the end of its words, left of it
const [BELOW, BESIDE] = [34, 14]; // pixels from the point to the middle of its words, below it; to that of one line, beside its bell
const FURTHER = [-BELOW - 16, BELOW + 32, -BELOW - 64, BELOW + 80]; // where evaluations stand in both of these
const AIR = 5; // pixels between words and an evaluation
const LINE = 16; // the height of a line of text, in pixels
const MARGIN = 48; // pixels left of the plot that the words may reach into

/**
 * @param {import("./curve-traces.js").Scene} scene
 * @param {(rate: number) => number} above how many pixels a rate stands above the foot of the plot
 * @returns {{shapes: object[], annotations: object[]}[]}
 */
export function bells(scene, above) {
  const placed = placedOf(scene);
  return [...placed.map((each) => stretch(scene, each)), ...heaps(scene, placed).map((heap) => bell(scene, heap, above))];
}

/** Where the bells' words stand, in pixels of the plot: from left to right, and how far up each of their lines. */
export function wordsAt(scene, above) {
  return heaps(scene, placedOf(scene)).map((heap) => {
    const { lines, point, end, away } = besideOf(scene, heap, above);
    const right = pixelOf(scene, heap[0].x) + end;
    const middle = above(point.reward) - away;
    return { left: right - widthOf(lines), right, ups: lines.map((_, i) => middle + LINE * ((lines.length - 1) / 2 - i)) };
  });
}

function placedOf({ view, axis }) {
  if (view.points.length === 0) return [];
  return view.alerts.filter((alert) => atOf(alert) !== null).map((alert) => ({ alert, x: axis.place(atOf(alert)) }));
}

const atOf = (alert) => alert.at_compute ?? alert.since_compute ?? null;
const inkOf = (alert, ink) => (alert.resolved_at ? ink.quiet : ink.alert);

const pixelOf = ({ axis, width }, x) => width * shareOf(axis, x);

/** Bells that would stand on one another become one. */
function heaps(scene, placed) {
  const found = [];
  for (const each of placed.slice().sort((a, b) => a.x - b.x)) {
    const last = found.at(-1);
    if (last && pixelOf(scene, each.x) - pixelOf(scene, last[0].x) < WIDTH) last.push(each);
    else found.push([each]);
  }
  return found.map((heap) => heap.slice().sort((a, b) => Number(Boolean(a.alert.resolved_at)) - Number(Boolean(b.alert.resolved_at)))); // the open ones first
}

function stretch({ axis, ink }, { alert, x }) {
  const since = axis.place(alert.since_compute ?? atOf(alert));
  const until = alert.back_since === null ? x : axis.place(alert.back_since);
  return { shapes: [{ type: "line", x0: since, x1: until, yref: "paper", y0: 0.055, y1: 0.055, line: { color: inkOf(alert, ink), width: 3 } }], annotations: [] };
}

/** The words of a bell, the point that it belongs to, and how far from there they end and stand below it. */
function besideOf(scene, heap, above) {
  const { view, ink } = scene;
  const [{ alert, x }] = heap;
  const lines = words(heap, ink);
  const over = widthOf(lines) - pixelOf(scene, x);
  const end = Math.max(-AWAY, Math.min(-BESIDE, over), over - MARGIN); // nearer where they would hide the rates' labels, beyond the bell where they would leave the chart
  const at = atOf(alert);
  const point = view.points.reduce((best, p) => (Math.abs(p.compute - at) < Math.abs(best.compute - at) ? p : best));
  return { lines, point, end, away: awayOf(scene, lines, point, pixelOf(scene, x) + end, above) };
}

/** How far below the point its words stand: where they hide the fewest evaluations, the nearest of such places. A run that fell to nothing has
 *  none below, there is the axis. */
function awayOf(scene, lines, point, right, above) {
  const { view, axis, height } = scene;
  const half = (LINE * lines.length) / 2;
  const stands = view.points.map((p) => [pixelOf(scene, axis.place(p.compute)), above(p.reward)]);
  const hidden = (away) => {
    const middle = above(point.reward) - away;
    return stands.filter(([at, up]) => at > right - widthOf(lines) - AIR && at < right + AIR && Math.abs(up - middle) < half + AIR).length;
  };
  const places = [BELOW, 8 - BESIDE - half, ...FURTHER].filter((away, i) => {
    const middle = above(point.reward) - away;
    return i === 1 || (middle > half && middle < height * 0.9 - half); // the one beside the bell always has room
  });
  return places.reduce((best, away) => (hidden(away) < hidden(best) ? away : best));
}

function bell(scene, heap, above) {
  const { axis, ink } = scene;
  const [{ alert, x }] = heap;
  const { lines, point, end, away } = besideOf(scene, heap, above);
  const colour = inkOf(alert, ink);
  return {
    shapes: [{ type: "path", name: "bell", path: BELL, xsizemode: "pixel", ysizemode: "pixel", xanchor: x, yanchor: point.reward, fillcolor: colour, line: { width: 0 } }],
    annotations: [{ x: toAxis(axis, x), xref: "x", y: point.reward, yref: "y", ax: end, ay: away, xanchor: "right", align: "right", showarrow: true, arrowhead: 0, arrowwidth: 1, arrowcolor: colour, standoff: 6, text: lines.join("<br>"), font: { size: 12, color: colour }, bgcolor: ink.paper, borderpad: 2, hovertext: heap.map((each) => escaped(each.alert.text)).join("<br>"), captureevents: true, name: alert.id }],
  };
}

/** One line a kind, how often it was raised, and whether it is over. */
function words(heap, ink) {
  const lines = new Map();
  for (const { alert } of heap) {
    const said = `${alert.level === "WARN" ? "warning" : "alert"}: ${escaped(alert.kind.replaceAll("_", " "))}${endOf(alert)}`;
    lines.set(said, { colour: inkOf(alert, ink), count: (lines.get(said)?.count ?? 0) + 1 });
  }
  const written = [...lines].map(([said, { colour, count }]) => coloured(`${said}${count > 1 ? ` (${count})` : ""}`, colour, inkOf(heap[0].alert, ink)));
  const more = written.length > MOST ? [`and ${written.length - MOST + 1} more`] : [];
  return [...written.slice(0, more.length > 0 ? MOST - 1 : MOST), ...more];
}

const endOf = (alert) => (alert.resolved_at ? ", resolved" : alert.back_since !== null ? ", back" : "");

const coloured = (text, colour, around) => (colour === around ? text : `<span style="color:${colour}">${text}</span>`);
