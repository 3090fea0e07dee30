// Every page loads this; a chart's modules only where there is a chart.

import { startActions } from "./actions.js";
import { startChoosing } from "./choosing.js";
import { startComposing } from "./composing.js";
import { startElsewhere } from "./elsewhere.js";
import { startFocus } from "./focus.js";
import { startHints } from "./hints.js";
import { startLive } from "./live.js";
import { startOrigin } from "./origin.js";
import { startTicking } from "./ticking.js";
import { startTimes } from "./times.js";

startElsewhere();
startTimes();
startOrigin();
startActions();
startChoosing();
startComposing();
startFocus();
startHints();
startTicking();
startThemeSwitch();

const curve = document.querySelector("[data-chart=curve]");
const training = document.querySelector("[data-training]");
const many = document.querySelector("[data-training-many]");
const overlay = document.querySelector("[data-chart=overlay]");
const log = document.querySelector("[data-log]");
if (curve) import("./chart/curve.js").then(({ startCurve }) => startCurve(curve), missing("[data-chart-error]"));
if (overlay) import("./chart/overlay.js").then(({ startOverlay }) => startOverlay(overlay), missing("[data-chart-error]"));
if (training) whenSeen(training, () => import("./training/section.js").then(({ startTraining }) => startTraining(training), missing("[data-training-error]")));

if (many) whenSeen(many, () => import("./training/many.js").then(({ startMany }) => startMany(many), missing("[data-training-error]")));
if (log) import("./log.js").then(({ startLog }) => startLog(log), missing("[data-log-error]"));

startTrackRecord();
document.addEventListener("htmx:after:swap", startTrackRecord); // the first forecast that is scored brings its chart along

startLive();

/** A script that did not come leaves a part of the page empty, which is said there. @param {string} where */
function missing(where) {
  return () => {
    const place = document.querySelector(where);
    place.closest("[data-loading]")?.removeAttribute("data-loading");
    place.textContent = "The script of this part did not load; reload the page.";
    place.hidden = false;
  };
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
  import("./chart/track.js").then(({ startTrack }) => startTrack(plot), missing("[data-chart-error]"));
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
