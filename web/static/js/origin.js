// The address of the service in commands to copy: the one by which this browser reached it, which surely works from here. Behind a proxy
// the server itself sees another one; without scripts the page has what FORECURVE_PUBLIC_URL says.

export function startOrigin() {
  write();
  document.addEventListener("htmx:after:swap", write);
}

function write() {
  for (const place of document.querySelectorAll("[data-origin]")) place.textContent = location.origin;
}
