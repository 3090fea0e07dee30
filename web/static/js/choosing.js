// A select that does something by itself says `forecurve:chosen` when something has been chosen. From its list that is at once. The keys change
// one that is closed at every press, on the way to what is wanted: there it is Enter that chooses, or going on to another place, as for text
// that is typed; Escape takes it back. `detail.next` is the place that a person went on to.

let pressed = null; // the select under a key, and what it said before, as long as the key is handled
let pending = null; // the same, from the first change by keys on

export function startChoosing() {
  for (const kind of ["keydown", "keypress"]) document.addEventListener(kind, key);
  document.addEventListener("change", ({ target }) => {
    if (!target.matches("select")) return;
    if (target === pressed?.select) pending ??= pressed;
    else tell(target);
  });
  document.addEventListener("focusout", ({ target, relatedTarget }) => {
    if (target === pending?.select && target !== document.activeElement) settle(relatedTarget); // else the window is left, not the select
  });
}

function key(event) {
  const select = event.target;
  if (!select.matches("select")) return;
  const ends = event.key === "Enter" || event.key === "Escape";
  if (ends && select === pending?.select) {
    event.preventDefault();
    if (event.key === "Escape") select.value = pending.was;
    return settle(null);
  }
  pressed = ends ? null : { select, was: select.value };
  setTimeout(() => (pressed = null)); // a change that comes later was made in the list
}

function settle(next) {
  const { select, was } = pending;
  pending = null;
  if (select.value !== was) tell(select, next);
}

function tell(select, next = null) {
  pending = null;
  select.dispatchEvent(new CustomEvent("forecurve:chosen", { bubbles: true, detail: { next } }));
}
