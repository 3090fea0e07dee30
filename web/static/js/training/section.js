// What a run logged while it trained: the overview as small charts over the same compute as the chart above, whatever else on request.
// Loaded when the section comes into sight. Chosen metrics stand in the URL.

import { api } from "../api.js";
import { computeAxis, plain, shareOf } from "../chart/axis.js";
import { axisMode, startBoard } from "./board.js";
import { panelsOf, removal } from "./choice.js";
import { along, element, nearest, smallChart } from "./small-chart.js";

const BUCKETS = 120; // one for every second pixel of a small chart
const LOOK_EVERY_MS = 10_000;
const LEAST_TO_FORECAST = 4;

/** @param {HTMLElement} section `data-run` names the run */
export async function startTraining(section) {
  const path = `/v1/runs/${section.dataset.run}/metrics`;
  const board = startBoard(section, {
    fetched: async () => {
      const { metrics: names } = await api(path);
      const panels = panelsOf(names);
      const query = panels.map(({ metrics: [metric] }) => `metric=${encodeURIComponent(metric)}`).join("&");
      return { names, metrics: panels.length > 0 ? await api(`${path}:thinned?buckets=${BUCKETS}&${query}`) : { unit: "", items: [] } };
    },
    names: ({ names }) => names,
    charts: (found) => drawn(found, section.dataset.run),
    extent,
    shown: (found) => found && (section.querySelector("[data-training-empty]").hidden = found.names.length > 0),
    everyMs: LOOK_EVERY_MS,
  });
  document.body.addEventListener("forecurve:refresh", ({ detail }) => {
    const done = board.load();
    detail?.parts.push(done);
  });
  await board.load();
}

/** All charts have one axis, so that what happens at once stands below one another; a series without compute has its steps. */
function drawn({ names, metrics }, run) {
  const kind = axisMode();
  const over = kind === "time" || kind === "tokens" ? "linear" : kind;
  const hasCompute = (series) => series.buckets.every((bucket) => bucket.compute !== null);
  const shared = computeAxis(over, metrics.items.filter(hasCompute).flatMap(({ buckets }) => buckets.map((bucket) => bucket.compute)));
  const byName = new Map(metrics.items.map((series) => [series.metric, series]));
  const shown = panelsOf(names).filter(({ metrics: [metric] }) => byName.has(metric));
  return shown.map((panel) => chartOf(panel, byName.get(panel.metrics[0]), { over, shared, hasCompute, kind, run, unit: metrics.unit }));
}

function chartOf(panel, series, { over, shared, hasCompute, kind, run, unit }) {
  const column = hasCompute(series) && kind !== "steps" ? "compute" : "step";
  const values = series.buckets.map((bucket) => bucket[column]);
  const axis = column === "compute" ? shared : computeAxis(over, values);
  const chart = smallChart({ ...panel, metric: series.metric }, series, values.map((value) => shareOf(axis, axis.place(value))));
  const caption = chart.figure.querySelector("figcaption");
  if (isShare(series)) caption.append(forecastLink(run, series.metric));
  if (!panel.says) caption.append(removal(series.metric));
  const where = (index) => `${column === "compute" ? `${plain(values[index])} ${unit}, ` : ""}step ${series.buckets[index].step}`;
  return {
    figure: chart.figure,
    near: (at) => ({ at }),
    show: (place) => {
      const index = chart.point(place?.at ?? null);
      return index === null ? null : { where: where(index), value: chart.value() };
    },
    reached: (place, key) => {
      const index = along(chart.places, place && nearest(chart.places, place.at), key);
      return index === null ? null : { at: chart.places[index] };
    },
  };
}

/** A metric between 0 and 1, with values enough for a forecast; another asks for its range on the page of its forecast. */
function isShare({ points, buckets }) {
  return points >= LEAST_TO_FORECAST && buckets.every(({ least, greatest }) => least === null || (least >= 0 && greatest <= 1));
}

function forecastLink(run, metric) {
  const href = `/runs/${run}/forecast?metric=${encodeURIComponent(metric)}`;
  return element("a", { class: "forecast", href, "aria-label": `Forecast ${metric}` }, "forecast");
}

/** Over what the charts are, while no place is pointed at. */
function extent({ metrics }) {
  const column = axisMode() === "steps" ? "step" : "compute";
  const last = Math.max(0, ...metrics.items.flatMap(({ buckets }) => buckets.map((bucket) => bucket[column] ?? 0)));
  if (last === 0) return "";
  return column === "step" ? `over steps, up to ${plain(last)}` : `over compute, up to ${plain(last)} ${metrics.unit}`;
}
