// What a run logged while it trained: the overview as small charts over the same compute as the chart above, whatever else on request.
// Loaded when the section comes into sight. Chosen metrics stand in the URL.

import { api, ApiError } from "../api.js";
import { computeAxis, plain, shareOf } from "../chart/axis.js";
import { say } from "../notice.js";
import { choose as toUrl, chosenNames, offer, panelsOf, removal } from "./choice.js";
import { element, smallChart } from "./small-chart.js";

const BUCKETS = 120; // one for every second pixel of a small chart
const LOOK_EVERY_MS = 10_000;
const LEAST_TO_FORECAST = 4;

/** @param {HTMLElement} section `data-run` names the run */
export async function startTraining(section) {
  const state = { names: [], metrics: null, charts: [], asked: 0, shown: 0 };
  const place = section.querySelector("[data-panels]");
  const select = section.querySelector("select");

  const load = async () => {
    const number = ++state.asked;
    try {
      const loaded = await fetched();
      if (number < state.shown) return; // one that was asked for later came first
      Object.assign(state, loaded, { shown: number });
      complain("");
      show();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (number < state.shown) return;
      complain(`The metrics could not be loaded: ${error.message}`);
    }
  };

  const fetched = async () => {
    const path = `/v1/runs/${section.dataset.run}/metrics`;
    const { metrics: names } = await api(path);
    const panels = panelsOf(names);
    const query = panels.map(({ metric }) => `metric=${encodeURIComponent(metric)}`).join("&");
    return { names, metrics: panels.length > 0 ? await api(`${path}:thinned?buckets=${BUCKETS}&${query}`) : null };
  };

  const complain = (text) => {
    const error = section.querySelector("[data-training-error]");
    say(error, text);
    error.hidden = !text;
  };

  const show = () => {
    const focused = document.activeElement?.closest("[data-metric]")?.dataset.metric;
    state.charts = state.metrics ? drawn(state, mode(), section.dataset.run) : [];
    place.replaceChildren(...state.charts.map(({ figure }) => figure));
    section.querySelector("[data-training-empty]").hidden = state.names.length > 0;
    section.removeAttribute("data-loading");
    offer(select, state.names);
    point(null);
    section.dataset.drawn = String(Number(section.dataset.drawn || 0) + 1);
    if (focused) (state.charts.find(({ figure }) => figure.dataset.metric === focused)?.figure ?? select).focus(); // it may have been removed
  };

  /** Move the rule of every chart to a place, or away; say where it is. */
  const point = (at, leader = null) => {
    let where = "";
    for (const chart of state.charts) {
      const index = chart.point(at);
      if (chart === leader && index !== null) where = chart.name(index);
    }
    section.querySelector("[data-said]").textContent = at === null ? extent(state) : where;
  };

  place.addEventListener("pointermove", (event) => {
    const chart = chartOf(state, event.target);
    if (!chart) return;
    const box = chart.figure.querySelector("svg").getBoundingClientRect();
    point(Math.min(1, Math.max(0, (event.clientX - box.left) / box.width)), chart);
  });
  place.addEventListener("pointerleave", () => point(null));
  place.addEventListener("focusout", () => point(null));
  place.addEventListener("keydown", (event) => {
    const chart = chartOf(state, event.target);
    if (!chart) return;
    if (event.altKey || event.ctrlKey || event.metaKey) return undefined; // the browser's own
    const last = chart.places.length - 1;
    const moves = { ArrowLeft: (at) => Math.max(0, at - 1), ArrowRight: (at) => Math.min(last, at + 1), Home: () => 0, End: () => last };
    if (event.key === "Escape") return point(null);
    if (!moves[event.key] || last < 0) return undefined;
    event.preventDefault();
    const index = moves[event.key](chart.index ?? last);
    point(chart.places[index], chart);
    chart.index = index;
    return undefined;
  });
  place.addEventListener("click", (event) => {
    const button = event.target.closest("[data-remove]");
    if (button) choose(chosenNames().filter((name) => name !== button.dataset.remove));
  });
  select.addEventListener("forecurve:chosen", () => select.value && choose([...chosenNames(), select.value]));
  document.addEventListener("change", (event) => event.target.name === "x" && state.metrics && show());
  document.body.addEventListener("forecurve:refresh", ({ detail }) => {
    const done = load();
    detail?.parts.push(done);
  });

  const choose = (names) => {
    toUrl(names);
    return load();
  };
  // Steps are too many to tell open pages of each: while the run goes on they look by themselves, but not under a reader's hand.
  setInterval(() => document.querySelector("[data-going]") && !document.hidden && !place.matches(":hover, :focus-within") && load(), LOOK_EVERY_MS);
  await load();
}

const mode = () => document.querySelector("input[name=x]:checked")?.value ?? "log";
const chartOf = (state, target) => state.charts.find(({ figure }) => figure.contains(target));

/** All charts have one axis, so that what happens at once stands below one another; a series without compute has its steps. */
function drawn({ names, metrics }, kind, run) {
  const hasCompute = (series) => series.buckets.every((bucket) => bucket.compute !== null);
  const shared = computeAxis(kind === "time" || kind === "tokens" ? "linear" : kind, metrics.items.filter(hasCompute).flatMap(({ buckets }) => buckets.map((bucket) => bucket.compute)));
  const byName = new Map(metrics.items.map((series) => [series.metric, series]));
  return panelsOf(names).filter(({ metric }) => byName.has(metric)).map((panel) => {
    const series = byName.get(panel.metric);
    const column = hasCompute(series) && kind !== "steps" ? "compute" : "step";
    const values = series.buckets.map((bucket) => bucket[column]);
    const axis = column === "compute" ? shared : computeAxis(kind, values);
    const chart = smallChart(panel, series, values.map((value) => shareOf(axis, axis.place(value))));
    const caption = chart.figure.querySelector("figcaption");
    if (isShare(series)) caption.append(forecastLink(run, panel.metric));
    if (!panel.says) caption.append(removal(panel.metric));
    const name = (index) => `${column === "compute" ? `${plain(values[index])} ${metrics.unit}, ` : ""}step ${series.buckets[index].step}`;
    return { ...chart, name };
  });
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
  const column = mode() === "steps" ? "step" : "compute";
  const last = Math.max(0, ...(metrics?.items ?? []).flatMap(({ buckets }) => buckets.map((bucket) => bucket[column] ?? 0)));
  if (last === 0) return "";
  return column === "step" ? `over steps, up to ${plain(last)}` : `over compute, up to ${plain(last)} ${metrics.unit}`;
}

