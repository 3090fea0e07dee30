// A chart of points under the keyboard: the arrow keys go from point to point, left to right, among those that the zoom shows. Where
// points lead somewhere, Enter opens one, and so does a press.

/**
 * @param {HTMLElement} plot whose traces name the points that are gone through by `ids`; `data-said`, beside it, is read out
 * @param {{say: (id: string) => string, open?: (id: string) => void}} acts
 */
export function startStepping(plot, { say, open }) {
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
    const places = plot.data ? placesOf(plot) : [];
    if (places.length === 0) return;
    if (event.key === "Escape") return go(null);
    if (event.key === "Enter" && at !== null) return open?.(at);
    const now = places.findIndex(({ id }) => id === at);
    const next = { ArrowLeft: Math.max(0, now - 1), ArrowRight: Math.min(places.length - 1, now + 1), Home: 0, End: places.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    go(places[now < 0 && event.key === "ArrowLeft" ? places.length - 1 : next].id);
  });
  plot.addEventListener("blur", () => at !== null && go(null));
  if (open) whenDrawn(plot, () => plot.on("plotly_click", ({ points: [point] }) => point?.id && open(point.id)));
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
