// The slider under the chart: shows the forecast as it was at any past refit. Forecasts are fetched one by one, and kept.

import { api, ApiError } from "../api.js";
import { say as tell } from "../notice.js";
import { clock } from "../times.js";
import { plain } from "./axis.js";
import { fromUrl, toUrl } from "./view.js";
import { between, estimate } from "./words.js";

/**
 * @param {HTMLElement} plot
 * @param {(forecast: any | null) => unknown} show null is the newest
 */
export function startReplay(plot, show) {
  const slider = document.querySelector("[data-replay] input");
  const said = document.querySelector("[data-replay] output");
  const state = { refits: [], unit: "", has: false, chosen: fromUrl("at") || null, kept: new Map(), asked: 0 };

  const choose = async () => {
    const index = Number(slider.value);
    const newest = index >= state.refits.length - 1;
    state.chosen = newest ? null : state.refits[index].id;
    toUrl({ at: state.chosen });
    const asked = state.asked + 1;
    try {
      await present();
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      if (asked === state.asked) tell(said, `this forecast could not be loaded: ${error.message}`);
    }
  };

  const present = async () => {
    const asked = ++state.asked;
    if (state.chosen === null) return say(null);
    const forecast = await fetched(state.chosen);
    if (asked !== state.asked) return undefined; // the slider has moved on meanwhile
    return say(forecast);
  };

  const fetched = async (id) => {
    if (!state.kept.has(id)) state.kept.set(id, await ofThisRun(id));
    return state.kept.get(id);
  };

  /** A link may name one that the slider has no place for, as the track record does with frozen ones; or none of this run's. */
  const ofThisRun = async (id) => {
    try {
      const forecast = await api(`/v1/forecasts/${encodeURIComponent(id)}`);
      return forecast.run_id === plot.dataset.run ? forecast : null;
    } catch (error) {
      if (error.status !== 404) throw error;
      return null;
    }
  };

  const say = (forecast) => {
    const newest = state.refits[state.refits.length - 1];
    const lost = forecast === null && state.chosen !== null && newest ? "this run has no such forecast; " : "";
    said.textContent = forecast
      ? `as it was at ${plain(forecast.at_compute)} ${state.unit}, ${clock(forecast.created_at)}: ${ceilingOf(forecast)}`
      : newest ? `${lost}${state.has ? "newest forecast," : "no forecast; the last, of evaluations that count no more, was"} at ${plain(newest.at_compute)} ${state.unit}` : "";
    if (forecast) slider.value = String(placeOf(forecast, state.refits));
    slider.setAttribute("aria-valuetext", said.textContent);
    return show(forecast);
  };

  slider.addEventListener("input", choose);
  return {
    /** New refits came: keep the place of a person who looks at the past, follow the newest otherwise. */
    update: async ({ refits, unit, forecast }) => {
      Object.assign(state, { refits, unit, has: forecast !== null });
      document.querySelector("[data-replay]").hidden = refits.length < 2 && state.chosen === null;
      slider.max = String(Math.max(0, refits.length - 1));
      const index = refits.findIndex((refit) => refit.id === state.chosen);
      slider.value = String(index < 0 ? refits.length - 1 : index);
      await present();
    },
  };
}

/** Its own place on the slider, else that of the last one which had seen no more. */
function placeOf({ id, at_compute: at }, refits) {
  const own = refits.findIndex((refit) => refit.id === id);
  return own < 0 ? Math.max(0, refits.findLastIndex((refit) => refit.at_compute <= at)) : own;
}

/** A median is said only of a ceiling that the forecast tells, as on the chart. */
function ceilingOf({ withheld, ceiling_known: known, A }) {
  if (withheld) return "forecast withheld";
  return known ? `ceiling ${estimate(A)}` : `ceiling not identified (90 %: ${between(A.lower, A.upper)})`;
}
