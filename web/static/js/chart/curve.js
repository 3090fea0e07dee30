// The chart of one run, or of a metric of it: reads /v1/runs/{id}/curve, draws it, follows the event stream, replays past forecasts.

import { api } from "../api.js";
import { clock } from "../times.js";
import { computeAxis, computeTicks, plain } from "./axis.js";
import { curveLayout } from "./curve-layout.js";
import { curveTraces, evaluationWords, holds, showsFrozen } from "./curve-traces.js";
import { draw, whenLive } from "./draw.js";
import { along, paceOf } from "./pace.js";
import { tokens } from "./palette.js";
import { drawnWidth } from "./printing.js";
import { startReplay } from "./replay.js";
import { startStepping } from "./stepping.js";
import { modeFromUrl, offered, startModeSwitch } from "./view.js";

const UNMARKED = { frozen: null, checkpoints: [], refits: [], alerts: [] }; // as a metric's curve is, which says nothing of these

/** @param {HTMLElement} plot the element that holds the chart; `data-run` names the run, or `data-url` says where another curve is read */
export async function startCurve(plot) {
  const state = { view: null, past: null, mode: modeFromUrl() };
  const show = () => state.view && paint(plot, state);
  const replay = startReplay(plot, (past) => {
    state.past = past;
    return show();
  });
  startModeSwitch(state, show);
  startStepping(plot, { say: (id) => evaluationWords(state.view, shownOf(state), id) });
  await whenLive(plot, () => api(plot.dataset.url ?? `/v1/runs/${plot.dataset.run}/curve`), (found) => {
    state.view = { ...UNMARKED, ...found };
    return replay.update(state.view); // shows it
  }, show);
}

function paint(plot, { view, past, mode: asked }) {
  const mode = offered(asked, [view]);
  empty(plot, view.points.length === 0);
  if (plot.hidden) return undefined;
  const shown = shownOf({ view, past });
  const computes = [...view.points.map((point) => point.compute), ...(holds(shown) ? shown.band.compute : []), ...(view.budget ? [view.budget] : [])];
  const axis = along(computeAxis(mode, computes.map(paceOf(mode, view.points))), view.points);
  const scene = { view, forecast: shown, replay: past !== null, axis, width: drawnWidth(plot), height: plot.clientHeight, ink: tokens() };
  nameFrozen(scene);
  for (const key of document.querySelectorAll("[data-fit-key]")) key.hidden = !holds(shown);
  return draw(plot, () => curveTraces(scene), curveLayout(scene), (range, most, letters) => computeTicks(axis, range, most, letters));
}

/** The forecast on show: the newest, or that of the slider; none while it has no band. */
function shownOf({ view, past }) {
  const forecast = past ?? view.forecast;
  return forecast?.band?.compute?.length ? forecast : null;
}

/** The frozen forecast's key says when it was made; there is no key where there is no line. */
function nameFrozen(scene) {
  const key = document.querySelector("[data-frozen-key]");
  key.hidden = !showsFrozen(scene);
  if (key.hidden) return;
  const { created_at, at_compute } = scene.view.frozen;
  key.querySelector("[data-when]").textContent = `${clock(created_at)}, at ${plain(at_compute)} ${scene.view.unit}`;
}

function empty(plot, nothing) {
  plot.hidden = nothing;
  document.querySelector("[data-chart-empty]").hidden = !nothing;
}
