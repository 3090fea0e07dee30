// The runs of a large sweep whose curves are not drawn one by one: a field of where they lie, from what the API counted along compute.

import { plain } from "./axis.js";
import { countsOtherwise } from "./pace.js";
import { fade } from "./palette.js";
import { escaped } from "./words.js";

const BANDS = [["lower90", "upper90", 0.1], ["lower50", "upper50", 0.14]];

/**
 * What can be drawn of it: along steps, tokens or time nothing was counted, and its key is hidden.
 * @param {{compute: number[]} | null | undefined} others @param {import("./axis.js").Mode} mode
 */
export function fieldOf(others, mode) {
  const field = others?.compute.length && !countsOtherwise(mode) ? others : null;
  const key = document.querySelector("[data-others-key]");
  if (key) key.hidden = !field;
  return field;
}

/** Beneath the curves. @param {object} field OthersView @param {import("./axis.js").ComputeAxis} axis @param {string | null} unit @param {Record<string, string>} ink */
export function fieldTraces(field, axis, unit, ink) {
  const x = field.compute.map(axis.place);
  const back = (column) => field[column].slice().reverse();
  const bands = BANDS.map(([lower, upper, alpha]) => ({
    name: `others ${lower}`,
    x: [...x, ...x.slice().reverse()],
    y: [...field[upper], ...back(lower)],
    mode: "lines",
    line: { width: 0 },
    fill: "toself",
    fillcolor: fade(ink.quiet, alpha),
    hoverinfo: "skip",
  }));
  const between = (lower, upper, at) => `${field[lower][at].toFixed(2)} to ${field[upper][at].toFixed(2)}`;
  return [...bands, {
    name: "others median",
    x,
    y: field.median,
    mode: "lines",
    line: { color: fade(ink.quiet, 0.8), width: 1.25, dash: "3px,3px" },
    customdata: field.compute.map((compute, at) => [plain(compute), field.evaluated[at].toLocaleString("en-GB"), between("lower50", "upper50", at), between("lower90", "upper90", at)]),
    hovertemplate: `<b>the others</b><br>%{customdata[0]} ${escaped(unit ?? "")} · %{customdata[1]} runs evaluated<br>median %{y:.3f}<br>half of them: %{customdata[2]}<br>90 % of them: %{customdata[3]}<extra></extra>`,
    hoverlabel: { bordercolor: ink.quiet, bgcolor: ink.paper },
  }];
}
