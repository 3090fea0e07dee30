// What the runs of a comparison logged while they trained, over one another: those that are drawn in the chart above, in its colours.
// Loaded when the section comes into sight. Chosen metrics stand in the URL.

import { api, ApiError } from "../api.js";
import { computeAxis, plain, shareOf } from "../chart/axis.js";
import { say } from "../notice.js";
import { choose, chosenNames, offer, panelsOf, removal } from "./choice.js";
import { manyChart } from "./many-chart.js";
import { nearest } from "./small-chart.js";

const BUCKETS = 60;
const MOST_RUNS = 20; // that the API gives at once
const LOOK_EVERY_MS = 30_000; // twenty runs' worth of steps
const SETTLE_MS = 300; // several keys may be pressed one after another

/** @param {HTMLElement} section `data-series` maps run ids to colours (null: control) */
export async function startMany(section) {
  const series = JSON.parse(section.dataset.series);
  const state = { runs: [], found: null, charts: [], asked: 0, shown: 0, at: null, run: null };
  const place = section.querySelector("[data-panels]");
  const select = section.querySelector("select");

  const load = async () => {
    const number = ++state.asked;
    const runs = drawnRuns(series);
    try {
      const found = runs.length > 0 ? await fetched(runs) : { unit: null, metrics: state.found?.metrics ?? [], items: [] };
      if (number < state.shown) return; // one that was asked for later came first
      Object.assign(state, { runs, found, shown: number });
      complain("");
      show();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (number >= state.shown) complain(`The metrics could not be loaded: ${error.message}`);
    }
  };

  const complain = (text) => {
    const error = section.querySelector("[data-training-error]");
    say(error, text);
    error.hidden = !text;
  };

  const show = () => {
    const focused = document.activeElement?.closest("[data-metric]")?.dataset.metric;
    state.charts = charts(state);
    place.replaceChildren(...state.charts.map(({ figure }) => figure));
    section.querySelector("[data-training-empty]").hidden = state.found.metrics.length > 0;
    section.querySelector("[data-none-drawn]").hidden = state.runs.length > 0;
    section.removeAttribute("data-loading");
    offer(select, state.found.metrics);
    point(null);
    section.dataset.drawn = String(Number(section.dataset.drawn || 0) + 1);
    if (focused) (state.charts.find(({ figure }) => figure.dataset.metric === focused)?.figure ?? select).focus(); // it may have been removed
  };

  /** Move the rule of every chart to a place, or away, and bring a run forward in all of them; say where it is. */
  const point = (at, run = null, leader = null) => {
    Object.assign(state, { at, run });
    let where = "";
    for (const chart of state.charts) {
      const index = chart.point(at, run);
      chart.focus(run);
      if (chart === leader && index !== null) where = chart.where(run, index);
    }
    section.querySelector("[data-said]").textContent = where;
  };

  place.addEventListener("pointermove", (event) => {
    const chart = chartOf(state, event.target);
    if (!chart) return;
    const box = chart.figure.querySelector("svg").getBoundingClientRect();
    const at = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    point(at, chart.runAt(at, (event.clientY - box.top) / box.height), chart);
  });
  place.addEventListener("pointerleave", () => point(null));
  place.addEventListener("focusout", () => point(null));
  place.addEventListener("keydown", (event) => {
    const chart = chartOf(state, event.target);
    if (!chart || event.altKey || event.ctrlKey || event.metaKey) return; // the browser's own
    if (event.key === "Escape") return void point(null);
    const next = reached(chart, state, event.key);
    if (!next) return;
    event.preventDefault();
    point(next.at, next.run, chart);
  });
  place.addEventListener("click", (event) => {
    const button = event.target.closest("[data-remove]");
    if (button) asked(chosenNames().filter((name) => name !== button.dataset.remove));
  });
  select.addEventListener("forecurve:chosen", () => select.value && asked([...chosenNames(), select.value]));
  document.addEventListener("change", (event) => event.target.name === "x" && state.found && show());
  followKeys(() => load(), (run) => state.at === null && state.charts.forEach((chart) => chart.focus(run)));

  const asked = (names) => {
    choose(names);
    return load();
  };
  setInterval(() => section.hasAttribute("data-going") && !document.hidden && !place.matches(":hover, :focus-within") && load(), LOOK_EVERY_MS);
  await load();
}

async function fetched(runs) {
  const path = `/v1/runs:metrics?${new URLSearchParams(runs.map(({ run }) => ["run_id", run]))}`;
  const { metrics } = await api(`${path}&buckets=1`);
  const panels = panelsOf(metrics);
  return panels.length > 0 ? api(`${path}&buckets=${BUCKETS}&${new URLSearchParams(panels.map(({ metric }) => ["metric", metric]))}`) : { unit: null, metrics, items: [] };
}

/** The runs whose keys are pressed, as they are called there. */
function drawnRuns(series) {
  const keys = [...document.querySelectorAll("[data-key][aria-pressed=true]")].filter(({ dataset }) => dataset.key in series);
  return keys.slice(0, MOST_RUNS).map((key) => ({ run: key.dataset.key, name: key.querySelector("[data-name]").textContent, series: series[key.dataset.key] }));
}

/** @param {() => void} changed which are pressed @param {(run: string | null) => void} pointed at a key, or at a row of the table */
function followKeys(changed, pointed) {
  let timer = 0;
  const observer = new MutationObserver((changes) => {
    if (changes.every(({ target, oldValue }) => target.getAttribute("aria-pressed") === oldValue)) return;
    clearTimeout(timer);
    timer = setTimeout(changed, SETTLE_MS);
  });
  observer.observe(document.querySelector(".keys"), { subtree: true, attributeFilter: ["aria-pressed"], attributeOldValue: true });
  for (const kind of ["pointerover", "focusin"]) {
    document.addEventListener(kind, ({ target }) => {
      const at = target.closest("[data-key], [data-arm]");
      pointed(at ? at.dataset.key ?? at.dataset.arm : null);
    });
  }
}

const mode = () => document.querySelector("input[name=x]:checked")?.value ?? "log";
const chartOf = (state, target) => state.charts.find(({ figure }) => figure.contains(target));

/** All charts have one axis; a metric that one of the runs has logged without compute has its steps. */
function charts({ runs, found }) {
  const kind = mode();
  const over = kind === "time" || kind === "tokens" ? "linear" : kind;
  const hasCompute = ({ buckets }) => buckets.every(({ compute }) => compute !== null);
  const columnOf = (items) => (kind !== "steps" && found.unit !== null && items.every(hasCompute) ? "compute" : "step");
  const shared = computeAxis(over, found.items.filter(hasCompute).flatMap(({ buckets }) => buckets.map(({ compute }) => compute)));
  return panelsOf(found.metrics).map((panel) => ({ panel, items: found.items.filter(({ metric, points }) => metric === panel.metric && points > 0) })).filter(({ items }) => items.length > 0).map(({ panel, items }) => {
    const column = columnOf(items);
    const axis = column === "compute" ? shared : computeAxis(over, items.flatMap(({ buckets }) => buckets.map(({ step }) => step)));
    const lines = runs.flatMap((run) => items.filter(({ run_id: id }) => id === run.run).map(({ buckets }) => ({ ...run, buckets, places: buckets.map((bucket) => shareOf(axis, axis.place(bucket[column]))) })));
    const chart = manyChart(panel, lines);
    if (!panel.says) chart.figure.querySelector("figcaption").append(removal(panel.metric));
    const where = (run, index) => {
      const { name, buckets } = lines.find((line) => line.run === run) ?? lines[0];
      return `${name}, ${column === "compute" ? `${plain(buckets[index].compute)} ${found.unit}, ` : ""}step ${buckets[index].step}`;
    };
    return { ...chart, where };
  });
}

/** Where a key leads: along a run, or to the next one above or below there. */
function reached({ lines }, { at, run }, key) {
  const line = lines.find((one) => one.run === run) ?? lines[0];
  const last = line.places.length - 1;
  const here = at === null ? last + 1 : nearest(line.places, at);
  const moves = { ArrowLeft: Math.max(0, here - 1), ArrowRight: Math.min(last, here + 1), Home: 0, End: last };
  if (key in moves) return { at: line.places[moves[key]], run: line.run };
  const aside = { ArrowUp: -1, ArrowDown: 1 }[key];
  if (!aside) return null;
  const place = at ?? 1;
  const meanOf = ({ buckets, places }) => buckets[nearest(places, place)].mean ?? -Infinity;
  const above = lines.toSorted((one, other) => meanOf(other) - meanOf(one));
  const next = above[above.indexOf(line) + aside];
  return next ? { at: place, run: next.run } : { at: place, run: line.run };
}
