// What is drawn of one run: evaluations, fit, bands, frozen forecast, prediction at the budget, marks on the axis.

import { asGiven, interpolate, plain } from "./axis.js";
import { fade } from "./palette.js";
import { curveThere, ending, escaped, estimate, inOneLine, reading, readings } from "./words.js";
import { clock } from "../times.js";

const INHERITED = 0; // the attempt of what a fork has of its parent's curve
const CROWD = 150; // more evaluations than these are drawn small and faint, without bars, below the fit

/**
 * @typedef {object} Scene
 * @property {any} view CurveView of the API
 * @property {any} forecast the one shown: the newest, or an older one while the slider is moved back
 * @property {boolean} replay
 * @property {import("./axis.js").ComputeAxis} axis
 * @property {number} width of the element in pixels; of the plot alone once the layout has taken its margins off
 * @property {number} height of the same
 * @property {Record<string, string>} ink tokens of the palette
 */

/** @param {Scene} scene @returns {object[]} Plotly traces, painted from first to last */
export function curveTraces(scene) {
  const { forecast } = scene;
  const traces = [];
  const drawn = holds(forecast);
  if (drawn) traces.push(...bands(scene));
  if (crowded(scene)) traces.push(...evaluations(scene));
  if (showsFrozen(scene)) traces.push(...frozen(scene));
  if (drawn) traces.push(...median(scene));
  if (drawn && forecast.at_budget) traces.push(...atBudget(scene));
  if (!crowded(scene)) traces.push(...evaluations(scene));
  return [...traces, ...marks(scene)];
}

const crowded = ({ view }) => view.points.length > CROWD;

/** Whether there is a forecast to draw; one that a misfit withholds says nothing of where the run goes. @param {any} forecast */
export const holds = (forecast) => Boolean(forecast && !forecast.withheld);

/** The frozen forecast is drawn unless it is the one on show. @param {Scene} scene */
export const showsFrozen = ({ view, forecast }) => Boolean(view.frozen?.band && view.frozen.id !== forecast?.id);

/** What the chart is of, in Plotly's HTML. @param {any} view */
export const measured = (view) => escaped(view.metric ?? "pass rate");

/** The band's columns up to, or from, the last compute that the forecast has seen. */
export function part(forecast, beyond, column) {
  const keep = forecast.band.compute.map((compute) => (beyond ? compute >= forecast.at_compute : compute <= forecast.at_compute));
  const columns = Object.entries(forecast.band).map(([name, values]) => [name, values.filter((_, i) => keep[i])]);
  return withSeam(Object.fromEntries(columns), forecast, beyond)[column];
}

/** Both parts end exactly at `at_compute`, so that no gap opens between grid points. */
function withSeam(columns, forecast, beyond) {
  const at = forecast.at_compute;
  if (columns.compute.includes(at)) return columns;
  const seam = (name) => (name === "compute" ? at : interpolate(forecast.band.compute, forecast.band[name], at));
  if (seam("median") === null) return columns;
  const join = (name, values) => (beyond ? [seam(name), ...values] : [...values, seam(name)]);
  return Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, join(name, values)]));
}

function bands({ forecast, axis, ink }) {
  const end = Math.max(...forecast.band.compute);
  const drawn = [];
  for (const [level, alpha] of [["90", 0.13], ["50", 0.2]]) {
    for (const beyond of [false, true]) {
      const compute = part(forecast, beyond, "compute").map(axis.place);
      if (compute.length < 2) continue;
      const outline = [...compute, ...compute.slice().reverse()];
      const rates = [...part(forecast, beyond, `upper${level}`), ...part(forecast, beyond, `lower${level}`).slice().reverse()];
      drawn.push({
        name: `band${level}${beyond ? " beyond" : ""}`,
        x: outline,
        y: rates,
        mode: "lines",
        line: { width: 0 },
        fill: "toself",
        hoverinfo: "skip",
        ...(beyond ? fading(forecast.at_compute, end, ink.accent, alpha, axis) : { fillcolor: fade(ink.accent, alpha) }),
      });
    }
  }
  return drawn;
}

/** Beyond the data the band fades towards the end of what was forecast. */
export function fading(start, end, colour, alpha, axis) {
  if (!(end > start)) return { fillcolor: fade(colour, alpha) };
  const colorscale = [[0, fade(colour, alpha)], [1, fade(colour, alpha * 0.3)]];
  return { fillcolor: fade(colour, alpha * 0.6), fillgradient: { type: "horizontal", start: axis.place(start), stop: axis.place(end), colorscale } };
}

function median({ view, forecast, axis, ink }) {
  const line = (name, beyond) => {
    const compute = part(forecast, beyond, "compute");
    return {
      name,
      x: compute.map(axis.place),
      y: part(forecast, beyond, "median"),
      mode: "lines",
      line: { color: ink.accent, width: 2, dash: beyond ? "6px,4px" : "solid" },
      customdata: readings(forecast.band, compute),
      hovertemplate: `${reading(name, view.unit)}<br>50 %: %{customdata[3]}<extra></extra>`,
    };
  };
  return [line("fit", false), line("forecast", true)];
}

/** Where the newest forecast is withheld, the frozen one ends with the data too: the run has left the curve that it assumes. */
function frozen({ view, forecast, axis, ink }) {
  const { band, created_at, at_compute } = view.frozen;
  const end = forecast && !holds(forecast) ? view.points.at(-1)?.compute ?? 0 : Infinity;
  const upTo = (column) => band[column].filter((_, i) => band.compute[i] <= end);
  const x = upTo("compute").map(axis.place);
  const edge = (column) => ({ name: `frozen ${column}`, x, y: upTo(column), mode: "lines", line: { color: fade(ink.ink, 0.45), width: 1, dash: "1px,3px" }, hoverinfo: "skip" });
  const line = {
    name: "frozen",
    x,
    y: upTo("median"),
    mode: "lines",
    line: { color: ink.ink, width: 1.25, dash: "3px,3px" },
    customdata: readings(band, upTo("compute")),
    hovertemplate: `${reading("frozen forecast", view.unit)}<br>made ${clock(created_at)} at ${plain(at_compute)} ${escaped(view.unit)}<extra></extra>`,
  };
  return [edge("lower90"), edge("upper90"), line];
}

/** Predicted at the budget: the expected end's 90 % thick, that of one further evaluation thin. Past runs move and stretch the
 * end's, and leave the curve's band as it is. */
function atBudget({ view, forecast, axis, ink }) {
  const { compute, curve, evaluation } = forecast.at_budget;
  const { end, restsOn } = ending(forecast.at_budget);
  const said = `${asGiven(compute)} ${escaped(view.unit)}, the budget<br>expected end: ${estimate(end)}${restsOn ? `, ${restsOn}` : ""}<br>the curve by itself: ${estimate(curve)}`;
  const bar = (name, { median, lower, upper }, width, cap) => ({
    name,
    x: [axis.place(compute)],
    y: [median],
    mode: "markers",
    marker: { size: width + 1, color: ink.accent },
    error_y: { type: "data", symmetric: false, array: [upper - median], arrayminus: [median - lower], color: ink.accent, thickness: width, width: cap },
    hovertemplate: `${said}<extra></extra>`,
  });
  return [...(evaluation ? [bar("evaluation at budget", evaluation, 1, 4)] : []), bar("at budget", end, 3, 0)];
}

function evaluations({ view, forecast, replay, axis, ink }) {
  const seen = (point) => !replay || !forecast || point.compute <= forecast.at_compute;
  const { points } = view;
  const share = Math.min(1, Math.sqrt(CROWD / points.length));
  const [size, alpha] = [Math.max(2.5, 6 * share), Math.max(0.25, share)];
  const aside = (point) => point.attempt === INHERITED || isEarly(point, forecast);
  const colour = (point) => (!seen(point) || isOutlier(point, forecast) ? ink.paper : fade(aside(point) ? ink.quiet : ink.ink, alpha));
  return [
    {
      name: "evaluations",
      ids: points.map(idOf),
      x: points.map((point) => axis.place(point.compute)),
      y: points.map((point) => point.reward),
      mode: "markers",
      marker: { color: points.map(colour), size, line: { color: points.map((p) => (seen(p) && !isEarly(p, forecast) ? ink.ink : ink.quiet)), width: crowded({ view }) ? 0 : 1 } },
      error_y: { type: "data", visible: !crowded({ view }), array: points.map((point) => point.se ?? 0), color: fade(ink.ink, 0.55), thickness: 1, width: 0 },
      customdata: points.map((point) => [plain(point.compute), point.step, spread(point), curveThere(drawnBand(forecast), point.compute), clock(point.time), whose(point), weighed(point, forecast), written(view, point)]),
      hovertemplate: `%{customdata[0]} ${escaped(view.unit)} · step %{customdata[1]}%{customdata[5]}<br>${measured(view)} %{customdata[7]}%{customdata[2]}%{customdata[3]}%{customdata[6]}<br>%{customdata[4]}<extra></extra>`,
    },
  ];
}

/** What the hover of an evaluation says, for a reader of the screen. @param {any} view @param {any} forecast the one on show @param {string} id */
export function evaluationWords(view, forecast, id) {
  const point = view.points.find((one) => idOf(one) === id);
  if (!point) return "";
  const beside = inOneLine(curveThere(drawnBand(forecast), point.compute) + weighed(point, forecast));
  return `${plain(point.compute)} ${view.unit}, step ${point.step}${whose(point)}: ${view.metric ?? "pass rate"} ${written(view, point)}${spread(point)}${beside}; ${clock(point.time)}.`;
}

/** A pass rate with three decimals; a value of a metric, which may be of any size, with as many digits. */
const written = ({ metric }, { reward }) => (metric ? plain(reward) : reward.toFixed(3));
const idOf = ({ attempt, step }) => `${attempt}-${step}`;
const spread = ({ se }) => (se === null ? "" : ` ± ${se.toFixed(3)}`);
/** Of an early regime: grey, as the fit reads no ceiling from it. */
const isEarly = (point, forecast) => Boolean(forecast?.cutoff && point.compute < forecast.cutoff.compute);
/** Hollow: it lies far off its neighbours. */
const isOutlier = (point, forecast) => Boolean(forecast?.outliers.includes(point.compute));
const weighed = (point, forecast) => (isOutlier(point, forecast) ? "<br>outlier: hardly counts" : isEarly(point, forecast) ? "<br>does not follow the curve" : "");
const whose = ({ attempt }) => (attempt === INHERITED ? " of the parent" : "");
const drawnBand = (forecast) => (holds(forecast) ? forecast.band : null);

/** Small marks in the strip above the axis. */
function marks({ view, axis, ink }) {
  const row = (name, items, symbol, size, colour, text) => ({
    name,
    x: items.map((item) => axis.place(item.compute ?? item.at_compute)),
    y: items.map(() => 0.5),
    yaxis: "y2",
    mode: "markers",
    marker: { symbol, size, color: colour, line: { color: colour, width: 1 } },
    text: items.map(text),
    hovertemplate: "%{text}<extra></extra>",
  });
  const unit = escaped(view.unit);
  const at = (item) => `${plain(item.compute ?? item.at_compute)} ${unit}`;
  return [
    row("refits", view.refits, "line-ns-open", 5, ink.hairlineStrong, (r) => `refit at ${at(r)}<br>${clock(r.created_at)}`),
    row("checkpoints", view.checkpoints.filter((c) => c.compute !== null), "square", 6, ink.quiet, (c) => `checkpoint, step ${c.step}, ${at(c)}<br>${escaped(c.digest.slice(0, 12))}`),
    row("restarts", view.restarts, "x-thin-open", 8, ink.ink, (r) => `${r.attempt === 1 ? "the fork" : `attempt ${r.attempt}`} began at step ${r.step}, ${at(r)}`),
  ].filter((trace) => trace.x.length > 0);
}
