// A chart of points under the keyboard: the arrow keys go from point to point, left to right, Enter opens one. A press opens it too.

/**
 * @param {HTMLElement} plot whose traces name their points by `ids`
 * @param {{open: (id: string) => void, say: (id: string) => string}} acts
 */
export function startStepping(plot, { open, say }) {
  let at = null; // the point's id: a redrawing may give it another place
  const said = document.querySelector("[data-said]");

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
    if (event.key === "Enter" && at !== null) return open(at);
    const now = places.findIndex(({ id }) => id === at);
    const next = { ArrowLeft: Math.max(0, now - 1), ArrowRight: Math.min(places.length - 1, now + 1), Home: 0, End: places.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    go(places[now < 0 && event.key === "ArrowLeft" ? places.length - 1 : next].id);
  });
  plot.addEventListener("blur", () => at !== null && go(null));
  whenDrawn(plot, () => plot.on("plotly_click", ({ points: [point] }) => point?.id && open(point.id)));
}

/** From left to right, and where they share a place from above to below. */
function placesOf(plot) {
  return plot.data
    .flatMap(({ ids, x, y }, curveNumber) => ids.map((id, pointNumber) => ({ id, x: x[pointNumber], y: y[pointNumber], curveNumber, pointNumber })))
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
