// The state of a chart lives in the page's URL: reload, share and Back give the same view.

/** @param {string} name @returns {string | null} */
export const fromUrl = (name) => new URLSearchParams(location.search).get(name);

/** @param {Record<string, string | null>} changes a null removes the parameter */
export function toUrl(changes) {
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === "") url.searchParams.delete(name);
    else url.searchParams.set(name, value);
  }
  history.replaceState(history.state, "", url);
}

/** Another control, order or page, or a run more or less, is asked for with the view as it is: `names` are what the URL says of it. @param {string[]} names */
export function takeAlong(names) {
  const told = (parameters) => {
    const here = new URLSearchParams(location.search);
    for (const name of names.filter((each) => here.has(each))) {
      parameters.delete(name);
      for (const value of here.getAll(name)) parameters.append(name, value);
    }
  };
  document.addEventListener("formdata", ({ target, formData }) => target.matches("[data-filter]") && told(formData));
  document.addEventListener("click", ({ target }) => {
    const link = target.closest("a.remove, a.draw, .paging a, .sortable th a");
    if (!link) return;
    const url = new URL(link.href);
    told(url.searchParams);
    link.href = url.href;
  });
}

const MODES = ["log", "linear", "steps", "tokens", "time"];

/** @returns {import("./axis.js").Mode} the axis that the URL asks for */
export const modeFromUrl = () => (MODES.includes(fromUrl("x")) ? fromUrl("x") : "log");

/**
 * The axis to draw: tokens stand on it, and are offered, where every evaluation says how many there were.
 * @param {import("./axis.js").Mode} mode the axis asked for
 * @param {{points: {tokens: number | null}[]}[]} views
 * @returns {import("./axis.js").Mode}
 */
export function offered(mode, views) {
  const counted = views.some(({ points }) => points.length > 0) && views.every(({ points }) => points.every(({ tokens }) => tokens !== null));
  const input = document.getElementById("x-tokens");
  for (const each of [input, ...input.labels]) each.hidden = !counted;
  if (mode !== "tokens" || counted) return mode;
  document.getElementById("x-log").checked = true;
  return "log";
}

/** The switch between them. @param {{mode: import("./axis.js").Mode}} state @param {() => void} show */
export function startModeSwitch(state, show) {
  for (const input of document.querySelectorAll("input[name=x]")) {
    input.checked = input.value === state.mode;
    input.addEventListener("change", () => {
      state.mode = input.value;
      toUrl({ x: input.value === "log" ? null : input.value });
      show();
    });
  }
}
