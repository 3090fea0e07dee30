// What a run logged while it trained: the overview as small charts over the same compute as the chart above, whatever else on request.
// Loaded when the section comes into sight. Chosen metrics stand in the URL.

import { api } from "../api.js";
import { axesOf } from "./axes.js";
import { startBoard } from "./board.js";
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
    extent: ({ metrics }) => axesOf(metrics.items, metrics.unit).extent,
    shown: (found) => found && (section.querySelector("[data-training-empty]").hidden = found.names.length > 0),
    everyMs: LOOK_EVERY_MS,
  });
  document.body.addEventListener("forecurve:refresh", ({ detail }) => {
    const done = board.load();
    detail?.parts.push(done);
  });
  await board.load();
}

function drawn({ names, metrics }, run) {
  const axes = axesOf(metrics.items, metrics.unit);
  const byName = new Map(metrics.items.map((series) => [series.metric, series]));
  const shown = panelsOf(names).filter(({ metrics: [metric] }) => byName.has(metric));
  return shown.map((panel) => chartOf(panel, byName.get(panel.metrics[0]), axes, run));
}

function chartOf(panel, series, axes, run) {
  const { placed, where } = axes.of([series]);
  const chart = smallChart({ ...panel, metric: series.metric }, series, series.buckets.map(placed));
  const caption = chart.figure.querySelector("figcaption");
  if (isShare(series)) caption.append(forecastLink(run, series.metric));
  if (!panel.says) caption.append(removal(series.metric));
  return {
    figure: chart.figure,
    near: (at) => ({ at }),
    show: (place) => {
      const index = chart.point(place?.at ?? null);
      return index === null ? null : { where: where(series.buckets[index]), value: chart.value() };
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
