// One event stream per page that is seen: a browser opens six connections to a host at most, and six hidden tabs that keep
// one each would leave none for anything else. A change that concerns the page asks its parts to refresh, at most every two
// seconds. They listen for `forecurve:refresh` on <body>: htmx swaps the tables, charts fetch their data.
// A network that goes away without a word leaves a connection that looks open for ever: the stream's beat tells.

import { api } from "./api.js";
import { answered } from "./notice.js";

const LEAST_MS = 2000;
const RESTS = 4; // times what a refresh took: a large page, or a busy server, is asked more seldom
const LONGEST_REST_MS = 20_000; // a machine that slept meanwhile seems to have taken hours
const LONGEST_MS = 30_000; // what takes longer is not waited for: its connection may be lost
const RETRY_MS = 3000;
const MISSED_BEATS = 2.5; // after so many the stream is taken to be cut
const SETTLE_MS = 150; // an ingest writes several events at once; wait for the last of them

/** @param {{kind: string, run_id: string | null, sweep_id: string | null}} change @param {DOMStringMap} page */
function concerns(change, page) {
  if (/^alert(\.|$)/.test(change.kind)) return true; // the number in the bar is on every page
  if (page.liveKinds) return page.liveKinds.split(" ").includes(change.kind); // whatever else comes, this page stays as it is
  if (page.liveRuns) return page.liveRuns.split(" ").includes(change.run_id);
  if (page.liveRun) return change.run_id === page.liveRun || Boolean(document.getElementById(change.run_id)); // a fork in its table
  if (page.liveSweep) return change.sweep_id === page.liveSweep;
  return page.live === "all";
}

/**
 * @param {() => Promise<unknown>} act
 * @returns {() => void} calls `act` soon, never twice within LEAST_MS, never before it has rested from the last time, never in a hidden tab
 */
function throttled(act) {
  let next = -Infinity;
  let timer = 0;
  let acts = false;
  let waiting = false;
  const run = async () => {
    timer = 0;
    if (document.hidden) return void (waiting = true);
    [acts, waiting] = [true, false];
    const began = performance.now();
    await act();
    acts = false;
    const now = performance.now();
    next = Math.max(began + LEAST_MS, now + Math.min(RESTS * (now - began), LONGEST_REST_MS));
    if (waiting) soon();
  };
  const soon = () => {
    if (acts) waiting = true;
    else timer ||= setTimeout(run, Math.max(SETTLE_MS, next - performance.now()));
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden || acts || !waiting) return;
    clearTimeout(timer);
    run();
  });
  return soon;
}

/** @param {string[] | null} runs that changed, null where it is not known which @returns {Promise<unknown>} until all parts of the page show what is new */
function refreshed(runs) {
  const parts = [];
  if (window.htmx) parts.push(new Promise((done) => document.addEventListener("htmx:finally:request", done, { once: true })));
  document.body.dispatchEvent(new CustomEvent("forecurve:refresh", { detail: { parts, runs } }));
  const done = Promise.allSettled(parts).then((all) => all.forEach(({ reason }) => reason && reportError(reason)));
  return Promise.race([done, new Promise((over) => setTimeout(over, LONGEST_MS))]);
}

/** Which runs changed since they were last taken; all may have where a change is not known. */
function changes() {
  let runs = new Set();
  return {
    add: (change) => (change ? runs?.add(change.run_id) : (runs = null)),
    taken: () => {
      const taken = runs && [...runs].filter(Boolean);
      runs = new Set();
      return taken;
    },
  };
}

export function startLive() {
  const page = document.body.dataset;
  if (!page.live) return;
  const news = changes();
  const throttle = throttled(() => refreshed(news.taken()));
  const refresh = (change) => {
    news.add(change);
    throttle();
  };
  let source = null;
  let cursor = page.cursor || "0";
  let lost = false;
  let again = 0;
  let silence = 0;
  let stream = "";
  let behind = !window.htmx; // the last refresh failed, or none is possible: its script did not load

  const say = (state) => {
    stream = state;
    sign(state === "live" && behind ? "not refreshed" : state);
  };

  const heard = () => {
    clearTimeout(silence);
    silence = setTimeout(cut, MISSED_BEATS * 1000 * Number(page.beat));
  };
  const cut = () => {
    leave();
    lost = true;
    say("reconnecting");
    listen();
  };

  const listen = () => {
    source = new EventSource(`/v1/stream?since=${cursor}`);
    heard(); // to connect may take no longer
    source.addEventListener("beat", heard);
    source.addEventListener("change", (event) => {
      heard();
      cursor = event.lastEventId || cursor;
      const change = JSON.parse(event.data);
      if (concerns(change, page)) refresh(change);
    });
    source.onopen = () => {
      heard();
      say("live");
      if (!lost) return;
      lost = false;
      answered(); // what the page said while nobody answered is no longer so
      refresh();
    };
    source.onerror = () => {
      lost = true;
      // A lost connection is taken up again by the browser itself; an answer that is an error is not.
      if (source.readyState !== EventSource.CLOSED) return say("reconnecting");
      leave();
      say("offline");
      api("/v1/me").catch(() => {}); // leads to the login when it is the session that has ended
      again = setTimeout(listen, RETRY_MS);
    };
  };
  const leave = () => {
    clearTimeout(again);
    clearTimeout(silence);
    source?.close();
  };

  document.addEventListener("htmx:finally:request", ({ detail: { ctx } }) => {
    behind = !(ctx.response?.raw?.status < 500);
    say(stream);
    if (behind) setTimeout(refresh, RETRY_MS); // it may have been the last change that this page hears of
  });
  if (!document.hidden) listen();
  document.addEventListener("visibilitychange", () => {
    leave();
    if (!document.hidden) listen();
  });
  for (const kind of ["offline", "online"]) addEventListener(kind, () => document.hidden || cut()); // the browser may know sooner
  addEventListener("pagehide", leave);
  addEventListener("pageshow", (event) => event.persisted && location.reload());
}

function sign(state) {
  const place = document.querySelector("[data-live-sign]");
  if (!place || !state) return;
  place.hidden = false;
  place.dataset.state = state;
  place.textContent = state;
}
