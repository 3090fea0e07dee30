// The slider under the chart: shows the forecast as it was at any past refit. Forecasts are fetched one by one, and kept.

import { api } from "../api.js";
import { clock } from "../times.js";
import { plain } from "./axis.js";
import { fromUrl, toUrl } from "./view.js";
import { between, estimate } from "./words.js";

/**
 * @param {HTMLElement} plot
 * @param {(forecast: any | null) => void} show null is the newest
 */
export function startReplay(plot, show) {
  const slider = document.querySelector("[data-replay] input");
  const said = document.querySelector("[data-replay] output");
  const state = { refits: [], unit: "", chosen: fromUrl("at"), kept: new Map(), asked: 0 };

  const choose = async () => {
    const index = Number(slider.value);
    const newest = index >= state.refits.length - 1;
    state.chosen = newest ? null : state.refits[index].id;
    toUrl({ at: state.chosen });
    await present();
  };

  const present = async () => {
    const refit = state.refits.find((one) => one.id === state.chosen);
    if (!refit) return say(null);
    const asked = ++state.asked;
    const forecast = await fetched(refit.id);
    if (asked !== state.asked) return undefined; // the slider has moved on meanwhile
    return say(forecast);
  };

  const fetched = async (id) => {
    if (!state.kept.has(id)) state.kept.set(id, await api(`/v1/forecasts/${id}`));
    return state.kept.get(id);
  };

  const say = (forecast) => {
    const newest = state.refits[state.refits.length - 1];
    said.textContent = forecast
      ? `as it was at ${plain(forecast.at_compute)} ${state.unit}, ${clock(forecast.created_at)}: ${ceilingOf(forecast)}`
      : newest ? `newest forecast, at ${plain(newest.at_compute)} ${state.unit}` : "";
    slider.setAttribute("aria-valuetext", said.textContent);
    show(forecast);
  };

  slider.addEventListener("input", choose);
  return {
    /** New refits came: keep the place of a person who looks at the past, follow the newest otherwise. */
    update: async (refits, unit) => {
      state.refits = refits;
      state.unit = unit;
      document.querySelector("[data-replay]").hidden = refits.length < 2;
      slider.max = String(Math.max(0, refits.length - 1));
      const index = refits.findIndex((refit) => refit.id === state.chosen);
      slider.value = String(index < 0 ? refits.length - 1 : index);
      await present();
    },
  };
}

/** A median is said only of a ceiling that the forecast tells, as on the chart. */
function ceilingOf({ withheld, ceiling_known: known, A }) {
  if (withheld) return "forecast withheld";
  return known ? `ceiling ${estimate(A)}` : `ceiling not identified (90 %: ${between(A.lower, A.upper)})`;
}
