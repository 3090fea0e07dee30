// Every page loads this; a chart's modules only where there is a chart.

import { startActions } from "./actions.js";
import { startChoosing } from "./choosing.js";
import { startFocus } from "./focus.js";
import { startLive } from "./live.js";
import { startOrigin } from "./origin.js";
import { startTicking } from "./ticking.js";
import { startTimes } from "./times.js";

startTimes();
startOrigin();
startActions();
startChoosing();
startFocus();
startTicking();
startThemeSwitch();

const curve = document.querySelector("[data-chart=curve]");
const training = document.querySelector("[data-training]");
const overlay = document.querySelector("[data-chart=overlay]");
if (curve) start(import("./chart/curve.js"), ({ startCurve }) => startCurve(curve), "[data-chart-error]");
if (overlay) start(import("./chart/overlay.js"), ({ startOverlay }) => startOverlay(overlay), "[data-chart-error]");
if (training) whenSeen(training, () => start(import("./training/section.js"), ({ startTraining }) => startTraining(training), "[data-training-error]"));

startTrackRecord();
document.addEventListener("htmx:after:swap", startTrackRecord); // the first forecast that is scored brings its chart along

startLive();

/** A script that did not come leaves a place empty, which is said there. @param {Promise<object>} module @param {string} error where */
function start(module, act, error) {
  module.then(act, () => {
    const place = document.querySelector(error);
    place.closest("[data-loading]")?.removeAttribute("data-loading");
    place.textContent = "The script of this part did not load; reload the page.";
    place.hidden = false;
  });
}

/** What stands further down a page is loaded when somebody scrolls there. */
function whenSeen(element, act) {
  const observer = new IntersectionObserver(([entry]) => {
    if (!entry.isIntersecting) return;
    observer.disconnect();
    act();
  }, { rootMargin: "200px" });
  observer.observe(element);
}

function startTrackRecord() {
  const plot = document.querySelector("[data-chart=track]:not([data-started])");
  if (!plot) return;
  plot.dataset.started = "";
  start(import("./chart/track.js"), ({ startTrack }) => startTrack(plot), "[data-chart-error]");
}

function startThemeSwitch() {
  const root = document.documentElement;
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const changed = () => document.dispatchEvent(new CustomEvent("forecurve:theme"));
  dark.addEventListener("change", changed);
  document.querySelector("[data-theme-switch]")?.addEventListener("click", () => {
    const now = root.dataset.theme || (dark.matches ? "dark" : "light");
    root.dataset.theme = now === "dark" ? "light" : "dark";
    localStorage.setItem("forecurve-theme", root.dataset.theme);
    changed();
  });
}
