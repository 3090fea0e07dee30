// A board of small charts: loaded, chosen, pointed at. What they show is the caller's: what one run logged, or several runs over one another.

import { ApiError } from "../api.js";
import { say } from "../notice.js";
import { choose, chosenNames, offer } from "./choice.js";

const RESTS = 4; // times what a look took: a busy server, or a long run, is asked more seldom

/**
 * @typedef {{at: number, run?: string | null}} Place a share of the width, and the run that is told of
 * @typedef {object} Chart
 * @property {HTMLElement} figure
 * @property {(place: Place | null) => {where: string, value: string} | null} show move its rule there, or away; what stands there
 * @property {(at: number, height: number, ratio: number) => Place} near what is nearest to a point, shares from the left and from above; `ratio` is width by height
 * @property {(place: Place | null, key: string) => Place | null} reached where a key leads to from there; null for a key that leads nowhere
 *
 * @typedef {object} Board
 * @property {() => Promise<unknown>} load
 * @property {() => void} show draw anew what is known
 *
 * @param {HTMLElement} section
 * @param {object} acts
 * @param {() => Promise<any>} acts.fetched what the charts are made of
 * @param {(found: any) => string[]} acts.names all that is logged
 * @param {(found: any) => Chart[]} acts.charts
 * @param {(found: any) => string} acts.extent over what the charts are, while no place is pointed at
 * @param {(found: any | null) => void} [acts.shown] after each drawing; null where it failed
 * @param {boolean} [acts.keeps] what was drawn is still true where news do not come
 * @param {number} acts.everyMs
 * @returns {Board}
 */
export function startBoard(section, { fetched, names, charts, extent, shown = () => {}, keeps = true, everyMs }) {
  const state = { found: null, charts: [], asked: 0, answered: 0, place: null };
  const panels = section.querySelector("[data-panels]");
  const select = section.querySelector("select");
  const part = (name) => section.querySelector(`[data-${name}]`);

  const load = async () => {
    const number = ++state.asked;
    const found = await fetched().then((value) => ({ value }), (error) => ({ error }));
    if (number < state.answered) return; // one that was asked for later came first
    state.answered = number;
    if (found.error && !(found.error instanceof ApiError)) throw found.error;
    complain(found.error ? `The metrics could not be loaded: ${found.error.message}` : "");
    if (found.error && keeps) return;
    state.found = found.error ? null : found.value;
    show();
  };

  const complain = (text) => {
    say(part("training-error"), text);
    part("training-error").hidden = part("again").hidden = !text;
    section.removeAttribute("data-loading");
  };

  const show = () => {
    const focused = document.activeElement?.closest("[data-metric]")?.dataset.metric;
    state.charts = state.found ? charts(state.found) : [];
    panels.replaceChildren(...state.charts.map(({ figure }) => figure));
    if (state.found) offer(select, names(state.found));
    shown(state.found);
    point(null);
    section.dataset.drawn = String(Number(section.dataset.drawn || 0) + 1);
    if (focused) (state.charts.find(({ figure }) => figure.dataset.metric === focused)?.figure ?? select).focus(); // it may have been removed
  };

  /** Move the rule of every chart to a place, or away; say where it is. @returns {string} what the leader tells of it */
  const point = (place, leader = null) => {
    state.place = place;
    const told = state.charts.map((chart) => [chart, chart.show(place)]).find(([chart]) => chart === leader)?.[1];
    part("said").textContent = told?.where ?? (state.found && place === null ? extent(state.found) : "");
    return told ? `${told.where}: ${told.value}` : "";
  };
  const chartOf = (target) => state.charts.find(({ figure }) => figure.contains(target));

  const follow = (event) => {
    const chart = chartOf(event.target);
    if (!chart || event.target.closest("a, button")) return;
    const box = chart.figure.querySelector("svg").getBoundingClientRect();
    const at = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
    point(chart.near(at, (event.clientY - box.top) / box.height, box.width / box.height), chart);
  };
  panels.addEventListener("pointermove", follow);
  panels.addEventListener("pointerdown", follow); // a tap tells what is there, and stays
  panels.addEventListener("pointerleave", ({ pointerType }) => pointerType === "touch" || point(null));
  panels.addEventListener("focusout", ({ relatedTarget }) => panels.contains(relatedTarget) || point(null));
  panels.addEventListener("keydown", (event) => {
    const chart = chartOf(event.target);
    if (!chart || event.altKey || event.ctrlKey || event.metaKey) return; // the browser's own
    if (event.key === "Escape") return void point(null);
    const next = chart.reached(state.place, event.key);
    if (!next) return;
    event.preventDefault();
    part("told").textContent = point(next, chart);
  });
  panels.addEventListener("click", (event) => {
    const button = event.target.closest("[data-remove]");
    if (button) asked(chosenNames().filter((name) => name !== button.dataset.remove));
  });
  part("again").addEventListener("click", () => load());
  select.addEventListener("forecurve:chosen", () => select.value && asked([...chosenNames(), select.value]));
  document.addEventListener("change", (event) => event.target.name === "x" && state.found && show());

  const asked = (chosen) => {
    choose(chosen);
    return load();
  };

  /** Steps are too many to tell open pages of each: while runs go on they look by themselves, but not under a reader's hand. */
  const look = async () => {
    const began = performance.now();
    const going = document.querySelector("[data-going]") && !document.hidden && !panels.matches(":hover, :focus-within");
    if (going) await load().catch(reportError);
    setTimeout(look, Math.max(everyMs, RESTS * (performance.now() - began)));
  };
  setTimeout(look, everyMs);
  return { load, show };
}
