// Runs that are ticked in the list, to be compared. Which they are stands in the URL, so that they stay over filters, pages, a reload and
// a link that is shared; what leads to another view of the list takes them along. Back leads to an address from before the last ticks:
// the views of the list that one choice went through share its name, under which this tab remembers what was ticked last.

const KEY = "forecurve-ticks";
const ticks = () => new Set(new URLSearchParams(location.search).getAll("run"));
const barOf = () => document.getElementById("ticked");

let begun = false; // a list that was empty has no bar until its first runs come

export function startTicking() {
  document.addEventListener("change", ({ target }) => {
    if (!target.matches(".tick")) return;
    const chosen = ticks();
    if (target.checked) chosen.add(target.value);
    else chosen.delete(target.value);
    keep(chosen);
  });
  document.addEventListener("click", ({ target }) => {
    if (!target.closest("[data-untick]")) return;
    keep(new Set());
    document.querySelector(".tick")?.focus();
  });
  takeUp();
  forgetUnknown();
  document.addEventListener("htmx:after:swap", () => {
    takeUp();
    show(); // what came is as the page was asked for, before what was ticked since
  });
  show();
}

/** Goes on with the choice of this place in the history, or of the list that led here; else begins one. */
function takeUp() {
  if (begun || !barOf()) return;
  begun = true;
  const led = sessionStorage.getItem(KEY);
  sessionStorage.removeItem(KEY);
  const been = history.state?.ticks;
  history.replaceState({ ...history.state, ticks: been ?? led ?? `${KEY}-${Date.now()}` }, "");
  const last = been && sessionStorage.getItem(been);
  if (last) keep(new Set(JSON.parse(last)));
  else remember(ticks());
  document.addEventListener("click", (event) => {
    const link = event.target.closest("main a[href]");
    if (link && !(event.ctrlKey || event.metaKey || event.shiftKey)) leadOn(link.pathname);
  });
  document.addEventListener("submit", ({ target }) => leadOn(new URL(target.action).pathname));
}

/** The next page of this tab, if it is a view of the list too, goes on with this choice. */
function leadOn(path) {
  if (path === "/runs") sessionStorage.setItem(KEY, history.state.ticks);
}

const remember = (chosen) => sessionStorage.setItem(history.state.ticks, JSON.stringify([...chosen]));

/** A link may name runs that are not here: the page came with those that are, and what cannot be compared is not counted. */
function forgetUnknown() {
  const there = document.querySelector("[data-ticked-too]");
  if (!there || !barOf()) return;
  const known = new Set([...there.querySelectorAll("input")].map(({ value }) => value));
  const chosen = [...ticks()];
  if (chosen.some((id) => !known.has(id))) keep(new Set(chosen.filter((id) => known.has(id))));
}

function keep(chosen) {
  const url = new URL(location.href);
  withRuns(url, chosen);
  history.replaceState(history.state, "", url);
  remember(chosen);
  show();
}

function show() {
  const bar = barOf();
  if (!bar) return;
  const chosen = ticks();
  const here = new Set();
  for (const box of document.querySelectorAll(".tick")) {
    box.checked = chosen.has(box.value);
    here.add(box.value);
  }
  inputs(bar.querySelector("[data-elsewhere]"), [...chosen].filter((id) => !here.has(id)));
  inputs(document.querySelector("[data-ticked-too]"), [...chosen]);
  for (const link of document.querySelectorAll("main a[href]")) {
    if (link.pathname === "/runs") link.search = withRuns(new URL(link.href), chosen).search;
  }
  bar.hidden = chosen.size === 0;
  bar.querySelector("[data-count]").textContent = said(chosen.size, [...chosen].filter((id) => !here.has(id)).length, Number(bar.dataset.most));
  bar.querySelector(".primary").disabled = chosen.size < 2 || chosen.size > Number(bar.dataset.most);
  bar.querySelector("[data-untick]").hidden = chosen.size === 0;
}

function said(count, elsewhere, most) {
  const away = elsewhere > 0 ? `, ${elsewhere} of them not on this page` : "";
  if (count > most) return `${count} ticked${away}: at most ${most} are compared`;
  return count === 1 ? `1 ticked${away}: tick another` : `${count} ticked${away}`;
}

function withRuns(url, chosen) {
  url.searchParams.delete("run");
  for (const id of chosen) url.searchParams.append("run", id);
  return url;
}

/** Hidden fields by which a form takes ticks along. */
function inputs(place, ids) {
  place?.replaceChildren(...ids.map((value) => Object.assign(document.createElement("input"), { type: "hidden", name: "run", value })));
}
