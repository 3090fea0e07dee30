// A posterior that is known by its quantiles as a violin: as wide at a rate as it is likely to be there.

const STEPS = 40;
const SMOOTHED = 0.15; // of the 90 % interval, to either side: quantiles are a few numbers, and no artefact of theirs is to be seen

/**
 * @param {{probabilities: number[], values: number[]}} quantiles
 * @param {number} width of half the violin where it is widest
 * @returns {[number, number][]} half widths and rates, from below to above; empty where the posterior is a single rate
 */
export function violin({ probabilities, values }, width) {
  const [low, high] = [values[0], values.at(-1)];
  if (!(high > low)) return [];
  const reach = SMOOTHED * (below(0.95, values, probabilities) - below(0.05, values, probabilities));
  const share = (rate) => below(rate, probabilities, values);
  const rates = Array.from({ length: STEPS + 1 }, (_, k) => low + (k / STEPS) * (high - low));
  const density = rates.map((rate) => share(rate + reach) - share(rate - reach));
  const most = Math.max(...density);
  return rates.map((rate, k) => [(width * density[k]) / most, rate]);
}

/** `ys` at `x`, linear between the `xs`, constant beyond them. The arguments are (x, ys, xs). */
function below(x, ys, xs) {
  if (x <= xs[0]) return ys[0];
  const above = xs.findIndex((each) => each >= x);
  if (above < 0) return ys.at(-1);
  const span = xs[above] - xs[above - 1];
  return span > 0 ? ys[above - 1] + ((x - xs[above - 1]) / span) * (ys[above] - ys[above - 1]) : ys[above];
}
