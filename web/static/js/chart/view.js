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

const MODES = ["log", "linear", "steps", "time"];

/** @returns {import("./axis.js").Mode} the axis that the URL asks for */
export const modeFromUrl = () => (MODES.includes(fromUrl("x")) ? fromUrl("x") : "log");

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
