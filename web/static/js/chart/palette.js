// Colours come from the style sheet's tokens, so that charts follow light and dark. Series: Okabe-Ito; the control is neutral.

export const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "star"];
export const SERIES = 6; // as many colours as `--series-*` tokens; after these the line's dash and the symbol change

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

/** @param {string} hex #rrggbb @param {number} alpha */
export function fade(hex, alpha) {
  const number = parseInt(hex.slice(1), 16);
  return `rgba(${number >> 16}, ${(number >> 8) & 255}, ${number & 255}, ${alpha})`;
}
