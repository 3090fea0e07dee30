// Buttons and forms that change something through the public API.
//
//   <button data-action="/v1/runs/{id}:stop" data-confirm="..." data-ask="Reason">   asks, then POSTs {reason}
//   <button ... data-method="PATCH" data-field="name" data-value="as it is now" data-maxlength="200">  asks for {name}
//   <button ... data-method="PATCH" data-field="tags">                               asks for {tags}, with commas between them; none is an answer
//   <button ... data-method="PATCH" data-field="note" data-long>                     asks for {note}, of several lines; none takes it away
//   <button ... data-body="{...}" data-leads="/sweeps/">                             POSTs this, and leads to the page of what was made
//   <form data-action="/v1/tokens" data-done="secret">                               POSTs its fields as JSON
//   <form data-action="/v1/sweeps/{id}" data-method="PATCH">                          PATCHes them; what its choices hide is left out
//   <span data-fault="budget_compute" hidden>                                        in a form: where what is wrong with that field is said
//   <textarea name="changes" data-as="changes">                                      lines `field = value` as an object
//   <select name="expires_in_s" data-as="number">                                    a number, left out where it is empty
//   <a href="#new-fork" data-fill="budget.compute = 120">                            leads to a form, with these changes if it has none
//
// What the server refuses is shown in words, where the person is looking.

import { api } from "./api.js";
import { ask, busy, isBusy } from "./asking.js";
import { refused, say, taken } from "./notice.js";

export function startActions() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-action]");
    if (button && !button.closest("form[data-action]")) press(button);
    const link = event.target.closest("a[data-fill]");
    if (link) fill(link);
  });
  document.addEventListener("submit", (event) => {
    const form = event.target.closest("form[data-action]");
    if (!form) return;
    event.preventDefault();
    submit(form);
  });
  const filter = ({ target }) => target.closest("form[data-filter]")?.requestSubmit();
  document.addEventListener("change", (event) => event.target.matches("select") || filter(event));
  document.addEventListener("forecurve:chosen", filter);
  document.addEventListener("formdata", ({ target, formData }) => target.matches("[data-filter]") && leaveOutEmpty(formData));
}

async function press(button) {
  if (isBusy(button)) return;
  const { action, method = "POST", body = "{}" } = button.dataset; // as asked: a refresh may make another button of this element
  const act = (answer) => send(button, action, method, { ...JSON.parse(body), ...answer });
  if (button.dataset.confirm) return ask(button.dataset, act);
  const fault = await act({});
  if (fault) refused(fault);
}

async function submit(form) {
  if ([...form.querySelectorAll("button")].some(isBusy)) return;
  let body;
  try {
    body = fields(form);
  } catch (error) {
    return refused(error);
  }
  const fault = await send(form, form.dataset.action, form.dataset.method ?? "POST", body);
  const left = sayAtFields(form, fault?.faults ?? []);
  if (!fault) return;
  if (left || !fault.faults?.length) refused(fault);
  else taken(); // all is said beside the fields, and what another form was refused is no longer what this is about
}

/** Say what is wrong with each field beside it, where the form has a place for that. @returns {boolean} whether any is left to be said */
function sayAtFields(form, faults) {
  const places = [...form.querySelectorAll("[data-fault]")];
  for (const place of places) {
    const fault = faults.find(({ field }) => field === place.dataset.fault);
    const input = form.elements[place.dataset.fault];
    say(place, fault?.message ?? "");
    place.hidden = !fault;
    if (fault) input.setAttribute("aria-invalid", "true");
    else input.removeAttribute("aria-invalid");
  }
  form.querySelector("[aria-invalid]")?.focus();
  return faults.some(({ field }) => !places.some((place) => place.dataset.fault === field));
}

/** What no answer came to, by the key that it went under: sent again it goes under the same, for the server may have done it. */
const unanswered = new Map();

/** @returns {Promise<Error | null>} what was refused */
async function send(source, path, method, body) {
  const controls = source.matches("button") ? [source] : [...source.querySelectorAll("button")];
  const asked = `${path} ${JSON.stringify(body)}`;
  unanswered.set(asked, unanswered.get(asked) ?? key());
  busy(controls, true);
  try {
    const answer = await api(path, {
      method,
      body: method === "DELETE" ? undefined : body,
      headers: method === "POST" ? { "idempotency-key": unanswered.get(asked) } : {},
    });
    unanswered.delete(asked);
    done(source, answer);
    return null;
  } catch (error) {
    if (error.status) unanswered.delete(asked);
    return error;
  } finally {
    busy(controls, false);
  }
}

/** Not crypto.randomUUID(): over plain http to another host there is none. */
function key() {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function done(source, answer) {
  taken();
  if (source.dataset.leads) return location.assign(source.dataset.leads + answer.id);
  if (source.dataset.done) secret(source, answer?.[source.dataset.done]);
  if (source.matches("form")) source.reset();
  document.dispatchEvent(new CustomEvent("forecurve:done"));
  document.body.dispatchEvent(new CustomEvent("forecurve:refresh"));
}

/** A form that was there before the advice that leads to it; what somebody has written stays. */
function fill({ hash, dataset }) {
  document.querySelector(hash).elements.changes.value ||= dataset.fill;
}

/** A secret is shown once, beside the form that made it; a mailbox has none. */
function secret(form, value) {
  const place = form.querySelector("[data-secret]");
  place.hidden = !value;
  place.querySelector("code").textContent = value;
}

function fields(form) {
  const body = {};
  for (const input of form.querySelectorAll("[name]")) {
    if (!input.getClientRects().length) continue; // a choice hides it
    if (input.type === "checkbox") {
      body[input.name] ||= []; // none ticked is an answer too
      if (input.checked) body[input.name].push(input.value);
    } else if (input.dataset.as === "changes") {
      body[input.name] = changes(input.value);
    } else if (input.value !== "") {
      body[input.name] = input.type === "number" || input.dataset.as === "number" ? number(input.value) : input.value;
    }
  }
  return body;
}

/** A filter that is not set does not stand in the address. */
function leaveOutEmpty(formData) {
  for (const [name, value] of [...formData]) if (value === "") formData.delete(name);
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

/** What is no number is refused by its name. */
function number(text) {
  const value = Number(text);
  return Number.isFinite(value) ? value : text;
}

function json(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
