// Axes, budget line, ceiling in the right margin and alert bells of one run's chart.

import { plain, rateRange } from "./axis.js";
import { holds } from "./curve-traces.js";
import { between, ending, escaped, middle } from "./words.js";
import { fade } from "./palette.js";

const ENOUGH = 0.085; // half a text's height and some air, as a share of the vertical range
const MARGIN = { left: 56, right: 96 };
const CEILING = { rule: 16, text: 28 }; // pixels right of the plot
const LETTER = 7; // the width of a letter or digit at 12 px, in pixels

// A bell in pixels, y upwards, its middle 17 px above the point that it belongs to.
const BELL = "M-6,12 L6,12 C4.5,13.5 4.3,15 4.3,17.5 C4.3,20.8 2.6,22.5 0,22.5 C-2.6,22.5 -4.3,20.8 -4.3,17.5 C-4.3,15 -4.5,13.5 -6,12 Z M-1.8,10.8 L1.8,10.8 L0,9.2 Z";

/** Axes, fonts and margins that every chart shares. @param {import("./axis.js").ComputeAxis} axis @param {Record<string, string>} ink */
export function baseLayout(axis, unit, ink) {
  const line = { gridcolor: ink.hairline, linecolor: ink.hairlineStrong, zeroline: false, tickfont: { color: ink.quiet }, tickangle: 0, automargin: true };
  return {
    font: { family: ink.font, size: 12, color: ink.ink },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    showlegend: false,
    hovermode: "closest",
    hoverdistance: 24,
    hoverlabel: { bgcolor: ink.paper, bordercolor: ink.hairlineStrong, font: { family: ink.font, size: 12, color: ink.ink }, align: "left" },
    margin: { l: MARGIN.left, r: MARGIN.right, t: 12, b: 48 },
    xaxis: { ...line, type: axis.mode === "log" ? "log" : "linear", range: axis.range, title: { text: titleOf(axis, unit), font: { color: ink.quiet, size: 12 }, standoff: 8 }, ticks: "outside", ticklen: 4, tickcolor: ink.hairlineStrong, showgrid: false },
    yaxis: { ...line, title: { text: "pass rate", font: { color: ink.quiet, size: 12 }, standoff: 8 }, tickformat: ".2f", showline: false },
    uirevision: axis.mode, // the zoom survives redrawing, and is given up when the axis changes
    modebar: { bgcolor: "rgba(0,0,0,0)", color: fade(ink.quiet, 0.6), activecolor: ink.accent },
    dragmode: "zoom",
    shapes: [],
    annotations: [],
  };
}

function titleOf({ mode }, unit) {
  if (mode === "steps") return "steps, beyond the evaluations at their pace";
  if (mode === "tokens") return "tokens sampled in training, beyond the evaluations at their pace";
  if (mode === "time") return "time since the first evaluation, beyond the evaluations at their pace";
  return `compute (${escaped(unit)})`;
}

/** @param {import("./curve-traces.js").Scene} scene @returns {object} Plotly layout */
export function curveLayout(scene) {
  const { view, forecast, axis, ink } = scene;
  const layout = baseLayout(axis, view.unit, ink);
  Object.assign(layout.yaxis, { range: rateRange(ratesOf(scene)), domain: [0.07, 1] });
  Object.assign(layout.xaxis, { anchor: "y2" });
  layout.yaxis2 = { domain: [0, 0.045], range: [0, 1], visible: false, fixedrange: true };
  if (holds(forecast)) layout.margin.r = Math.max(MARGIN.right, CEILING.text + 8 + LETTER * Math.max(...ceilingLines(scene.forecast).map((line) => line.length)));
  const pieces = [gutter(axis, ink), budget(scene), holds(forecast) ? ceiling(scene) : null, holds(forecast) ? start(scene) : null, ...view.alerts.map((alert) => bell(scene, alert))];
  for (const piece of pieces.filter(Boolean)) {
    layout.shapes.push(...(piece.shapes ?? []));
    layout.annotations.push(...(piece.annotations ?? []));
  }
  return layout;
}

function ratesOf({ view, forecast }) {
  const rates = view.points.flatMap((point) => [point.reward - (point.se ?? 0), point.reward + (point.se ?? 0)]);
  if (holds(forecast)) rates.push(...forecast.band.upper90, ...forecast.band.lower90, forecast.A.lower, forecast.A.upper);
  if (view.frozen?.band) rates.push(...view.frozen.band.median);
  return rates;
}

/** Sets the start apart from the log axis. */
export function gutter(axis, ink) {
  if (axis.rule === null) return null;
  return { shapes: [{ type: "line", x0: axis.rule, x1: axis.rule, yref: "paper", y0: 0, y1: 1, line: { color: ink.hairline, width: 1, dash: "2px,3px" }, layer: "below" }] };
}

/** The budget's line, with where the run is expected to end written at it where nothing else is drawn. */
function budget(scene) {
  const { view, forecast, axis, ink } = scene;
  if (!view.budget) return null;
  const x = axis.place(view.budget);
  const line = { type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { color: ink.quiet, width: 1 }, layer: "below" };
  const said = forecast?.at_budget ? ending(forecast.at_budget) : null;
  const level = said ? `<b>${middle(said.end)}</b> (90 %: ${between(said.end.lower, said.end.upper)})<br>` : forecast && !holds(forecast) ? "forecast withheld<br>" : "";
  const text = `${level}<span style="color:${ink.quiet}">at the budget, ${plain(view.budget)} ${escaped(view.unit)}</span>`;
  const letters = Math.max(`${plain(view.budget)}${view.unit}`.length + 16, level ? 26 : 0);
  const y = emptyHeight(scene, x, (letters * LETTER) / scene.width);
  return {
    shapes: [line],
    annotations: [{ ...inData(axis, x), y, yref: "y", yanchor: "middle", xanchor: "right", align: "right", showarrow: false, xshift: -6, text, font: { size: 12, color: ink.ink } }],
  };
}

/** A height left of `x` at which a text of two lines, `reach` wide, covers no point, curve or R0, the lowest such; else the least crowded. */
function emptyHeight({ view, forecast, axis }, x, reach) {
  const [low, high] = rateRange(ratesOf({ view, forecast }));
  const share = (value) => (toAxis(axis, value) - axis.range[0]) / (axis.range[1] - axis.range[0]);
  const right = share(x);
  const drawn = view.points.map((point) => [axis.place(point.compute), point.reward]);
  for (const one of [holds(forecast) ? forecast : null, view.frozen]) if (one?.band) one.band.compute.forEach((c, i) => drawn.push([axis.place(c), one.band.median[i]]));
  if (right - reach < START.end + START.text && holds(forecast)) drawn.push(...[0, START.below].map((below) => [x, forecast.R0.median - below * (high - low)]));
  const nearby = drawn.filter(([at]) => share(at) > right - reach && share(at) <= right + 0.005).map(([, rate]) => (rate - low) / (high - low));
  const space = (height) => Math.min(1, ...nearby.map((rate) => Math.abs(rate - height)));
  const free = [0.08, 0.16, 0.24, 0.32, 0.4, 0.5, 0.6, 0.68, 0.76, 0.84, 0.92].reduce((best, height) => (space(best) >= ENOUGH || space(best) >= space(height) ? best : height));
  return low + free * (high - low);
}

const toAxis = (axis, value) => (axis.mode === "log" ? Math.log10(value) : value);

/** Annotations, unlike shapes, take log10 of the value on a log axis. */
const inData = (axis, x) => ({ x: toAxis(axis, x), xref: "x" });

/** The ceiling's median and 90 % interval, in the right margin; without a median where the data cannot tell it. */
function ceiling({ forecast, ink }) {
  const { A, ceiling_known: known } = forecast;
  const beside = { xsizemode: "pixel", xanchor: 1 };
  const rule = (x0, x1, y0, y1, line) => ({ type: "line", xref: "paper", yref: "y", x0, x1, y0, y1, line: { color: ink.accent, ...line } });
  const interval = { ...rule(CEILING.rule, CEILING.rule, A.lower, A.upper, known ? { width: 3 } : { width: 2, dash: "2px,3px" }), ...beside };
  const across = { ...rule(0, 1, A.median, A.median, { color: fade(ink.accent, 0.45), width: 1, dash: "1px,4px" }), layer: "below" };
  const tick = { ...rule(CEILING.rule - 6, CEILING.rule + 6, A.median, A.median, { width: 2 }), ...beside };
  const [said, range] = ceilingLines(forecast);
  const text = `ceiling<br>${known ? `<b>${said}</b>` : said.replace(" ", "<br>")}<br><span style="color:${ink.quiet}">${range}</span>`;
  return {
    shapes: known ? [interval, tick, across] : [interval],
    annotations: [{ xref: "paper", x: 1, xshift: CEILING.text, xanchor: "left", y: A.median, yref: "y", showarrow: false, align: "left", text, font: { size: 12, color: ink.accent } }],
  };
}

/** The ceiling's median, or that there is none, and its interval. */
function ceilingLines({ A, ceiling_known: known }) {
  return [known ? middle(A) : "not identified", between(A.lower, A.upper).replace(" to ", "–")];
}

/** Shares of the plot: how far the start's line reaches, how wide its name is at least, and how far it hangs below. */
const START = { end: 0.06, text: 0.1, below: 0.05 };

/** R0, where the curve starts: a short line through the start, named beside it. */
function start({ forecast, axis, ink }) {
  const { R0 } = forecast;
  if (R0?.median === null || R0?.median === undefined) return null;
  const end = axis.start === null ? 0.02 : START.end;
  return {
    shapes: [{ type: "line", xref: "paper", yref: "y", x0: 0, x1: end, y0: R0.median, y1: R0.median, line: { color: ink.accent, width: 1.5 } }],
    annotations: [{ xref: "paper", x: end + 0.004, xanchor: "left", y: R0.median, yref: "y", yanchor: "top", yshift: 2, showarrow: false, text: `R0 ${middle(R0)}`, font: { size: 11, color: ink.quiet } }],
  };
}

/** An alert: a bell over the point that raised it, and the stretch below the forecast marked in the strip. */
function bell({ view, axis, ink }, alert) {
  const at = alert.at_compute ?? alert.since_compute;
  if (at === null || at === undefined || view.points.length === 0) return null;
  const point = view.points.reduce((best, p) => (Math.abs(p.compute - at) < Math.abs(best.compute - at) ? p : best));
  const x = axis.place(at);
  const since = axis.place(alert.since_compute ?? at);
  const colour = alert.resolved_at ? ink.quiet : ink.alert;
  return {
    shapes: [
      { type: "path", path: BELL, xsizemode: "pixel", ysizemode: "pixel", xanchor: x, yanchor: point.reward, fillcolor: colour, line: { width: 0 } },
      { type: "line", x0: since, x1: x, yref: "paper", y0: 0.055, y1: 0.055, line: { color: colour, width: 3 } },
    ],
    annotations: [{ ...inData(axis, x), y: point.reward, yref: "y", ax: -56, ay: 34, xanchor: "right", showarrow: true, arrowhead: 0, arrowwidth: 1, arrowcolor: colour, standoff: 6, text: `${alert.level === "WARN" ? "warning" : "alert"}: ${escaped(alert.kind.replaceAll("_", " "))}`, font: { size: 12, color: colour }, bgcolor: ink.paper, borderpad: 2, hovertext: escaped(alert.text), captureevents: true, name: alert.id }],
  };
}
