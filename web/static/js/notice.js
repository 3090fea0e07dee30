// The line below the bar that says what was refused.

/** @param {Element} place @param {string} text `words` between backticks are set as code, as on the pages themselves */
export function say(place, text) {
  const parts = text.split(/`([^`]+)`/).map((part, at) => {
    if (at % 2 === 0) return part;
    const code = document.createElement("code");
    code.textContent = part;
    return code;
  });
  place.replaceChildren(...parts);
}

/** @param {Error & {status?: number}} error */
export function refused(error) {
  const place = document.getElementById("notice");
  place.dataset.kind = "error";
  place.toggleAttribute("data-unanswered", error.status === 0);
  say(place.querySelector("[data-text]"), error.message);
  place.hidden = false;
  place.querySelector("button").onclick = taken;
}

/** What was refused before has now been taken. */
export function taken() {
  document.getElementById("notice").hidden = true;
}

/** That nobody answers is no longer so. */
export function answered() {
  document.querySelector("#notice[data-unanswered]")?.setAttribute("hidden", "");
}
