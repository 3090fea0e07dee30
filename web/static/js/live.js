// One event stream per page. A change that concerns the page asks its parts to refresh: at most every two seconds, and not
// while the tab is hidden. The parts listen for `forecurve:refresh` on <body>: htmx swaps the tables, charts fetch their data.

import { api } from "./api.js";

const LEAST_MS = 2000;
const RETRY_MS = 3000;
const SETTLE_MS = 150; // an ingest writes several events at once; wait for the last of them

/** @param {{kind: string, run_id: string | null, sweep_id: string | null}} change @param {DOMStringMap} page */
export function concerns(change, page) {
  if (page.liveRun) return change.run_id === page.liveRun;
  if (page.liveSweep) return change.sweep_id === page.liveSweep;
  return page.live === "all";
}

/** @param {() => void} act @returns {() => void} calls `act` soon, never twice within LEAST_MS, never in a hidden tab */
export function throttled(act) {
  let last = -Infinity;
  let timer = 0;
  let waiting = false;
  const run = () => {
    timer = 0;
    if (document.hidden) return void (waiting = true);
    last = performance.now();
    act();
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden || !waiting) return;
    waiting = false;
    run();
  });
  return () => {
    if (timer) return;
    timer = setTimeout(run, Math.max(SETTLE_MS, last + LEAST_MS - performance.now()));
  };
}

export function startLive() {
  const page = document.body.dataset;
  if (!page.live) return;
  const refresh = throttled(() => document.body.dispatchEvent(new CustomEvent("forecurve:refresh")));
  let source = null;
  let cursor = page.cursor || "0";

  const listen = () => {
    source = new EventSource(`/v1/stream?since=${cursor}`);
    source.addEventListener("change", (event) => {
      cursor = event.lastEventId || cursor;
      if (concerns(JSON.parse(event.data), page)) refresh();
    });
    source.onopen = () => say("live");
    source.onerror = () => {
      // A lost connection is taken up again by the browser itself; an answer that is an error is not.
      if (source.readyState !== EventSource.CLOSED) return say("reconnecting");
      say("offline");
      api("/v1/me").catch(() => {}); // leads to the login when it is the session that has ended
      setTimeout(listen, RETRY_MS);
    };
  };

  listen();
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (event) => event.persisted && location.reload());
}

function say(state) {
  const sign = document.querySelector("[data-live-sign]");
  if (!sign) return;
  sign.hidden = false;
  sign.dataset.state = state;
  sign.textContent = state;
}
