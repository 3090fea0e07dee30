// Plotly's part of every chart: first drawing, redrawing without losing the zoom, ticks that follow it, clicks on bells.

import { ApiError } from "../api.js";

const CONFIG = { responsive: true, displaylogo: false, showTips: false, modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]] };
const PX_PER_TICK = 90;

let loading = null;

/** plotly.js is large: it is fetched beside the data and parsed when the rest of the page works already. @param {string} url */
function plotly(url) {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = url;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => reject(new ApiError(0, "the chart library did not load; reload the page"));
    document.head.append(script);
  });
  return loading;
}

/**
 * @param {HTMLElement} plot
 * @param {object[]} traces
 * @param {object} layout
 * @param {(range: [number, number], most: number) => {tickvals: number[], ticktext: string[]}} ticks
 */
export async function draw(plot, traces, layout, ticks) {
  const Plotly = await plotly(plot.dataset.plotly);
  const most = Math.max(3, Math.floor(plot.clientWidth / PX_PER_TICK));
  const zoomed = plot.dataset.zoomed === layout.uirevision;
  if (!zoomed) delete plot.dataset.zoomed;
  Object.assign(layout.xaxis, ticks(zoomed ? plot.layout.xaxis.range : layout.xaxis.range, most));
  plot.ticks = ticks;
  const first = !plot.data;
  await Plotly.react(plot, traces, layout, CONFIG);
  if (first) follow(plot);
  plot.dataset.drawn = String(Number(plot.dataset.drawn || 0) + 1);
}

function follow(plot) {
  plot.on("plotly_relayout", (change) => {
    const range = change["xaxis.range"] ?? (change["xaxis.range[0]"] === undefined ? null : [change["xaxis.range[0]"], change["xaxis.range[1]"]]);
    if (change["xaxis.autorange"]) delete plot.dataset.zoomed;
    else if (range) plot.dataset.zoomed = plot.layout.uirevision;
    if (range || change["xaxis.autorange"]) retick(plot);
  });
  plot.on("plotly_doubleclick", () => {
    delete plot.dataset.zoomed;
    retick(plot);
  });
  plot.on("plotly_clickannotation", ({ annotation }) => {
    if (annotation.name) document.getElementById(annotation.name)?.scrollIntoView({ block: "center" });
  });
}

function retick(plot) {
  const most = Math.max(3, Math.floor(plot.clientWidth / PX_PER_TICK));
  const { tickvals, ticktext } = plot.ticks(plot.layout.xaxis.range, most);
  if (String(plot.layout.xaxis.tickvals) === String(tickvals)) return;
  window.Plotly.relayout(plot, { "xaxis.tickvals": tickvals, "xaxis.ticktext": ticktext });
}

/**
 * Load now and whenever the page is told to refresh; repaint when the theme changes. A failed load is said, not hidden.
 * @param {HTMLElement} plot @param {() => Promise<void>} load @param {() => void} repaint
 */
export async function whenLive(plot, load, repaint) {
  const attempt = async () => {
    try {
      await load();
      say(plot, "");
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      say(plot, `The chart could not be ${plot.data ? "refreshed" : "loaded"}: ${error.message}`);
    }
  };
  document.body.addEventListener("forecurve:refresh", attempt);
  document.addEventListener("forecurve:theme", repaint);
  await attempt();
}

function say(plot, text) {
  const place = document.querySelector("[data-chart-error]");
  place.textContent = text;
  place.hidden = !text;
}
