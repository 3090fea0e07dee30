// Who works by keyboard stays where they were, though what they pressed is no longer there.

const KEY = "forecurve-focus";

export function startFocus() {
  let acted = false;
  document.addEventListener("forecurve:done", () => (acted = true));
  document.addEventListener("htmx:after:swap", () => {
    if (!acted) return;
    acted = false;
    if (document.activeElement === document.body) toHeading();
  });
  // A filter loads the page anew.
  const keep = ({ target, detail }) => {
    const form = target.closest("form[data-filter]");
    const next = detail?.next;
    if (form) sessionStorage.setItem(KEY, fieldOf(next?.form === form && next.name ? next.name : target.name));
  };
  document.addEventListener("change", (event) => event.target.matches("select") || keep(event));
  document.addEventListener("forecurve:chosen", keep);
  // So does another order, which is asked for at the head of a column.
  document.addEventListener("click", ({ target, detail }) => {
    const head = target.closest(".sortable th a");
    if (head && detail === 0) sessionStorage.setItem(KEY, `.sortable th:nth-child(${head.parentElement.cellIndex + 1}) a`); // by a key
  });
  const place = sessionStorage.getItem(KEY);
  sessionStorage.removeItem(KEY);
  if (place) document.querySelector(place)?.focus();
}

const fieldOf = (name) => `form[data-filter] [name="${CSS.escape(name)}"]:not([type=hidden])`;

function toHeading() {
  const heading = document.querySelector("main h1");
  if (!heading) return;
  heading.tabIndex = -1;
  heading.focus({ preventScroll: true });
}
