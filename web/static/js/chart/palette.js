// Colours come from the style sheet's tokens, so that charts follow light and dark. Series: Okabe-Ito; the control is neutral.

const SERIES = 6; // as many colours as `--series-*` tokens; when they come round again, line and symbol tell who is who

// A round's line has a dot more a dash than the round before. Dots alone are the edges of what is not identified.
const ROUNDS = [
  { fit: "solid", forecast: "6px,4px", symbols: ["circle", "square", "diamond", "triangle-up", "cross", "star"] },
  { fit: "14px,3px,2px,3px", forecast: "6px,4px,2px,4px", symbols: ["circle-open", "square-open", "diamond-open", "triangle-up-open", "cross-open", "star-open"] },
  { fit: "14px,3px,2px,3px,2px,3px", forecast: "6px,4px,2px,4px,2px,4px", symbols: ["triangle-down", "triangle-left", "triangle-right", "pentagon", "hexagram", "x"] },
];

/** @param {number | null} series null is the control @returns {{fit: string, forecast: string, symbol: string}} dashes of its lines, symbol of its evaluations */
export function seriesMarks(series) {
  const { symbols, ...lines } = ROUNDS[Math.floor((series ?? 0) / SERIES) % ROUNDS.length];
  return { ...lines, symbol: series === null ? "circle" : symbols[series % SERIES] };
}

/** @returns {Record<"ink" | "quiet" | "hairline" | "hairlineStrong" | "paper" | "accent" | "alert" | "neutral" | "font", string>} */
export function tokens() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  const names = ["ink", "quiet", "hairline", "hairlineStrong", "paper", "accent", "alert", "neutral", "font"];
  return Object.fromEntries(names.map((name) => [name, read(name)]));
}

/** @param {number | null} series null is the control @returns {string} a colour */
export function seriesColour(series) {
  const style = getComputedStyle(document.documentElement);
  return style.getPropertyValue(series === null ? "--neutral" : `--series-${series % SERIES}`).trim();
}

/** @param {number | null} series null is the control @returns {string} the class whose colour is its own */
export const seriesColourName = (series) => (series === null ? "neutral" : `series-${series % SERIES}`);

/** Of a series' name: text takes more contrast with the paper than a line. @param {number | null} series @param {string} ink #rrggbb */
export function nameColour(series, ink) {
  const [ours, theirs] = [seriesColour(series), ink].map((hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)));
  return `rgb(${ours.map((part, at) => Math.round(0.75 * part + 0.25 * theirs[at])).join(", ")})`;
}

/** @param {string} hex #rrggbb @param {number} alpha */
export function fade(hex, alpha) {
  const number = parseInt(hex.slice(1), 16);
  return `rgba(${number >> 16}, ${(number >> 8) & 255}, ${number & 255}, ${alpha})`;
}
