// The axis: compute, log or linear, or steps, tokens or time in its place. On a log axis compute 0 has no place, so the start gets a gutter of
// its own at the left edge, set apart by a dotted rule and labelled 0.

const GUTTER = 0.055; // share of the axis, in log space
const LONELY = Math.sqrt(10); // a single compute gets this factor on either side of a log axis: a decade in all
const APART = 2; // letters between the labels of the start and of the first tick
const LABEL = 12; // letters that find room at a tick
const [LEAST, MOST] = [1e-30, 1e40]; // what the science takes as compute; what lies beyond stands at the edge of the axis

/**
 * @typedef {"log" | "linear" | "steps" | "tokens" | "time"} Mode compute twice, then what a run had done when it had spent it
 * @typedef {object} ComputeAxis
 * @property {Mode} mode
 * @property {(compute: number) => number} place where a compute stands (steps, tokens or seconds, until `along` a run), in axis data values
 * @property {number | null} start place of compute 0 when it has a gutter
 * @property {number | null} rule where the gutter ends
 * @property {[number, number]} range in Plotly's terms: log10 on a log axis
 */

/**
 * @param {Mode} mode
 * @param {number[]} computes every compute (step, token, second) that the chart must show, 0 for a start
 * @returns {ComputeAxis}
 */
export function computeAxis(mode, computes) {
  const within = (compute) => (compute > 0 ? Math.min(Math.max(compute, LEAST), MOST) : compute);
  const positive = computes.filter((compute) => compute > 0).map(within);
  const [least, last] = positive.length > 0 ? extent(positive) : [1, 1];
  if (mode !== "log" || positive.length === 0) {
    return { mode: mode === "log" ? "linear" : mode, place: within, start: null, rule: null, range: [-0.015 * last, last * 1.03] };
  }
  const [first, end] = widened(least, last);
  const span = Math.log10(end / first);
  const margin = 0.02 * span;
  if (!computes.includes(0)) return { mode, place: within, start: null, rule: null, range: [Math.log10(first) - margin, Math.log10(end) + margin] };
  const start = first * 10 ** (-GUTTER * span);
  return {
    mode,
    place: (compute) => (compute > 0 ? within(compute) : start),
    start,
    rule: first * 10 ** (-GUTTER * span * 0.5),
    range: [Math.log10(start) - margin, Math.log10(end) + margin],
  };
}

/** The least and the greatest. Of any number of values, where a call of Math.min takes some 100,000. @param {number[]} values @returns {[number, number]} */
const extent = (values) => values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);

/** A place in the terms of ranges and annotations, which on a log axis are powers of ten. @param {ComputeAxis} axis @param {number} place */
export const toAxis = (axis, place) => (axis.mode === "log" ? Math.log10(place) : place);

/** How far across the plot a place is, 0 to 1. @param {ComputeAxis} axis @param {number} place */
export const shareOf = (axis, place) => (toAxis(axis, place) - axis.range[0]) / (axis.range[1] - axis.range[0]);

/** One compute by itself spans nothing, and the gutter, which is a share of the span, would stand far too wide. */
function widened(first, last) {
  return last > first * (1 + 1e-9) ? [first, last] : [first / LONELY, last * LONELY];
}

/**
 * Round tick values inside a range, and the start's 0. Where the range is narrow the labels need many digits: then there are fewer of them.
 * @param {ComputeAxis} axis @param {[number, number]} range as Plotly has it @param {number} most @param {number} [letters] that find room
 * along the axis
 * @returns {{tickvals: number[], ticktext: string[]}}
 */
export function computeTicks(axis, range, most, letters = most * LABEL) {
  const ticks = labelled(axis, range, most, letters);
  const longest = Math.max(0, ...ticks.ticktext.map((text) => text.length));
  return longest <= LABEL ? ticks : labelled(axis, range, Math.max(2, Math.floor((most * LABEL) / longest)), letters);
}

function labelled(axis, range, most, letters) {
  const [low, high] = axis.mode === "log" ? range.map((v) => 10 ** v) : range;
  const floor = Math.max(low, axis.rule ?? -Infinity);
  if (axis.mode === "time") return timeTicks(Math.max(0, floor), high, most);
  const { tickvals, ticktext } = axis.mode === "log" ? logTicks(floor, high, most, letters / (range[1] - range[0])) : linearTicks(Math.max(0, floor), high, most);
  if (axis.start === null || axis.start < low || axis.start > high) return { tickvals, ticktext };
  const first = tickvals.findIndex((value, i) => room(axis, range, value, most) >= (1 + ticktext[i].length) / 2 + APART); // on a phone the gutter is narrow
  const kept = first < 0 ? tickvals.length : first;
  return { tickvals: [axis.start, ...tickvals.slice(kept)], ticktext: ["0", ...ticktext.slice(kept)] };
}

/** How many letters find room between the start and a place. */
function room(axis, range, place, most) {
  const [start, end] = [axis.start, place].map((each) => toAxis(axis, each));
  return ((end - start) / (range[1] - range[0])) * most * LABEL;
}

/** @param {number} letters that find room in a decade */
function logTicks(low, high, most, letters) {
  const decades = Math.log10(high / low);
  if (decades < 0.5) return linearTicks(low, high, most);
  const sets = [[1, 1.5, 2, 3, 4, 5, 6, 7, 8, 9], [1, 2, 3, 4, 5, 7], [1, 2, 5], [1, 3], [1]];
  const inside = (mantissas) => {
    const values = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
      for (const mantissa of mantissas) values.push(Number((mantissa * 10 ** power).toPrecision(6)));
    return values.filter((value) => value >= low && value <= high);
  };
  const fits = (values) => values.length <= most && values.every((value, i) => i === 0 || apart(values[i - 1], value, letters));
  const set = sets.find((each) => fits(inside(each)));
  const every = Math.ceil(decades / most); // more decades than ticks: every second, third, ... of them
  const tickvals = set ? inside(set) : inside([1]).filter((value) => Math.round(Math.log10(value)) % every === 0);
  return { tickvals, ticktext: tickvals.map(plain) };
}

/** Whether the labels of two neighbours on a log axis keep apart, which 8,000,000 and 9,000,000 need more room for than 8 and 9. */
function apart(one, next, letters) {
  return Math.log10(next / one) * letters >= (plain(one).length + plain(next).length) / 2 + 1;
}

function linearTicks(low, high, most) {
  const step = roundStep((high - low) / most);
  const tickvals = multiples(step, low, high);
  return { tickvals, ticktext: tickvals.map((value) => inSteps(value, step)) };
}

/** The next 1, 2 or 5 times a power of ten. */
function roundStep(rough) {
  const power = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
}

function multiples(step, low, high) {
  const values = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high * (1 + 1e-9); k++) values.push(Number((k * step).toPrecision(14)));
  return values;
}

const DAY = 86400;
const LENGTHS = [[DAY, "d"], [3600, "h"], [60, "min"], [1, "s"]];
const ROUND = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200]; // seconds

/** Round times: minutes and hours have other round numbers than steps and days have. */
function timeTicks(low, high, most) {
  const rough = (high - low) / most;
  const round = rough > 0.5 ? ROUND.find((size) => size >= rough) ?? DAY * roundStep(Math.max(1, rough / DAY)) : undefined;
  const tickvals = round ? multiples(round, low, high) : linearTicks(low, high, most).tickvals;
  const step = round ?? (tickvals.length > 1 ? tickvals[1] - tickvals[0] : 1);
  return { tickvals, ticktext: tickvals.map((seconds) => lasting(seconds, step)) };
}

/** @param {number} seconds @param {number} step what must be told apart @returns {string} `1 h 30 min` */
function lasting(seconds, step) {
  const finest = Math.min(step, 1);
  const parts = [];
  let rest = seconds;
  for (const [size, name] of LENGTHS) {
    const count = size > 1 ? Math.floor(rest / size + 1e-9) : rest;
    rest -= count * size;
    if (count > finest / 2) parts.push(`${size > 1 ? count : inSteps(count, finest)} ${name}`);
  }
  return parts.join(" ") || "0 s";
}

/** The magnitudes that are written without an exponent. */
const everyday = (magnitude) => magnitude >= -4 && magnitude <= 8;
const magnitudeOf = (value) => Math.floor(Math.log10(Math.abs(value)) + 1e-9);

/** A tick's label has the decimals of the step between ticks, or neighbours would read the same. */
function inSteps(value, step) {
  if (value === 0) return "0";
  const finest = magnitudeOf(step);
  const magnitude = magnitudeOf(value);
  if (!everyday(magnitude)) return Number(value.toPrecision(Math.min(15, Math.max(1, magnitude - finest + 1)))).toExponential();
  const digits = Math.min(12, Math.max(0, -finest));
  return value.toLocaleString("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

/** @param {number} value @returns {string} three significant digits, no exponent for everyday sizes */
export function plain(value) {
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  if (!everyday(magnitude)) return Number(value.toPrecision(3)).toExponential();
  return upTo(Math.max(0, 2 - magnitude)).format(value);
}

const formats = [];
/** By the most decimals. To make a format takes longer than to write a number, of which a chart has thousands. */
const upTo = (digits) => (formats[digits] ??= new Intl.NumberFormat("en-GB", { maximumFractionDigits: digits }));

const fixedFormats = [];

/** @param {number} value @param {number} digits after the point @returns {string} `0.78`; of a metric also `1,150.7` */
export function fixed(value, digits) {
  fixedFormats[digits] ??= new Intl.NumberFormat("en-GB", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return fixedFormats[digits].format(value);
}

/** What a person gave, a budget say, with all its digits (`as_given` of forecurve/digits.py). @param {number} value @returns {string} */
export function asGiven(value) {
  const magnitude = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
  if (magnitude < -4 || magnitude > 9) return Number(value.toPrecision(10)).toExponential();
  return value.toLocaleString("en-GB", { maximumSignificantDigits: 10 });
}

const AIR = 0.012; // of a range that ends at 0 or at 1, so that points there are drawn whole; less than ticks are apart, so that none stands beyond

/** Pass rates get a range that holds everything and ends on round values. @param {number[]} values @returns {[number, number]} */
export function rateRange(values) {
  const [low, high] = known(values, [0, 1]);
  return rounded(low, high, Math.max(0.015, 0.04 * (high - low)), 20, [0, 1]);
}

/**
 * So do the values of a metric, which may be any numbers within its bounds.
 * @param {number[]} values @param {[number, number]} bounds @returns {[number, number]}
 */
export function valueRange(values, bounds) {
  const [low, high] = known(values, bounds);
  const spread = high > low ? high - low : Math.abs(high) || 1;
  return rounded(low, high, 0.04 * spread, 1 / roundStep(spread / 20), bounds);
}

function known(values, otherwise) {
  const finite = values.filter(Number.isFinite);
  return finite.length > 0 ? extent(finite) : otherwise;
}

/** @param {number} steps to a unit, on which it ends */
function rounded(low, high, margin, steps, [least, most]) {
  const [bottom, top] = [Math.max(least, Math.floor((low - margin) * steps) / steps), Math.min(most, Math.ceil((high + margin) * steps) / steps)];
  const air = AIR * (top - bottom);
  return [bottom === least ? bottom - air : bottom, top === most ? top + air : top];
}

/** Linear interpolation in log compute. @param {number[]} computes rising @param {number[]} values @param {number} at */
export function interpolate(computes, values, at) {
  if (at < computes[0] || at > computes[computes.length - 1]) return null;
  const above = Math.max(1, computes.findIndex((compute) => compute >= at));
  const [left, right] = [computes[above - 1], computes[above]];
  const share = left > 0 ? Math.log(at / left) / Math.log(right / left) : (at - left) / (right - left);
  return values[above - 1] + share * (values[above] - values[above - 1]);
}
