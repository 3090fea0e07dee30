// A chart on paper: as wide as the page, in light colours whatever the screen has. A browser lays out for print as soon as
// its event is over, so that both are set in it, and taken back afterwards.

const PAPER_PX = 680; // A4 and letter, within their margins

/** How wide a chart is to be drawn, in pixels: the element keeps the screen's width until it is on paper. @param {HTMLElement} plot */
export const drawnWidth = (plot) => plot.paperWidth ?? plot.clientWidth;

/** @param {HTMLElement} plot `paperWidth` is what `draw` makes its width @param {() => void} repaint */
export function startPrinting(plot, repaint) {
  const root = document.documentElement;
  let theme;
  addEventListener("beforeprint", () => {
    theme = root.dataset.theme;
    root.dataset.theme = "light";
    plot.paperWidth = PAPER_PX;
    repaint();
  });
  addEventListener("afterprint", () => {
    if (theme) root.dataset.theme = theme;
    else delete root.dataset.theme;
    plot.paperWidth = null;
    repaint();
    if (plot.data) window.Plotly.Plots.resize(plot);
  });
}
