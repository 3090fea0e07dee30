// The part of a chart that a person zoomed into: kept over redrawings, given up with the axis it belongs to, and in the URL for a reload.

import { fromUrl, modeFromUrl, toUrl } from "./view.js";

const AXES = [["xaxis", "zoom"], ["yaxis", "zoomy"]]; // Plotly's name, the URL's

/**
 * Before a drawing: the ranges zoomed into take the place of the layout's, which double-click and reset go back to.
 * @param {HTMLElement} plot @param {object} layout
 */
export function keepZoom(plot, layout) {
  const mode = layout.uirevision;
  plot.home = Object.fromEntries(AXES.map(([axis]) => [axis, [...layout[axis].range]]));
  const before = plot.zoom ?? { mode: plot.dataset.axis ?? modeFromUrl(), ...asked(mode) }; // `data-axis`: the only one that the chart has
  if (before.mode === mode) plot.zoom = before;
  else remember(plot, { mode });
  for (const [axis] of AXES) if (plot.zoom[axis]) layout[axis].range = [...plot.zoom[axis]]; // Plotly writes into what it is given
  mark(plot);
}

/** After a person's drag, or a reset. @param {HTMLElement} plot @param {Record<string, any>} change as Plotly tells it @returns {boolean} whether a range is another */
export function zoomed(plot, change) {
  const moved = AXES.filter(([axis]) => Object.keys(change).some((key) => key.startsWith(`${axis}.range`)));
  if (moved.length === 0) return false;
  const now = (axis) => (String(plot.layout[axis].range) === String(plot.home[axis]) ? null : [...plot.layout[axis].range]);
  remember(plot, { ...plot.zoom, ...Object.fromEntries(moved.map(([axis]) => [axis, now(axis)])) });
  return true;
}

/** Back to the whole chart. @param {HTMLElement} plot */
export function unzoom(plot) {
  return window.Plotly.relayout(plot, Object.fromEntries(AXES.map(([axis]) => [`${axis}.range`, [...plot.home[axis]]])));
}

function remember(plot, zoom) {
  plot.zoom = zoom;
  toUrl(Object.fromEntries(AXES.map(([axis, name]) => [name, zoom[axis] ? written(zoom[axis], isLog(axis, zoom.mode)) : null])));
  mark(plot);
}

/** The element says on which axis it is zoomed. */
function mark(plot) {
  const { mode, ...ranges } = plot.zoom;
  if (Object.values(ranges).some(Boolean)) plot.dataset.zoomed = mode;
  else delete plot.dataset.zoomed;
}

const isLog = (axis, mode) => axis === "xaxis" && mode === "log";

/** In the chart's units, which a person can read: Plotly's range of a log axis is in powers of ten. */
function written(range, log) {
  return range.map((end) => Number((log ? 10 ** end : end).toPrecision(9))).join("..");
}

function asked(mode) {
  return Object.fromEntries(AXES.map(([axis, name]) => [axis, read(fromUrl(name), isLog(axis, mode))]));
}

/** @returns {[number, number] | null} null for what is no range */
function read(text, log) {
  const ends = (text ?? "").split("..").map((end) => (end.trim() === "" ? NaN : Number(end)));
  const range = log ? ends.map(Math.log10) : ends;
  return range.length === 2 && range.every(Number.isFinite) && range[0] < range[1] ? range : null;
}
