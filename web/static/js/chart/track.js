// The chart of the track record: of every forecast by how much it was off, with its interval, over the share of what the run spent.
// A press, or Enter after the arrow keys, leads to the run with that forecast as it was.

import { api } from "../api.js";
import { computeTicks } from "./axis.js";
import { baseLayout, DIFFERENCES } from "./curve-layout.js";
import { draw, whenLive } from "./draw.js";
import { fade, tokens } from "./palette.js";
import { drawnWidth } from "./printing.js";
import { startStepping } from "./stepping.js";
import { between, escaped } from "./words.js";

const AXIS = { mode: "share", place: (share) => share, start: null, rule: null, range: [-2, 104] };
const MOST = 1000; // as many as the API lists
const CROWD = 150; // more forecasts than these are drawn small and faint
const RANGES = [[0, 17.5, "a tenth"], [17.5, 37.5, "a quarter"], [37.5, 75, "a half"], [75, 100, "later"]]; // as the table has them
const [APART, WIDEST] = [0.5, 1.6]; // per cent of the axis: between two that share a place, and of all that do
const DIGITS = 3; // of all rates here, so that what came is seen to lie in the interval or not
const NARROW = 760; // pixels, below which the ranges have no names

const KINDS = [
  { name: "held", of: (one) => !one.withheld && one.covered, colour: "accent", symbol: "circle", filled: true },
  { name: "missed", of: (one) => !one.withheld && !one.covered, colour: "alert", symbol: "diamond", filled: false },
  { name: "withheld", of: (one) => one.withheld, colour: "quiet", symbol: "x-thin", filled: true },
];

/** @param {HTMLElement} plot `data-sweep` narrows it to one sweep */
export async function startTrack(plot) {
  const state = { record: null };
  const show = () => state.record && paint(plot, state.record);
  const open = (id) => {
    const one = state.record?.forecasts.find(({ forecast }) => forecast === id);
    if (one) location.assign(`/runs/${one.run}?at=${one.forecast}`);
  };
  startStepping(plot, { open, say: (id) => words(state.record.forecasts.find(({ forecast }) => forecast === id)) });
  const sweep = plot.dataset.sweep ? `&sweep_id=${plot.dataset.sweep}` : "";
  await whenLive(plot, () => api(`/v1/track-record?limit=${MOST}${sweep}`), (record) => {
    state.record = record;
    return show();
  }, show);
}

function paint(plot, { forecasts, table, scored }) {
  const cut = document.querySelector("[data-cut]");
  cut.hidden = forecasts.length >= scored;
  cut.textContent = `the newest ${count(forecasts.length)} of ${count(scored)} drawn`;
  const ink = tokens();
  const layout = baseLayout(AXIS, "", ink);
  layout.xaxis.title.text = "made at, of what the run spent in the end (%)";
  layout.yaxis.title.text = "forecast less what came";
  layout.yaxis.range = errorRange(forecasts);
  layout.yaxis.tickformatstops = DIFFERENCES;
  layout.margin.r = 12;
  layout.margin.t = 36;
  Object.assign(layout.yaxis, { zeroline: true, zerolinecolor: ink.quiet, zerolinewidth: 1 });
  layout.shapes = RANGES.slice(1).map(([above]) => border(above, ink));
  layout.annotations = RANGES.flatMap((range) => named(range, table, drawnWidth(plot) >= NARROW, ink));
  document.querySelector("[data-withheld-key]").hidden = !forecasts.some(({ withheld }) => withheld);
  const crowd = Math.min(1, Math.sqrt(CROWD / Math.max(1, forecasts.length)));
  const places = besideOneAnother(forecasts);
  const traces = KINDS.map((kind) => trace(kind, forecasts.filter(kind.of), places, crowd, ink)).filter(({ x }) => x.length > 0);
  return draw(plot, () => traces, layout, (range, most) => computeTicks({ ...AXIS, mode: "linear" }, range, most));
}

/** Forecasts made at the same share, as those of a sweep's runs are, stand beside one another, around it. @returns {Map<string, number>} */
function besideOneAnother(forecasts) {
  const columns = new Map();
  for (const one of forecasts) columns.set(one.fraction.toFixed(3), [...(columns.get(one.fraction.toFixed(3)) ?? []), one]);
  return new Map([...columns.values()].flatMap((column) => {
    const apart = Math.min(APART, WIDEST / column.length);
    return column.map((one, at) => [one.forecast, 100 * one.fraction + apart * (at - (column.length - 1) / 2)]);
  }));
}

function trace({ name, colour, symbol, filled }, some, places, crowd, ink) {
  const own = ink[colour];
  return {
    name,
    x: some.map((one) => places.get(one.forecast)),
    y: some.map((one) => one.error),
    ids: some.map((one) => one.forecast),
    mode: "markers",
    marker: { symbol, size: 4 + 4 * crowd, color: filled ? own : ink.paper, line: { color: own, width: 1.5 } },
    error_y: {
      type: "data",
      symmetric: false,
      array: some.map((one) => one.upper - one.predicted),
      arrayminus: some.map((one) => one.predicted - one.lower),
      color: fade(own, 0.2 + 0.4 * crowd),
      thickness: 1,
      width: 0,
    },
    customdata: some.map((one) => hovered(one)),
    hovertemplate: "%{customdata}<extra></extra>",
  };
}

/** Holds every error, and the intervals but for the widest of early forecasts, which would press the others flat. */
function errorRange(forecasts) {
  const errors = forecasts.map(({ error }) => Math.abs(error));
  const ends = forecasts.map(({ lower, upper, actual }) => Math.max(actual - lower, upper - actual)).sort((a, b) => a - b);
  const most = Math.max(0.02, ...errors, ends[Math.floor(0.8 * (ends.length - 1))] ?? 0) * 1.08;
  return [-most, most];
}

const border = (x, ink) => ({ type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { color: ink.hairlineStrong, width: 1, dash: "2px,3px" }, layer: "below" });

/** Over each range how many of its intervals held; nothing where there is no forecast. */
function named([above, upto, name], table, wide, ink) {
  const line = table.find((one) => Math.abs(100 * one.above - above) < 0.01);
  if (!line) return [];
  const held = `${line.held} of ${line.forecasts}`;
  const text = wide ? `${name}: ${held} held` : `${line.held}/${line.forecasts}`;
  return [{ x: (above + upto) / 2, xref: "x", y: 1, yref: "paper", yanchor: "bottom", yshift: 4, showarrow: false, text, font: { size: 12, color: ink.quiet } }];
}

const outcome = (one) => (one.withheld ? "withheld for a misfit" : one.covered ? "in the interval" : "outside of the interval");

function hovered(one) {
  return [
    `<b>${escaped(one.run_name)}</b>`,
    `made at ${(100 * one.fraction).toFixed(0)} % of what it spent`,
    `forecast ${one.predicted.toFixed(DIGITS)} (90 %: ${between(one.lower, one.upper, DIGITS)})`,
    `what came ${one.actual.toFixed(DIGITS)}, ${outcome(one)}`,
    `off by ${signed(one.error)}, the last value by ${signed(one.last_value - one.actual)}`,
  ].join("<br>");
}

/** The same for a reader of the screen. */
function words(one) {
  if (!one) return "";
  return `${one.run_name}, made at ${(100 * one.fraction).toFixed(0)} %: forecast ${one.predicted.toFixed(DIGITS)} (90 %: ${between(one.lower, one.upper, DIGITS)}), what came ${one.actual.toFixed(DIGITS)}, ${outcome(one)}.`;
}

const count = (number) => number.toLocaleString("en-GB");
const signed = (value) => `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(DIGITS)}`;
