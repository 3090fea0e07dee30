// The dialog that asks before something is done. It stays open until that is done, and says what was refused.

import { refused, say } from "./notice.js";

/** What an answer is in the body that is sent. A reason that is not given is left out; tags and a note may well be none. */
const SENT = {
  reason: (text) => text || undefined,
  tags: (text) => text.split(",").map((tag) => tag.trim()).filter(Boolean),
  note: (text) => text || null,
  seeds: (text) => (/^\d+$/.test(text) ? Number(text) : text), // what is no number is refused by its name
};

/**
 * @param {DOMStringMap} data of the button, see actions.js
 * @param {(answer: Record<string, unknown>) => Promise<Error | null>} act what to do; gives what was refused
 */
export function ask({ confirm, ask: question, verb, required, field = "reason", value = "", maxlength = "1000", long }, act) {
  const dialog = document.getElementById("confirm");
  const form = dialog.querySelector("form");
  const [yes, error] = [dialog.querySelector("[value=yes]"), dialog.querySelector("[data-error]")];
  dialog.querySelector("[data-text]").textContent = confirm;
  for (const label of dialog.querySelectorAll("label")) {
    label.hidden = !question || label.matches("[data-long]") !== (long !== undefined);
    label.querySelector("[data-question]").textContent = question || "";
    label.querySelector("input, textarea").setCustomValidity("");
  }
  const input = dialog.querySelector(long === undefined ? "input" : "textarea");
  const answer = () => {
    const said = (SENT[field] ?? SENT.reason)(input.value.trim());
    return !question || said === undefined ? {} : { [field]: said };
  };
  yes.textContent = verb || "Yes";
  input.value = value;
  input.maxLength = Number(maxlength);
  error.hidden = true;
  const check = () => {
    const blank = question && required !== undefined && !input.value.trim();
    input.setCustomValidity(blank ? "Some text is needed here." : "");
  };
  input.oninput = check;
  check();
  dialog.querySelector("[data-no]").onclick = () => isBusy(yes) || dialog.close(); // no submit button: Enter in the field would press it
  dialog.oncancel = (event) => {
    if (isBusy(yes)) event.preventDefault(); // its answer is to be said here
  };
  form.onsubmit = async (event) => {
    event.preventDefault();
    if (isBusy(yes)) return;
    busy([yes], true);
    const fault = await act(answer());
    busy([yes], false);
    if (!fault) return dialog.close();
    if (!dialog.open) return refused(fault); // a second Escape closes it whatever we say
    say(error, fault.message);
    error.hidden = false;
    if (question) input.focus();
  };
  input.onkeydown = (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit(); // Enter alone is a new line of a note
  };
  dialog.showModal();
  if (long === undefined) input.select();
  else input.focus();
}

/** A button that waits is not `disabled`: that would take the keyboard's focus from it. */
export function busy(buttons, waits) {
  buttons.forEach((button) => (waits ? button.setAttribute("aria-disabled", "true") : button.removeAttribute("aria-disabled")));
}

export function isBusy(button) {
  return button.getAttribute("aria-disabled") === "true";
}
