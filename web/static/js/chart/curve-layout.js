// Axes, budget line, ceiling in the right margin and R0 of one run's chart.

import { asGiven, rateRange, shareOf, toAxis, valueRange } from "./axis.js";
import { bells, wordsAt } from "./bells.js";
import { holds, measured } from "./curve-traces.js";
import { between, ending, escaped, middle, widthOf } from "./words.js";
import { fade } from "./palette.js";
import { violin } from "./violin.js";

const MARGIN = { left: 56, right: 96 };
const CEILING = { rule: 16, half: 9, text: 30 }; // pixels right of the plot; half the violin's width
const PHONE = { widest: 480, left: 40, ceiling: { rule: 10, half: 6, text: 18 } }; // a chart no wider gives its margins to the curve
const LINE = 16; // the height of a line of text, in pixels
const STRIP = 0.07; // of the plot's height, at the foot, for the marks on the axis

// Pass rates with two decimals, and with more where ticks are closer; values of a metric may need none.
const rates = (sign) => [{ dtickrange: [0.999, null], value: `${sign},.0f` }, ...[2, 3, 4, 5, 6].map((digits) => ({ dtickrange: [digits === 6 ? null : 0.999 * 10 ** -digits, 0.999 * 10 ** (digits === 2 ? 0 : 1 - digits)], value: `${sign}.${digits}f` }))];
export const DIFFERENCES = rates("+"); // of pass rates

/** Axes, fonts and margins that every chart shares. @param {import("./axis.js").ComputeAxis} axis @param {Record<string, string>} ink */
export function baseLayout(axis, unit, ink) {
  const line = { gridcolor: ink.hairline, linecolor: ink.hairlineStrong, zeroline: false, tickfont: { color: ink.quiet }, tickangle: 0, automargin: true };
  return {
    font: { family: ink.font, size: 12, color: ink.ink },
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    showlegend: false,
    hovermode: "closest",
    hoverdistance: 24,
    hoverlabel: { bgcolor: ink.paper, bordercolor: ink.hairlineStrong, font: { family: ink.font, size: 12, color: ink.ink }, align: "left" },
    margin: { l: MARGIN.left, r: MARGIN.right, t: 12, b: 48 },
    xaxis: { ...line, type: axis.mode === "log" ? "log" : "linear", range: axis.range, title: { text: titleOf(axis, unit), font: { color: ink.quiet, size: 12 }, standoff: 8 }, ticks: "outside", ticklen: 4, tickcolor: ink.hairlineStrong, showgrid: false },
    yaxis: { ...line, title: { text: "pass rate", font: { color: ink.quiet, size: 12 }, standoff: 8 }, tickformatstops: rates(""), showline: false },
    uirevision: axis.mode, // the zoom survives redrawing, and is given up when the axis changes
    modebar: { bgcolor: "rgba(0,0,0,0)", color: fade(ink.quiet, 0.6), activecolor: ink.accent },
    dragmode: "zoom",
    shapes: [],
    annotations: [],
  };
}

function titleOf({ mode }, unit) {
  if (mode === "steps") return "steps, beyond the evaluations at their pace";
  if (mode === "tokens") return "tokens sampled in training, beyond the evaluations at their pace";
  if (mode === "time") return "time since the first evaluation, beyond the evaluations at their pace";
  return `compute (${escaped(unit)})`;
}

/** @param {import("./curve-traces.js").Scene} given @returns {object} Plotly layout */
export function curveLayout(given) {
  const { view, forecast, axis, ink } = given;
  const phone = given.width <= PHONE.widest;
  const layout = baseLayout(axis, view.unit, ink);
  layout.yaxis.title.text = measured(view);
  if (phone) standTitleUp(layout, ink);
  Object.assign(layout.yaxis, { range: rangeOf(given), domain: [STRIP, 1] });
  Object.assign(layout.xaxis, { anchor: "free", position: 0 }); // at the foot of the strip, also while it is empty
  layout.yaxis2 = { domain: [0, 0.045], range: [0, 1], visible: false, fixedrange: true };
  const beside = phone ? PHONE.ceiling : CEILING;
  if (holds(forecast)) layout.margin.r = Math.max(phone ? 0 : MARGIN.right, beside.text + 12 + widthOf(ceilingLines(forecast)));
  const scene = { ...inside(given, layout.margin), beside };
  const [low, high] = layout.yaxis.range;
  const above = (rate) => (scene.height * (1 - STRIP) * (rate - low)) / (high - low);
  const pieces = [gutter(axis, ink), budget({ ...scene, taken: wordsAt(scene, above) }), holds(forecast) ? ceiling(scene) : null, holds(forecast) ? start(scene) : null, ...bells(scene, above)];
  for (const piece of pieces.filter(Boolean)) {
    layout.shapes.push(...(piece.shapes ?? []));
    layout.annotations.push(...(piece.annotations ?? []));
  }
  return layout;
}

/** Of the rates' axis; a metric says what its values can be. */
const rangeOf = (scene) => (scene.view.metric ? valueRange(ratesOf(scene), [scene.view.low, scene.view.high]) : rateRange(ratesOf(scene)));

/** The rates' name above their axis, where turned beside it it would take a tenth of a phone. */
function standTitleUp(layout, ink) {
  layout.margin = { ...layout.margin, l: PHONE.left, t: 24 };
  const name = layout.yaxis.title.text;
  delete layout.yaxis.title; // an empty one keeps its room
  layout.annotations.push({ xref: "paper", x: 0, xshift: -PHONE.left, xanchor: "left", yref: "paper", y: 1, yanchor: "bottom", yshift: 6, showarrow: false, text: name, font: { size: 12, color: ink.quiet } });
}

/** The room that texts have: the plot inside its margins, and the one on its right. */
function inside(scene, { l, r, t, b }) {
  return { ...scene, width: Math.max(120, scene.width - l - r), height: Math.max(120, scene.height - t - b), margin: r };
}

function ratesOf({ view, forecast }) {
  const rates = view.points.flatMap((point) => [point.reward - (point.se ?? 0), point.reward + (point.se ?? 0)]);
  if (holds(forecast)) rates.push(...forecast.band.upper90, ...forecast.band.lower90, forecast.A.lower, forecast.A.upper, ...endsAtBudget(forecast));
  if (view.frozen?.band) rates.push(...view.frozen.band.median);
  return rates;
}

/** Of the bar at the budget, which past runs may make wider than the curve's band. */
function endsAtBudget({ at_budget: said }) {
  if (!said) return [];
  const { end } = ending(said);
  return [end.lower, end.upper];
}

/** Sets the start apart from the log axis. */
export function gutter(axis, ink) {
  if (axis.rule === null) return null;
  return { shapes: [{ type: "line", x0: axis.rule, x1: axis.rule, yref: "paper", y0: 0, y1: 1, line: { color: ink.hairline, width: 1, dash: "2px,3px" }, layer: "below" }] };
}

/** The budget's line, with where the run is expected to end written at it where nothing else is drawn. */
function budget(scene) {
  const { view, axis, ink } = scene;
  if (!view.budget) return null;
  const x = axis.place(view.budget);
  const line = { type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { color: ink.quiet, width: 1 }, layer: "below" };
  const places = budgetLines(scene).map((lines) => besides(scene, shareOf(axis, x), lines));
  const { lines, left, y, free } = places.find(({ fits, free }) => fits && free) ?? inMargin(scene, shareOf(axis, x)) ?? places.find(({ fits }) => fits) ?? places.at(-1);
  const side = left ? { xanchor: "right", align: "right", xshift: -6 } : { xanchor: "left", align: "left", xshift: 6 };
  return {
    shapes: [line],
    annotations: [{ x: toAxis(axis, x), xref: "x", y, yref: "y", yanchor: "middle", ...side, showarrow: false, text: lines.join("<br>"), font: { size: 12, color: ink.ink }, ...(free ? {} : { bgcolor: fade(ink.paper, 0.8) }) }],
  };
}

/** Where lines of text stand beside a place across the plot: left of it, but for one too far left that has more room on its right. */
function besides(scene, share, lines) {
  const reach = (widthOf(lines) + 8) / scene.width;
  const left = reach <= share || share >= 0.5;
  const { height, free } = emptyHeight(scene, left ? [share - reach, share + 0.005] : [share - 0.005, share + reach], lines.length);
  const [low, high] = rangeOf(scene);
  return { lines, left, y: low + height * (high - low), fits: reach <= (left ? share : 1 - share), free };
}

/** The words right of the line, in the margin that has no ceiling where the forecast is withheld; nothing where they find no room there either. */
function inMargin(scene, share) {
  const { view, forecast, width, margin, ink } = scene;
  if (!forecast || holds(forecast)) return null;
  const lines = ["forecast", "withheld", ...["at the budget,", asGiven(view.budget), escaped(view.unit)].map((text) => quietly(text, ink))];
  if (widthOf(lines) + 8 > (1 - share) * width + margin) return null;
  const { height, free } = emptyHeight(scene, [share - 0.005, 1], lines.length);
  const [low, high] = rangeOf(scene);
  return free ? { lines, left: false, y: low + height * (high - low), free } : null;
}

const quietly = (text, ink) => `<span style="color:${ink.quiet}">${text}</span>`;

/** What is said at the budget: on few lines, or on more and shorter ones for a narrow chart. */
function budgetLines({ view, forecast, ink }) {
  const said = forecast?.at_budget ? ending(forecast.at_budget) : null;
  const withheld = forecast && !holds(forecast) ? ["forecast withheld"] : [];
  const amount = `${asGiven(view.budget)} ${escaped(view.unit)}`;
  const quiet = (text) => quietly(text, ink);
  return [
    [...(said ? [`<b>${middle(said.end)}</b> (90 %: ${between(said.end.lower, said.end.upper)})`] : withheld), quiet(`at the budget, ${amount}`)],
    [...(said ? [`<b>${middle(said.end)}</b> (90 %:`, `${between(said.end.lower, said.end.upper)})`] : withheld), quiet("at the budget,"), quiet(amount)],
  ];
}

/** What is drawn, in shares of the plot: points and curves, across and up. */
function drawnAt(scene) {
  const { view, forecast, axis } = scene;
  const [low, high] = rangeOf(scene);
  const drawn = view.points.map((point) => [point.compute, point.reward]);
  for (const one of [holds(forecast) ? forecast : null, view.frozen]) if (one?.band) one.band.compute.forEach((compute, i) => drawn.push([compute, one.band.median[i]]));
  return drawn.map(([compute, rate]) => [shareOf(axis, axis.place(compute)), (rate - low) / (high - low)]);
}

/** How far up between two places a text of so many lines covers no point, curve, R0 or words of an alert, the lowest such height; else the least crowded. */
function emptyHeight(scene, [from, to], lines) {
  const [low, high] = rangeOf(scene);
  const nearby = drawnAt(scene).filter(([across]) => across > from && across <= to).map(([, up]) => up);
  if (from < startEnd(scene)) nearby.push(...startAt(scene));
  const plot = scene.height * (1 - STRIP);
  for (const { left, right, ups } of scene.taken) if (right > from * scene.width && left < to * scene.width) nearby.push(...ups.flatMap((up) => [up - LINE / 2, up + LINE / 2].map((edge) => edge / plot)));
  const enough = (lines * LINE) / 2 / scene.height + 0.045; // half the text's height and some air
  const space = (height) => Math.min(1, ...nearby.map((up) => Math.abs(up - height)));
  const best = [0.08, 0.16, 0.24, 0.32, 0.4, 0.5, 0.6, 0.68, 0.76, 0.84, 0.92].reduce((found, height) => (space(found) >= enough || space(found) >= space(height) ? found : height));
  return { height: best, free: space(best) >= enough };
}

/** The ceiling's posterior, median and 90 % interval in the right margin; without a median where the data cannot tell it. */
function ceiling(scene) {
  const { forecast, ink, beside } = scene;
  const { A, ceiling_known: known } = forecast;
  const inPixels = { xsizemode: "pixel", xanchor: 1 };
  const rule = (x0, x1, y0, y1, line) => ({ type: "line", xref: "paper", yref: "y", x0, x1, y0, y1, line: { color: ink.accent, ...line } });
  const interval = { ...rule(beside.rule, beside.rule, A.lower, A.upper, known ? { width: 2 } : { width: 2, dash: "2px,3px" }), ...inPixels };
  const across = { ...rule(0, 1, A.median, A.median, { color: fade(ink.accent, 0.45), width: 1, dash: "1px,4px" }), layer: "below" };
  const tick = { ...rule(beside.rule - 6, beside.rule + 6, A.median, A.median, { width: 2 }), ...inPixels };
  const lines = ceilingLines(forecast);
  const text = [...lines.slice(0, -1), quietly(lines.at(-1), ink)].join("<br>");
  return {
    shapes: [...posterior(scene), ...(known ? [interval, tick, across] : [interval])],
    annotations: [{ xref: "paper", x: 1, xshift: beside.text, xanchor: "left", y: A.median, yref: "y", yshift: kept(scene, A.median, lines.length), showarrow: false, align: "left", text, font: { size: 12, color: ink.accent } }],
  };
}

/** The violin behind the interval; none of a forecast that was made before its quantiles were kept. */
function posterior({ forecast: { ceiling_quantiles: quantiles, ceiling_known: known }, ink, beside }) {
  const outline = quantiles ? violin(quantiles, beside.half) : [];
  if (outline.length === 0) return [];
  const side = (sign) => outline.map(([half, rate]) => `${(beside.rule + sign * half).toFixed(2)},${rate}`);
  const path = `M${[...side(1), ...side(-1).reverse()].join("L")}Z`;
  return [{ type: "path", path, name: "ceiling", xref: "paper", xsizemode: "pixel", xanchor: 1, yref: "y", fillcolor: fade(ink.accent, known ? 0.32 : 0.18), line: { width: 0 } }];
}

/** How many pixels a text at this rate is moved up (below 0: down) so that it does not leave the plot. */
function kept(scene, rate, lines) {
  const [low, high] = rangeOf(scene);
  const height = scene.height * (1 - STRIP);
  const [up, half] = [(height * (rate - low)) / (high - low), (lines * LINE) / 2];
  return Math.max(half - up, 0) + Math.min(height - half - up, 0);
}

/** The ceiling's name, its median, or that there is none, and its interval. */
function ceilingLines({ A, ceiling_known: known }) {
  return ["ceiling", ...(known ? [`<b>${middle(A)}</b>`] : ["not", "identified"]), between(A.lower, A.upper).replace(" to ", "–")];
}

const START = { rule: 0.06, text: 52, half: 9, most: 72 }; // a share of the plot; its name's width, half its height and how far from R0 it may stand, in pixels

/** R0, where the curve starts: a short line through the start, named as near below or above it as nothing else is drawn. */
function start(scene) {
  const { forecast: { R0 }, axis, ink } = scene;
  if (!knowsStart(scene.forecast)) return null;
  const end = ruleEnd(axis);
  return {
    shapes: [{ type: "line", xref: "paper", yref: "y", x0: 0, x1: end, y0: R0.median, y1: R0.median, line: { color: ink.accent, width: 1.5 } }],
    annotations: [{ xref: "paper", x: end + 0.004, xanchor: "left", y: R0.median, yref: "y", yanchor: "middle", yshift: startShift(scene), showarrow: false, text: `R0 ${middle(R0)}`, font: { size: 11, color: ink.quiet } }],
  };
}

const knowsStart = (forecast) => Number.isFinite(forecast.R0?.median);
const ruleEnd = (axis) => (axis.start === null ? 0.02 : START.rule);

/** How far right R0's line and name reach; nowhere where there is none, not even to a text that stands out on the left. */
const startEnd = ({ forecast, axis, width }) => (holds(forecast) && knowsStart(forecast) ? ruleEnd(axis) + START.text / width : -Infinity);

/** R0 and the middle of its name, as shares of the plot's height. */
function startAt(scene) {
  const up = shareUp(scene, scene.forecast.R0.median);
  return [up, up + startShift(scene) / plotHeight(scene)];
}

/** How many pixels above R0 (below 0: below it) the middle of its name stands: the nearest place where it covers no bar and no band. */
function startShift(scene) {
  const at = plotHeight(scene) * shareUp(scene, scene.forecast.R0.median);
  const taken = barsAt(scene).map((ends) => ends.map((end) => plotHeight(scene) * end));
  const covered = (shift) => taken.filter(([low, high]) => low < at + shift + START.half && high > at + shift - START.half).length;
  const inside = (shift) => at + shift - START.half >= 0 && at + shift + START.half <= plotHeight(scene);
  const places = Array.from({ length: START.most / START.half }, (_, k) => START.half * (k + 1)).flatMap((shift) => [-shift, shift]);
  return places.filter(inside).reduce((best, shift) => (covered(shift) < covered(best) ? shift : best), -START.half);
}

/** What is drawn beside R0's line, from its lower to its upper end in shares of the plot's height: evaluations with their bars, bands. */
function barsAt(scene) {
  const { view, forecast, axis } = scene;
  const bars = view.points.map(({ compute, reward, se }) => [compute, reward - (se ?? 0), reward + (se ?? 0)]);
  for (const { band } of [forecast, view.frozen].filter((one) => one?.band)) band.compute.forEach((compute, i) => bars.push([compute, band.lower90[i], band.upper90[i]]));
  const near = bars.map(([compute, ...ends]) => [shareOf(axis, axis.place(compute)), ends]).filter(([across]) => across >= ruleEnd(axis) && across <= startEnd(scene));
  return near.map(([, ends]) => ends.map((rate) => shareUp(scene, rate)));
}

const plotHeight = ({ height }) => height * (1 - STRIP);

/** How far up the plot a rate stands, 0 to 1. */
function shareUp(scene, rate) {
  const [low, high] = rangeOf(scene);
  return (rate - low) / (high - low);
}
