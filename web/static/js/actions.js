// Buttons and forms that change something through the public API.
//
//   <button data-action="/v1/runs/{id}:stop" data-confirm="..." data-ask="Reason">   asks, then POSTs {reason}
//   <button ... data-method="PATCH" data-field="name" data-value="as it is now">      asks for {name}
//   <form data-action="/v1/tokens" data-done="secret">                               POSTs its fields as JSON
//   <textarea name="changes" data-as="changes">                                      lines `field = value` as an object
//
// What the server refuses is shown in words, where the person is looking.

import { api } from "./api.js";

export function startActions() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-action]");
    if (button && !button.closest("form[data-action]")) press(button);
  });
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-action]");
    if (!form) return;
    event.preventDefault();
    submit(form);
  });
  document.addEventListener("change", (event) => event.target.closest("form[data-filter]")?.requestSubmit());
}

async function press(button) {
  const answer = button.dataset.confirm ? await ask(button.dataset) : {};
  if (answer) await send(button, button.dataset.action, button.dataset.method || "POST", answer);
}

async function submit(form) {
  let body;
  try {
    body = fields(form);
  } catch (error) {
    return notice(error.message, "error");
  }
  await send(form, form.dataset.action, "POST", body);
}

/** The confirm dialog. @returns {Promise<Record<string, string> | null>} null when the person thought better of it */
function ask({ confirm, ask: question, verb, required, field = "reason", value = "" }) {
  const dialog = document.getElementById("confirm");
  const input = dialog.querySelector("input");
  dialog.querySelector("[data-text]").textContent = confirm;
  dialog.querySelector("label").hidden = !question;
  dialog.querySelector("[data-question]").textContent = question || "";
  dialog.querySelector("[value=yes]").textContent = verb || "Yes";
  input.value = value;
  input.required = Boolean(question && required !== undefined);
  dialog.querySelector("[data-no]").onclick = () => dialog.close(""); // no submit button, or Enter in the field would press it
  dialog.returnValue = "";
  dialog.showModal();
  input.select();
  return new Promise((resolve) => {
    dialog.addEventListener(
      "close",
      () => {
        if (dialog.returnValue !== "yes") return resolve(null);
        resolve(question && input.value.trim() ? { [field]: input.value.trim() } : {});
      },
      { once: true },
    );
  });
}

async function send(source, path, method, body) {
  const controls = source.matches("button") ? [source] : [...source.querySelectorAll("button")];
  controls.forEach((control) => (control.disabled = true));
  try {
    const answer = await api(path, {
      method,
      body: method === "DELETE" ? undefined : body,
      headers: method === "POST" ? { "idempotency-key": key() } : {},
    });
    done(source, answer);
  } catch (error) {
    notice(error.message, "error");
  } finally {
    controls.forEach((control) => (control.disabled = false));
  }
}

/** Not crypto.randomUUID(): over plain http to another host there is none. */
function key() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function done(source, answer) {
  document.getElementById("notice").hidden = true; // what was refused before has now been taken
  if (source.dataset.done) secret(source, answer?.[source.dataset.done]);
  if (source.matches("form")) source.reset();
  document.body.dispatchEvent(new CustomEvent("forecurve:refresh"));
}

/** A secret is shown once, beside the form that made it. */
function secret(form, value) {
  const place = form.querySelector("[data-secret]");
  place.hidden = false;
  place.querySelector("code").textContent = value;
}

function fields(form) {
  const body = {};
  for (const input of form.querySelectorAll("[name]")) {
    if (input.type === "checkbox") {
      if (input.checked) (body[input.name] ||= []).push(input.value);
    } else if (input.dataset.as === "changes") {
      body[input.name] = changes(input.value);
    } else if (input.value !== "") {
      body[input.name] = input.type === "number" ? Number(input.value) : input.value;
    }
  }
  return body;
}

/** `optimizer.learning_rate = 1e-4`, one a line. Values are JSON; what is none is text, as in `algorithm.loss = dapo`. */
function changes(text) {
  const found = {};
  for (const line of text.split("\n").filter((line) => line.trim())) {
    const [, field, value] = line.match(/^\s*([^=\s]+)\s*=\s*(.*?)\s*$/) || [];
    if (!field) throw new Error(`"${line.trim()}" is no change; write it as field = value`);
    found[field] = json(value);
  }
  return found;
}

function json(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** @param {string} text @param {"error" | "info"} kind */
export function notice(text, kind) {
  const place = document.getElementById("notice");
  place.dataset.kind = kind;
  place.querySelector("[data-text]").textContent = text;
  place.hidden = false;
  place.querySelector("button").onclick = () => (place.hidden = true);
}
