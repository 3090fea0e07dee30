// Runs before the first paint, hence a classic script in <head>: the stored theme wins over the system's.
(() => {
  const stored = localStorage.getItem("forecurve-theme");
  if (stored === "light" || stored === "dark") document.documentElement.dataset.theme = stored;
})();
