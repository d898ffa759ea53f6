// The form of a connection: what the buttons that only look find out comes into the page, so that what was typed stays,
// the client secret too. Without it, and when a field is not right, the whole page comes again.
const OF_THE_RECORD = "#looked-at, #kept-certificates, .readonly";
document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("#oidcsetting_form");
  // Before the theme's own listener, which would take the submit for one and no longer warn of what is not saved.
  const early = { capture: true };
  form?.addEventListener("submit", async (event) => {
    const button = event.submitter;
    if (!["_test", "_try"].includes(button?.name) || button.dataset.whole) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (button.ariaBusy === "true") return;
    const name = button.textContent;
    button.ariaBusy = "true";
    button.textContent = "Looking…";
    const body = new FormData(form);
    body.set(button.name, "1"); // which older browsers leave out
    const page = await fetch(location.href, { method: "POST", body })
      .then((answer) => answer.text())
      .then((text) => new DOMParser().parseFromString(text, "text/html"))
      .catch(() => null);
    button.ariaBusy = "false";
    button.textContent = name;
    if (!page?.querySelector("#report")) {
      button.dataset.whole = "1";
      return form.requestSubmit(button);
    }
    page.querySelector("#secret-is-gone")?.remove();
    const shown = document.querySelectorAll(OF_THE_RECORD);
    page.querySelectorAll(OF_THE_RECORD).forEach((each, place) => shown[place]?.replaceWith(each));
    document.querySelector("#report").focus();
  }, early);
});

// Where somebody goes on: the first wrong field, on an empty form the first one. Django's own script would choose the
// first thing that it sees, which is "Copy" or, while the theme still hides the page, nothing.
window.addEventListener("load", () => {
  const wrong = document.querySelector("#oidcsetting_form .errors :is(input, select, textarea):not([type=hidden])");
  const first = location.pathname.endsWith("/add/") ? document.querySelector("#id_name") : null;
  const goal = wrong ?? first;
  const isTyping = document.activeElement.matches("input, select, textarea") && document.activeElement !== first;
  if (!goal || isTyping) return;
  goal.focus({ preventScroll: true });
  goal.scrollIntoView({ block: goal === wrong ? "center" : "nearest" });
});
