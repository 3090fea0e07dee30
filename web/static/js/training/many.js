// What the runs of a comparison logged while they trained, over one another: those that are drawn in the chart above, in its colours.
// Loaded when the section comes into sight. Chosen metrics stand in the URL.

import { api } from "../api.js";
import { fromUrl } from "../chart/view.js";
import { axesOf } from "./axes.js";
import { startBoard } from "./board.js";
import { panelsOf, removal } from "./choice.js";
import { manyChart } from "./many-chart.js";

const BUCKETS = 60;
const MOST_RUNS = 20; // that the API gives at once, and that the chart above draws at first
const LOOK_EVERY_MS = 30_000; // twenty runs' worth of steps
const SETTLE_MS = 300; // several keys may be pressed one after another

/** @param {HTMLElement} section `data-series` maps run ids to colours (null: control) */
export async function startMany(section) {
  const series = JSON.parse(section.dataset.series);
  const state = { charts: [], pointed: null, named: "" };
  const part = (name) => section.querySelector(`[data-${name}]`);

  const board = startBoard(section, {
    fetched: async () => {
      const drawn = pressed(series);
      const runs = drawn.slice(0, MOST_RUNS);
      return { runs, left: drawn.length - runs.length, ...(runs.length > 0 ? await fetched(runs) : { unit: null, metrics: [], items: [] }) };
    },
    names: ({ metrics }) => metrics,
    charts: (found) => (state.charts = charts(found)),
    extent: ({ items, unit }) => axesOf(items, unit).extent,
    shown: (found) => {
      part("training-empty").hidden = !found || found.metrics.length > 0 || found.runs.length === 0;
      part("none-drawn").hidden = !found || found.runs.length > 0;
      part("some-drawn").hidden = !found || found.left === 0;
      if (!found) return;
      part("some-drawn").textContent = `Of the first ${MOST_RUNS} runs that are drawn above; release some of their names to see the other ${found.left} here.`;
      state.named = namesOf(found.runs);
      queueMicrotask(() => state.pointed !== null && focus(state.pointed)); // under a pointer that has not moved
    },
    keeps: false, // other runs may be drawn above by now
    everyMs: LOOK_EVERY_MS,
  });
  const focus = (run) => state.charts.forEach((chart) => chart.focus(run));
  followKeys(() => board.load(), (run) => {
    if (run === state.pointed) return;
    state.pointed = run;
    focus(run);
  });
  document.addEventListener("htmx:after:swap", () => state.named !== namesOf(pressed(series).slice(0, MOST_RUNS)) && board.show());
  await board.load();
}

async function fetched(runs) {
  const path = `/v1/runs:metrics?${new URLSearchParams(runs.map(({ run }) => ["run_id", run]))}`;
  const { metrics } = await api(path);
  const asked = [...new Set(panelsOf(metrics).flatMap(({ metrics: names }) => names))];
  return asked.length > 0 ? api(`${path}&buckets=${BUCKETS}&${new URLSearchParams(asked.map((metric) => ["metric", metric]))}`) : { unit: null, metrics, items: [] };
}

/** The runs whose keys are pressed, or will be once the chart above is drawn, as they are called there. */
function pressed(series) {
  const asked = fromUrl("show")?.split(",");
  const isPressed = document.querySelector(".keys[data-told]") ? (key) => key.getAttribute("aria-pressed") === "true" : (key, at) => (asked ? asked.includes(key.dataset.key) : at < MOST_RUNS);
  const keys = [...document.querySelectorAll("[data-key]")].filter(({ dataset }) => dataset.key in series);
  return keys.filter(isPressed).map((key) => ({ run: key.dataset.key, name: () => key.querySelector("[data-name]").textContent, series: series[key.dataset.key] }));
}

const namesOf = (runs) => runs.map(({ name }) => name()).join("\n");

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

function charts({ runs, items, metrics, unit }) {
  const axes = axesOf(items, unit);
  return panelsOf(metrics).flatMap((panel) => {
    const logged = runs.flatMap((run) => seriesOf(panel, run, items));
    if (logged.length === 0) return [];
    const { placed, where, aside } = axes.of(logged);
    const lines = logged.map((line) => ({ ...line, places: line.buckets.map(placed) }));
    const chart = manyChart(panel, lines, where, aside);
    if (!panel.says) chart.figure.querySelector("figcaption").append(removal(panel.metrics[0]));
    return [chart];
  });
}

/** The run's series of a panel, under the first of its names that the run has logged. */
function seriesOf(panel, run, items) {
  const mine = items.filter(({ run_id: id, points }) => id === run.run && points > 0);
  const found = panel.metrics.map((name) => mine.find(({ metric }) => metric === name)).find(Boolean);
  return found ? [{ ...run, metric: found.metric, buckets: found.buckets }] : [];
}
