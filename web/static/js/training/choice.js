// Which metrics are shown: a small overview, and what a person chose beside it, which stands in the URL.

import { chosen, overview } from "./panels.js";
import { element } from "./small-chart.js";

const MOST_CHOSEN = 30;

/** @returns {string[]} the metrics that the URL names */
export const chosenNames = () => [...new Set(new URLSearchParams(location.search).getAll("metric"))];

/** @param {string[]} names */
export function choose(names) {
  const url = new URL(location.href);
  url.searchParams.delete("metric");
  for (const name of new Set(names)) url.searchParams.append("metric", name);
  history.replaceState(history.state, "", url);
}

/** The overview, then what was chosen beside it. @param {string[]} names of all that was logged @returns {import("./panels.js").Panel[]} */
export function panelsOf(names) {
  const fixed = overview(names);
  const known = new Set(fixed.map(({ metrics: [first] }) => first));
  const others = chosenNames().filter((name) => names.includes(name) && !known.has(name));
  return [...fixed, ...others.slice(0, MOST_CHOSEN).map(chosen)];
}

/** What is not shown yet, by the first part of its name. Somebody may be choosing: the same is not offered anew, and what they are at stays. */
export function offer(select, names) {
  const panels = panelsOf(names);
  const shown = new Set(panels.map(({ metrics: [first] }) => first));
  const others = names.filter((each) => !shown.has(each));
  const full = panels.filter(({ says }) => !says).length >= MOST_CHOSEN;
  const offered = JSON.stringify([full, others]);
  if (select.dataset.offered === offered) return;
  select.dataset.offered = offered;
  const at = select.value;
  select.replaceChildren(element("option", { value: "" }, full ? `${MOST_CHOSEN} are shown: remove one first` : "choose a metric"), ...(full ? [] : grouped(others)));
  select.value = others.includes(at) && !full ? at : "";
  select.closest("label").hidden = others.length === 0;
}

function grouped(names) {
  const groups = new Map();
  for (const name of names) {
    const group = name.includes("/") ? name.split("/")[0] : "others";
    groups.set(group, [...(groups.get(group) ?? []), name]);
  }
  return [...groups].map(([label, members]) => {
    const group = element("optgroup", { label });
    group.append(...members.map((name) => element("option", { value: name }, name)));
    return group;
  });
}

/** A button that takes a chosen metric away. @param {string} metric */
export function removal(metric) {
  return element("button", { type: "button", class: "plain", "data-remove": metric, "aria-label": `Remove ${metric}` }, "×");
}
