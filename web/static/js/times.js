// Times in the viewer's own zone: relative in the text, in full on hover. The server writes UTC for readers without scripts.

const STEPS = [
  [60, 1, "s"],
  [3600, 60, "min"],
  [86400, 3600, "h"],
  [Infinity, 86400, "d"],
];
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "long" });
const SHORT = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit", second: "2-digit" });
const MINUTE = new Intl.DateTimeFormat(undefined, { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });
const OF_ANOTHER_YEAR = new Intl.DateTimeFormat(undefined, { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" });

/** @param {string} iso @returns {string} date and time to the second, or with another year than ours, in the viewer's zone */
export function clock(iso, precise = SHORT) {
  const moment = new Date(iso);
  return (moment.getFullYear() === new Date().getFullYear() ? precise : OF_ANOTHER_YEAR).format(moment);
}

/** As `data-style` asks. */
const WRITTEN = {
  clock: (iso) => clock(iso),
  minute: (iso) => clock(iso, MINUTE),
  ago: (iso) => ago(new Date(iso), Date.now()),
  left: (iso) => left(new Date(iso), Date.now()),
};

/** @param {Date} then @param {number} now milliseconds @returns {string} as `web/formats.py: ago` writes it */
function ago(then, now) {
  const seconds = (now - then.getTime()) / 1000;
  if (seconds < 1 && seconds > -60) return "now"; // clocks differ
  return seconds < 0 ? `in ${lasting(-seconds, Math.round)}` : `${lasting(seconds, Math.floor)} ago`;
}

/** @param {Date} then @param {number} now milliseconds @returns {string} as `web/formats.py: left` writes it */
function left(then, now) {
  const seconds = (then.getTime() - now) / 1000;
  return seconds < 1 ? "any moment" : `${lasting(seconds, Math.round, 2)} left`;
}

/** In the first unit in which it is less than `coarse` of the next. @param {number} seconds @param {(value: number) => number} whole */
function lasting(seconds, whole, coarse = 1) {
  const [, size, name] = STEPS.find(([below, size]) => size * whole(seconds / size) < coarse * below);
  return `${whole(seconds / size)} ${name}`;
}

function refresh() {
  for (const element of document.querySelectorAll("time[datetime]")) {
    const moment = new Date(element.dateTime);
    if (Number.isNaN(moment.getTime())) continue;
    element.title = FULL.format(moment);
    element.textContent = WRITTEN[element.dataset.style](element.dateTime);
  }
}

export function startTimes() {
  refresh();
  setInterval(refresh, 10_000);
  document.addEventListener("htmx:after:swap", refresh);
}
