// A form that is planned before it is submitted: what was planned is no longer what the form says once somebody changes it.
//
//   <form data-composes="#planned">   and in #planned what says so, `data-stale`, and a button that submits what was planned

export function startComposing() {
  const form = document.querySelector("form[data-composes]");
  if (!form) return;
  const before = written(form);
  const check = () => {
    const planned = document.querySelector(form.dataset.composes);
    const changed = written(form) !== before;
    planned.querySelector("[data-stale]").hidden = !changed || !planned.querySelector("button");
    for (const button of planned.querySelectorAll("button")) button.hidden = changed;
  };
  form.addEventListener("input", check);
  document.addEventListener("htmx:after:swap", check); // a refresh brings the plan as it was
  addEventListener("pageshow", check); // the browser may have kept what was written
}

const written = (form) => new URLSearchParams(new FormData(form)).toString();
