// Plotly's part of every chart: first drawing, redrawing without losing the zoom, ticks that follow it, clicks on bells.

import { ApiError } from "../api.js";
import { say as tell } from "../notice.js";
import { drawnWidth, startPrinting } from "./printing.js";
import { widthOf } from "./words.js";
import { keepZoom, unzoom, zoomed } from "./zoom.js";

const RETRY_MS = 3000;
const BUTTONS = 32; // pixels of the strip that Plotly's own have at the top, where they stay
const PX_PER_TICK = 90;
const PX_PER_LETTER = 7; // of a tick's label

let loading = null;

/** plotly.js is large: it is fetched beside the data and parsed when the rest of the page works already. @param {string} url */
function plotly(url) {
  loading ??= new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = url;
    script.onload = () => resolve(window.Plotly);
    script.onerror = () => {
      loading = null; // tried again with the data
      script.remove();
      reject(new ApiError(0, "the chart library did not load"));
    };
    document.head.append(script);
  });
  return loading;
}

/**
 * @param {HTMLElement} plot
 * @param {(range: [number, number]) => object[]} traces of what is in sight
 * @param {object} layout
 * @param {(range: [number, number], most: number, letters: number) => {tickvals: number[], ticktext: string[]}} ticks
 */
export async function draw(plot, traces, layout, ticks) {
  if (plot.hidden) return; // without a size it would take one of its own, and keep it when the first evaluation shows it
  const Plotly = await plotly(plot.dataset.plotly);
  keepZoom(plot, layout);
  if (touched()) leaveDragsToThePage(plot, layout);
  Object.assign(layout.xaxis, ticks(layout.xaxis.range, ...roomOf(plot, layout)));
  if (plot.paperWidth) layout.width = plot.paperWidth; // else it follows its element
  layout.xaxis.title.text = inLines(layout.xaxis.title.text, roomOfTitle(drawnWidth(plot), layout.margin));
  plot.ticks = ticks;
  const first = !plot.data;
  await Plotly.react(plot, traces(layout.xaxis.range), layout, first ? config(Plotly) : undefined);
  if (first) follow(plot);
  plot.dataset.drawn = String(Number(plot.dataset.drawn || 0) + 1);
}

const touched = () => matchMedia("(pointer: coarse)").matches;

/** A thumb's drag scrolls the page: a chart that took it would zoom by accident and hold the reader fast. A tap still tells what is there. */
function leaveDragsToThePage(plot, layout) {
  plot.style.touchAction = "pan-y pinch-zoom";
  layout.dragmode = false;
  for (const axis of [layout.xaxis, layout.yaxis]) axis.fixedrange = true;
  const named = layout.margin.t > BUTTONS; // words stand above the plot
  layout.margin.t = named ? layout.margin.t + 20 : BUTTONS; // the buttons stay after a tap, and need a strip of their own
}

/** Plotly's own reset knows the first drawing's ranges only, which a longer run or another axis has left behind. */
function config(Plotly) {
  const reset = { name: "reset", title: "Reset the zoom", icon: Plotly.Icons.home, click: (plot) => unzoom(plot) };
  const drags = touched() ? [] : ["zoom2d", "pan2d"];
  return { responsive: true, displaylogo: false, showTips: false, doubleClick: false, modeBarButtons: [["toImage", ...drags, reset]] };
}

function follow(plot) {
  plot.on("plotly_relayout", (change) => {
    if (zoomed(plot, change) && plot.dispatchEvent(new Event("zoomed", { cancelable: true }))) retick(plot);
  });
  plot.on("plotly_doubleclick", () => unzoom(plot));
  plot.on("plotly_clickannotation", ({ annotation }) => annotation.name && leadTo(annotation.name));
}

/** To this alert; the page lists the newest, and any other that its address names. @param {string} alert */
function leadTo(alert) {
  const listed = document.getElementById(alert);
  if (listed) return listed.scrollIntoView({ block: "center" });
  const there = new URL(location.href);
  there.searchParams.set("alert", alert);
  there.hash = alert;
  location.assign(there);
}

/** How many ticks, and how many letters of their labels, find room along the axis. */
function roomOf(plot, { margin }) {
  const width = drawnWidth(plot);
  return [Math.max(3, Math.floor(width / PX_PER_TICK)), (width - margin.l - margin.r) / PX_PER_LETTER];
}

/** A title stands below the middle of the axis, which wide words in one margin put aside. */
function roomOfTitle(width, { l, r }) {
  const middle = (l + width - r) / 2;
  return 2 * Math.min(middle, width - middle);
}

/** On a phone there is no room for all of a title beside itself. */
const inLines = (text, room) => (widthOf([text]) > room ? text.replace(", ", ",<br>") : text);

function retick(plot) {
  const { tickvals, ticktext } = plot.ticks(plot.layout.xaxis.range, ...roomOf(plot, plot.layout));
  if (String(plot.layout.xaxis.tickvals) === String(tickvals)) return;
  window.Plotly.relayout(plot, { "xaxis.tickvals": tickvals, "xaxis.ticktext": ticktext });
}

/**
 * Load now and whenever the page is told to refresh; repaint when the theme changes. A failed load is said, not hidden.
 * Of two that are in flight the one that was asked for later counts, in whichever order they come.
 * @template T
 * @param {HTMLElement} plot @param {(runs: string[] | null) => Promise<T>} load may ask for no more than these runs: all else is what the
 * last one brought; null where that is not sure
 * @param {(loaded: T) => unknown} show @param {() => void} repaint
 */
export async function whenLive(plot, load, show, repaint) {
  let [asked, shown] = [0, 0];
  const attempt = async (runs = null) => {
    const all = shown === asked; // that was asked for is shown
    const number = ++asked;
    try {
      const loaded = await load(all ? runs : null);
      if (number < shown) return;
      shown = number;
      await show(loaded);
      say(plot, "");
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (number < shown) return;
      say(plot, `The chart could not be ${plot.data ? "refreshed" : "loaded"}: ${error.message}`);
      if (mayPass(error)) setTimeout(() => number === asked && !document.hidden && attempt(), RETRY_MS);
    }
  };
  document.body.addEventListener("forecurve:refresh", ({ detail }) => {
    const done = attempt(detail?.runs);
    detail?.parts.push(done);
  });
  document.addEventListener("forecurve:theme", repaint);
  startPrinting(plot, repaint);
  let width = plot.clientWidth;
  new ResizeObserver(() => {
    if (plot.hidden || plot.paperWidth || plot.clientWidth === width) return;
    width = plot.clientWidth;
    requestAnimationFrame(repaint);
  }).observe(plot);
  await attempt();
}

/** @param {ApiError} error whether the same may be answered a little later */
const mayPass = ({ status }) => status === 0 || status >= 500;

function say(plot, text) {
  const place = document.querySelector("[data-chart-error]");
  tell(place, text);
  place.hidden = !text;
}
