// What a run's job printed: loaded when the section is opened, and followed as long as it is open, seen, and not whole.
// Which attempt's is open stands in the URL: ?log=newest or ?log=2.

import { api, ApiError } from "./api.js";
import { say } from "./notice.js";

const MOST_LINES = 5000; // which is all that the service keeps
const LOOK_EVERY_MS = 2500;
const AT_END_PX = 24; // whoever reads the end goes on reading it
const NEWEST = "newest";

/** @param {HTMLDetailsElement} section `data-log` is the path of the logs */
export function startLog(section) {
  const place = section.querySelector("pre");
  const select = section.querySelector("select");
  const state = { shown: 0, lines: [], next: null, asked: 0, timer: 0 };

  const look = async () => {
    clearTimeout(state.timer);
    const number = ++state.asked;
    const answer = await asked();
    if (number !== state.asked) return; // another attempt was chosen, or the section was closed
    if (answer) show(answer);
    if (answer?.whole) return; // another attempt may come: the page hears of it
    state.timer = setTimeout(() => document.hidden || look(), LOOK_EVERY_MS);
  };

  const asked = async () => {
    const which = select.value === NEWEST ? "" : `&attempt=${select.value}`;
    const after = state.next === null ? "" : `&after=${state.next}`;
    try {
      const answer = await api(`${section.dataset.log}?limit=${MOST_LINES}${which}${after}`);
      if (answer.attempt === state.shown || state.next === null) return complain("", answer);
      clear(); // another attempt began: its lines are counted anew
      return complain("", await api(`${section.dataset.log}?limit=${MOST_LINES}${which}`));
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      return complain(`The log could not be loaded: ${error.message}`, null);
    }
  };

  const complain = (text, answer) => {
    const error = section.querySelector("[data-log-error]");
    say(error, text);
    error.hidden = !text;
    return answer;
  };

  const clear = () => Object.assign(state, { lines: [], next: null });

  const show = (answer) => {
    const atEnd = place.scrollHeight - place.scrollTop - place.clientHeight < AT_END_PX;
    if (state.next !== null && answer.first !== state.next) state.lines = []; // what came in between is not kept
    state.lines = [...state.lines, ...answer.lines].slice(-MOST_LINES);
    Object.assign(state, { shown: answer.attempt, next: answer.next });
    const shown = answer.unfinished ? [...state.lines, answer.unfinished] : state.lines;
    const text = shown.join("\n");
    if (place.textContent !== text) place.textContent = text;
    place.hidden = shown.length === 0;
    section.querySelector("[data-said]").textContent = told(state, shown.length, answer);
    offer(select, answer.attempts);
    if (atEnd) place.scrollTop = place.scrollHeight;
  };

  select.addEventListener("change", () => {
    clear();
    remember(select.value);
    look();
  });
  section.addEventListener("toggle", () => {
    remember(section.open ? select.value : null);
    if (section.open) return look();
    state.asked += 1;
    clearTimeout(state.timer);
  });
  document.body.addEventListener("forecurve:refresh", () => section.open && look());
  document.addEventListener("visibilitychange", () => document.hidden || !section.open || look());

  const chosen = new URL(location.href).searchParams.get("log");
  if (chosen === null) return;
  if (/^[1-9]\d{0,2}$/.test(chosen)) {
    offer(select, Number(chosen));
    select.value = chosen;
  }
  section.open = true; // which it hears of
}

/** @param {string | null} attempt */
function remember(attempt) {
  const url = new URL(location.href);
  if (attempt === null) url.searchParams.delete("log");
  else url.searchParams.set("log", attempt);
  history.replaceState(history.state, "", url);
}

/** Attempts that may be chosen, of which the newest has a name of its own; nothing to choose where there was one. */
function offer(select, known) {
  for (let number = select.options.length; number <= known; number++) select.add(new Option(`attempt ${number}`, String(number)));
  select.closest("label").hidden = select.options.length < 3;
}

function told({ lines, shown, next }, count, { whole, read_at: readAt }) {
  if (shown === 0) return whole ? "The run was never launched." : "Not launched yet.";
  if (!count && whole) return `Nothing is known of what attempt ${shown} printed.`;
  if (!count) return readAt ? "Nothing read yet of what it prints." : "It is being read from the cluster.";
  const earlier = next - lines.length;
  const cut = earlier ? `, without the ${earlier.toLocaleString("en")} before` : "";
  return `Attempt ${shown}, ${count.toLocaleString("en")} line${count === 1 ? "" : "s"}${cut}${whole ? "" : "; more is shown as it comes"}`;
}
