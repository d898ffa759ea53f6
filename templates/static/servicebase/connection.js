// The form of a connection: what the buttons that only look find out comes into the page, so that what was typed stays,
// the client secret too. Without it, and when a field is not right, the whole page comes again.
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
    const found = await fetch(location.href, { method: "POST", body })
      .then((answer) => answer.text())
      .then((text) => new DOMParser().parseFromString(text, "text/html").querySelector("#looked-at"))
      .catch(() => null);
    button.ariaBusy = "false";
    button.textContent = name;
    if (!found?.querySelector("#report")) {
      button.dataset.whole = "1";
      return form.requestSubmit(button);
    }
    found.querySelector("#secret-is-gone")?.remove();
    document.querySelector("#looked-at").replaceWith(found);
    found.querySelector("#report").focus();
  }, early);
});
