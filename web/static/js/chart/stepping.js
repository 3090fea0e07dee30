// A chart of points under the keyboard: the arrow keys go from point to point, left to right, among those that the zoom shows; of several
// arms, along one of them, and up and down from arm to arm. Where points lead somewhere, Enter opens one, and so does a press.

/**
 * @param {HTMLElement} plot whose traces name the points that are gone through by `ids`; `data-said`, beside it, is read out
 * @param {{say: (id: string) => string, open?: (id: string) => void, arms?: boolean}} acts `arms`: each trace with `ids` is one
 */
export function startStepping(plot, { say, open, arms = false }) {
  const reach = arms ? amongArms : along;
  let at = null; // the point's id: a redrawing may give it another place
  const said = plot.parentElement.querySelector("[data-said]");

  const go = (id) => {
    at = id;
    said.textContent = id === null ? "" : say(id);
    const place = id === null ? null : placesOf(plot).find((one) => one.id === id);
    if (place) window.Plotly.Fx.hover(plot, [{ curveNumber: place.curveNumber, pointNumber: place.pointNumber }]);
    else window.Plotly?.Fx.unhover(plot);
  };

  plot.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return; // the browser's own: Alt and the left arrow is Back
    const places = plot.data ? placesOf(plot) : [];
    if (places.length === 0) return;
    if (event.key === "Escape") return go(null);
    if (event.key === "Enter" && at !== null) return open?.(at);
    const next = reach(places, at, event.key);
    if (!next) return;
    event.preventDefault();
    go(next.id);
  });
  plot.addEventListener("blur", () => at !== null && go(null));
  if (open) whenDrawn(plot, () => plot.on("plotly_click", ({ points: [point] }) => point?.id && open(point.id)));
}

/** The place that a key leads to; none for a key that leads nowhere. */
function along(places, at, key) {
  const [now, last] = [places.findIndex(({ id }) => id === at), places.length - 1];
  const left = now < 0 ? last : Math.max(0, now - 1);
  return places[{ ArrowLeft: left, ArrowRight: Math.min(last, now + 1), Home: 0, End: last }[key]];
}

/** Up and down lead to the nearest point of the arm drawn before and after; the others stay on their arm. */
function amongArms(places, at, key) {
  const arms = [...new Set(places.map(({ curveNumber }) => curveNumber))].sort((one, other) => one - other);
  const here = places.find(({ id }) => id === at);
  const arm = here?.curveNumber ?? arms[0];
  const pointsOf = (which) => places.filter(({ curveNumber }) => curveNumber === which);
  const aside = { ArrowUp: -1, ArrowDown: 1 }[key];
  if (!aside) return along(pointsOf(arm), at, key);
  if (!here) return pointsOf(arm)[0];
  const others = pointsOf(arms[arms.indexOf(arm) + aside]);
  return others.reduce((best, one) => (Math.abs(one.x - here.x) < Math.abs(best.x - here.x) ? one : best), others[0] ?? here);
}

/** From left to right, and where they share a place from above to below. */
function placesOf(plot) {
  const { type, range } = plot.layout.xaxis;
  const [least, most] = type === "log" ? range.map((power) => 10 ** power) : range;
  return plot.data
    .flatMap(({ ids = [], x, y }, curveNumber) => ids.map((id, pointNumber) => ({ id, x: x[pointNumber], y: y[pointNumber], curveNumber, pointNumber })))
    .filter(({ x }) => x >= least && x <= most)
    .sort((one, other) => one.x - other.x || other.y - one.y);
}

/** Plotly gives an element its events with the first drawing. */
function whenDrawn(plot, act) {
  const observer = new MutationObserver(() => {
    observer.disconnect();
    act();
  });
  observer.observe(plot, { attributeFilter: ["data-drawn"] });
}
