// The chart of a sweep, or of chosen runs: evaluations, median curve and, beyond the data, 90 % band of every arm, the control neutral. An arm whose
// ceiling is not identified has no curve beyond its data, only the band. One that is pointed at, here or in the table, comes forward;
// a press on its key hides it. What is hidden stands in the URL.

import { api } from "../api.js";
import { asGiven, computeAxis, computeTicks, plain, rateRange } from "./axis.js";
import { baseLayout, gutter } from "./curve-layout.js";
import { fading, part } from "./curve-traces.js";
import { draw, whenLive } from "./draw.js";
import { fieldOf, fieldTraces } from "./field.js";
import { along, countsOtherwise, paceOf } from "./pace.js";
import { fade, nameColour, seriesColour, seriesMarks, tokens } from "./palette.js";
import { drawnWidth } from "./printing.js";
import { shortNames } from "./short-names.js";
import { startStepping } from "./stepping.js";
import { thinned } from "./thinned.js";
import { fromUrl, modeFromUrl, offered, startModeSwitch, takeAlong, toUrl } from "./view.js";
import { curveThere, escaped, inOneLine, reading, readings } from "./words.js";

const FIRST = 20; // drawn without being asked for; the rest is one press away
const NAMES = { width: 180, least: 600 }; // pixels for the names at the right edge, and from which width of the chart on; the keys name them all
const MOST_ASKED = 20; // runs by their ids, by the API
const MOST_BUDGETS = 4; // that are named
const LETTERS = 24; // of a name there
const LEAST_GAP = 15; // pixels between the names at the right edge

/** @param {HTMLElement} plot `data-curves` is where the curves are, `data-series` maps run ids to colours (null: control), `data-seeds` to the sign of a seed among others of its arm (as Plotly calls it, as it is written) */
export async function startOverlay(plot) {
  const series = JSON.parse(plot.dataset.series);
  const seeds = JSON.parse(plot.dataset.seeds);
  const shown = fromUrl("show")?.split(",");
  const state = { view: null, mode: modeFromUrl(), focus: null, shown: shown ? new Set(shown) : null, series, seeds };
  const show = () => state.view && paint(plot, state);
  startModeSwitch(state, show);
  startKeys(state, show);
  takeAlong(["x", "show", "metric"]);
  startDrawing(state);
  document.addEventListener("htmx:after:swap", () => state.view && name(state.view.runs) && show());
  plot.addEventListener("zoomed", (event) => {
    if (!state.thinned) return;
    event.preventDefault(); // drawn anew, with its ticks
    show();
  });
  startStepping(plot, { arms: true, say: (id) => words(state.view, id) });
  await whenLive(plot, (runs) => load(plot.dataset.curves, runs, state.view), (view) => {
    state.view = view;
    name(view.runs);
    return show();
  }, show);
}

/** The curves, of which those of a few runs alone are asked for where the others are known: long ones weigh 50 kB each. */
async function load(curves, runs, known) {
  const few = runs?.filter((id) => known?.runs.some(({ run }) => run.id === id));
  if (!known || known.others || !few || few.length > MOST_ASKED) return api(curves);
  if (few.length === 0) return known;
  const found = await api(`/v1/runs:curves?${new URLSearchParams([["frozen", "false"], ...few.map((id) => ["run_id", id])])}`);
  const anew = new Map(found.runs.map((view) => [view.run.id, view]));
  return { ...known, runs: known.runs.map((view) => anew.get(view.run.id) ?? view) };
}

/**
 * Runs are called here what the table calls them, which is refreshed by itself: `data-names` there has another name for each of two that
 * have the same. Says whether one has got a new name.
 */
function name(runs) {
  const told = JSON.parse(document.querySelector("[data-names]").dataset.names);
  const renamed = runs.filter(({ run }) => {
    run.own ??= run.name;
    const before = run.name;
    run.name = told[run.id] ?? run.own;
    for (const place of document.querySelectorAll(`[data-key="${run.id}"] [data-name], form option[value="${run.id}"]`)) {
      if (place.textContent !== run.name) place.textContent = run.name;
    }
    return run.name !== before;
  });
  return renamed.length > 0;
}

/** Keys (one button a run) and table rows: `data-key` and `data-arm` carry the run's id. */
function startKeys(state, show) {
  let next = 0; // a pointer that crosses many rows has the last drawn, not each
  const focus = (id) => {
    if (state.focus === id) return;
    state.focus = id;
    cancelAnimationFrame(next);
    next = requestAnimationFrame(show);
  };
  const runOf = (event) => event.target.closest("[data-key], [data-arm]");
  for (const kind of ["pointerover", "focusin"]) {
    document.addEventListener(kind, (event) => {
      const place = runOf(event);
      focus(place ? place.dataset.key ?? place.dataset.arm : null);
    });
  }
  document.addEventListener("click", (event) => {
    const key = event.target.closest("[data-key], [data-draw]");
    if (!key || !state.view) return;
    state.shown = key.dataset.draw ? new Set(key.dataset.draw === "all" ? state.view.runs.map(({ run }) => run.id) : []) : turned(state, key.dataset.key);
    toUrl({ show: [...state.shown].join(",") || "none" });
    show();
  });
}

/** A run of a large sweep whose curve is not here yet: the page is loaded anew with those that are drawn now, and it. */
function startDrawing(state) {
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a.draw");
    if (!link || !state.view) return;
    const url = new URL(link.href);
    url.searchParams.set("show", [...visible(state).map(({ run }) => run.id), link.dataset.draws].join(","));
    link.href = url.href;
  });
}

/** The runs drawn, with this one if it was not, without it if it was. */
function turned(state, id) {
  const drawn = new Set(visible(state).map((view) => view.run.id));
  if (!drawn.delete(id)) drawn.add(id);
  return drawn;
}

function visible({ view, shown }) {
  return shown ? view.runs.filter(({ run }) => shown.has(run.id)) : view.runs.slice(0, FIRST);
}

function paint(plot, state) {
  const drawn = visible(state);
  pressKeys(new Set(drawn.map(({ run }) => run.id)), Number(plot.dataset.total));
  const withPoints = drawn.filter((view) => view.points.length > 0);
  const nothing = state.view.runs.every((view) => view.points.length === 0) && !state.view.others?.compute.length;
  plot.hidden = nothing;
  document.querySelector("[data-chart-empty]").hidden = !nothing;
  const mode = offered(state.mode, state.view.runs);
  const field = fieldOf(state.view.others, mode);
  const axis = computeAxis(mode, [...withPoints.flatMap((view) => computesOf(view).map(paceOf(mode, view.points))), ...(field?.compute ?? [])]);
  const ink = tokens();
  const layout = baseLayout(axis, state.view.unit ?? "the runs have different units", ink);
  const named = drawnWidth(plot) >= NAMES.least;
  layout.margin.r = named ? NAMES.width : 12;
  layout.yaxis.range = rateRange([...withPoints.flatMap((view) => [...view.points.map((p) => p.reward), ...["median", "lower90", "upper90"].flatMap((column) => bandOf(view)?.[column] ?? [])]), ...(field ? [...field.lower90, ...field.upper90] : [])]);
  const budget = budgets(withPoints, axis, ink);
  layout.shapes = [...(gutter(axis, ink)?.shapes ?? []), ...budget.shapes];
  layout.annotations = [...(named ? names(withPoints, layout.yaxis.range, plot.clientHeight, state, ink) : []), ...budget.annotations];
  const axes = withPoints.map((view) => along(axis, view.points));
  const traces = (range) => {
    const { kept, near } = thinned(withPoints.map(({ points }) => points), axes, range);
    state.thinned = countIn(kept) < countIn(withPoints.map(({ points }) => points));
    tellThinned(countIn(kept), near);
    return [...(field ? fieldTraces(field, axis, state.view.unit, ink) : []), ...withPoints.flatMap((view, at) => armTraces(view, kept[at], axes[at], state, ink))];
  };
  return draw(plot, traces, layout, (range, most) => computeTicks(axis, range, most));
}

/** Says when not all evaluations are drawn, beside what the signs mean. */
function tellThinned(drawn, near) {
  const said = document.querySelector("[data-thinned]");
  said.hidden = drawn === near;
  said.textContent = `${drawn.toLocaleString("en-GB")} of ${near.toLocaleString("en-GB")} evaluations drawn: zoom in for the others`;
}

const countIn = (lists) => lists.reduce((sum, list) => sum + list.length, 0);

function pressKeys(drawn, total) {
  const said = document.querySelector("[data-drawn-count]");
  if (said) said.textContent = `${drawn.size} of ${total.toLocaleString("en-GB")} drawn`;
  document.querySelector(".keys").dataset.told = ""; // from here on the keys say what is drawn
  for (const key of document.querySelectorAll("[data-key]")) key.setAttribute("aria-pressed", String(drawn.has(key.dataset.key)));
}

/** The band to draw; none where a misfit withholds the forecast. */
const bandOf = ({ forecast }) => (forecast?.band?.compute?.length && !forecast.withheld ? forecast.band : null);
const computesOf = (view) => [...view.points.map((point) => point.compute), ...(bandOf(view)?.compute ?? []), ...(view.budget ? [view.budget] : [])];

/** @param {number[]} kept the places of the evaluations to draw */
function armTraces(view, kept, axis, state, ink) {
  const { run } = view;
  const points = kept.map((at) => view.points[at]);
  const series = state.series[run.id] ?? null;
  const colour = seriesColour(series);
  const dim = state.focus !== null && state.focus !== run.id && state.series[state.focus] !== undefined;
  const alpha = dim ? 0.22 : 1;
  const band = bandOf(view);
  const traces = [];
  const identified = band && view.forecast.ceiling_known;
  if (band && state.focus === run.id) traces.push(bandTrace(view, axis, colour));
  if (band) traces.push(...bandBeyond(view, axis, colour, alpha * (identified ? 0.08 : 0.12)));
  if (band && !identified) traces.push(...edgesBeyond(view, axis, fade(colour, alpha * 0.85)));
  if (band) traces.push(...medians(view, axis, fade(colour, alpha), series).slice(0, identified ? 2 : 1));
  traces.push({
    name: run.name,
    meta: run.id,
    x: points.map((point) => axis.place(point.compute)),
    y: points.map((point) => point.reward),
    ids: kept.map((at) => `${run.id} ${at}`),
    mode: "markers",
    marker: { color: fade(colour, dim ? 0.15 : 0.75), ...sign(state.seeds[run.id], series) },
    customdata: points.map((point) => [plain(point.compute), point.step, curveThere(band, point.compute)]),
    hovertemplate: `<b>${escaped(run.name)}</b><br>%{customdata[0]} ${escaped(view.unit)} · step %{customdata[1]}<br>pass rate %{y:.3f}%{customdata[2]}<extra></extra>`,
  });
  return traces.map((trace) => ({ ...trace, hoverlabel: { bordercolor: colour, bgcolor: ink.paper } }));
}

/** What is read out of an evaluation. @param {string} id its run's, and its place among the run's evaluations */
function words({ runs }, id) {
  const [of, at] = id.split(" ");
  const view = runs.find(({ run }) => run.id === of);
  const point = view?.points[at];
  if (!point) return "";
  const seen = `${view.run.name}, ${plain(point.compute)} ${view.unit}, step ${point.step}: pass rate ${point.reward.toFixed(3)}`;
  return seen + inOneLine(curveThere(bandOf(view), point.compute));
}

/** Evaluations: a seed's sign is larger than an arm's, for the shape alone tells it from the others of its colour. */
const sign = (seed, series) => (seed ? { symbol: seed[0], size: 6 } : { symbol: seriesMarks(series).symbol, size: 4.5 });

function bandTrace({ run, forecast }, axis, colour) {
  const { compute, lower90, upper90 } = forecast.band;
  const x = compute.map(axis.place);
  return { name: `${run.name} band90`, x: [...x, ...x.slice().reverse()], y: [...upper90, ...lower90.slice().reverse()], mode: "lines", line: { width: 0 }, fill: "toself", fillcolor: fade(colour, 0.16), hoverinfo: "skip" };
}

/** Where the arm may go from its last evaluation on: drawn always, for a curve without it would claim too much. */
function bandBeyond({ run, forecast }, axis, colour, alpha) {
  const x = part(forecast, true, "compute").map(axis.place);
  if (x.length < 2) return [];
  const outline = [...part(forecast, true, "upper90"), ...part(forecast, true, "lower90").slice().reverse()];
  const fill = fading(forecast.at_compute, Math.max(...forecast.band.compute), colour, alpha, axis);
  return [{ name: `${run.name} band90 beyond`, x: [...x, ...x.slice().reverse()], y: outline, mode: "lines", line: { width: 0 }, fill: "toself", hoverinfo: "skip", ...fill }];
}

/** Where no curve is drawn between them, the edges tell the interval. */
function edgesBeyond({ run, forecast, unit }, axis, colour) {
  const compute = part(forecast, true, "compute");
  const edge = (column) => ({
    name: `${run.name} ${column}`,
    x: compute.map(axis.place),
    y: part(forecast, true, column),
    mode: "lines",
    line: { color: colour, width: 1, dash: "1px,3px" },
    customdata: readings(forecast.band, compute),
    hovertemplate: `<b>${escaped(run.name)}</b><br>%{customdata[0]} ${escaped(unit)}<br>forecast, 90 %: %{customdata[2]}<br>ceiling not identified<extra></extra>`,
  });
  return [edge("lower90"), edge("upper90")];
}

function medians({ run, forecast, unit }, axis, colour, series) {
  const { compute, median } = forecast.band;
  const line = (name, keep) => {
    const at = compute.map((_, i) => i).filter((i) => keep(compute[i]));
    return {
      name: `${run.name} ${name}`,
      x: at.map((i) => axis.place(compute[i])),
      y: at.map((i) => median[i]),
      mode: "lines",
      line: { color: colour, width: series === null ? 2.5 : 1.75, dash: seriesMarks(series)[name] },
      customdata: readings(forecast.band, at.map((i) => compute[i])),
      hovertemplate: `<b>${escaped(run.name)}</b><br>${reading(name, unit)}<extra></extra>`,
    };
  };
  const seam = compute.findIndex((value) => value >= forecast.at_compute);
  const edge = seam < 0 ? Infinity : compute[seam];
  return [line("fit", (c) => c <= edge), line("forecast", (c) => c >= edge)];
}

/** One line a budget, which the runs mostly share, with its name where there is room for all; in steps, tokens or time each of them would have its own. */
function budgets(views, axis, ink) {
  const amounts = countsOtherwise(axis.mode) ? [] : [...new Set(views.map((view) => view.budget).filter(Boolean))];
  return {
    shapes: amounts.map((amount) => ({ type: "line", x0: axis.place(amount), x1: axis.place(amount), yref: "paper", y0: 0, y1: 1, line: { color: ink.quiet, width: 1 }, layer: "below" })),
    annotations: (amounts.length > MOST_BUDGETS ? [] : amounts).map((amount, at) => ({ x: axis.mode === "log" ? Math.log10(amount) : amount, xref: "x", y: 0.02, yref: "paper", yanchor: "bottom", yshift: 15 * at, xanchor: "right", xshift: -4, showarrow: false, text: `budget ${asGiven(amount)}`, font: { size: 11, color: ink.quiet } })),
  };
}

/** The arms' names at the right edge, at the end of their curves, pushed apart where they would overlap; those for which there is room. */
function names(views, [low, high], height, state, ink) {
  const inner = Math.max(120, height - 60);
  const gap = (LEAST_GAP * (high - low)) / inner;
  const ends = views.map((view) => ({ view, y: endOf(view) })).sort((a, b) => b.y - a.y).slice(0, Math.floor(inner / LEAST_GAP));
  ends.forEach((end, at) => at > 0 && (end.y = Math.min(end.y, ends[at - 1].y - gap)));
  ends.toReversed().forEach((end, at, below) => (end.y = Math.max(end.y, at > 0 ? below[at - 1].y + gap : low)));
  const short = shortNames(ends.map(({ view }) => view.run.name), LETTERS);
  return ends.map(({ view: { run }, y }, at) => ({
    xref: "paper",
    x: 1.006,
    xanchor: "left",
    y,
    yref: "y",
    showarrow: false,
    text: `${state.seeds[run.id] ? `${state.seeds[run.id][1]} ` : ""}${escaped(short[at])}`,
    hovertext: escaped(run.name),
    font: { size: 12, color: state.focus && state.focus !== run.id ? ink.quiet : nameColour(state.series[run.id] ?? null, ink.ink) },
  }));
}

function endOf(view) {
  const median = bandOf(view)?.median;
  return median ? median[median.length - 1] : view.points[view.points.length - 1].reward;
}
