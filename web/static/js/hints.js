// What stands in a `title` is read by holding a mouse over it, which a finger cannot: a tap shows it in a bubble.

const GAP = 6; // pixels between the words and what they are about
const EDGE = 8; // pixels that stay free at the window's sides
const PRESSED = "a, button, input, select, textarea, label, summary"; // a tap does something else there

export function startHints() {
  document.addEventListener("click", ({ pointerType, target }) => {
    if (pointerType === "mouse" || target.closest(PRESSED)) return;
    const about = target.closest("[title]");
    if (about?.title) show(about);
  });
}

/** @param {HTMLElement} about */
function show(about) {
  const bubble = document.getElementById("hint") ?? made();
  bubble.textContent = about.title;
  bubble.togglePopover(true); // it may be open where a browser closes it later than others
  const [beside, own] = [about.getBoundingClientRect(), bubble.getBoundingClientRect()];
  const below = beside.bottom + GAP + own.height <= innerHeight;
  bubble.style.left = `${Math.max(EDGE, Math.min(beside.left, innerWidth - own.width - EDGE))}px`;
  bubble.style.top = `${below ? beside.bottom + GAP : Math.max(EDGE, beside.top - GAP - own.height)}px`;
}

/** The browser takes it away at the next tap, and at Escape. */
function made() {
  const bubble = Object.assign(document.createElement("div"), { id: "hint", popover: "auto", role: "status" });
  document.addEventListener("scroll", () => bubble.hidePopover(), { passive: true, capture: true });
  document.body.append(bubble);
  return bubble;
}
