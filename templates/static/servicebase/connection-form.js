// The connection form: inserts the results of "Test connection" and "Try the script" into the page, to keep unsaved input,
// including the client secret. Without this script, or if a field is invalid, the page is reloaded.
const RESULT_SELECTOR = "#test-results, #stored-certificates, .readonly";
document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector("#oidcsetting_form");
  document.querySelector("#id_redirect_uri")?.after(form.querySelector("[data-copies]"));
  form?.addEventListener("input", () => form.querySelector("[name=tested]")?.remove());
  // Runs before the theme's own listener, which would stop warning about unsaved changes after this submit.
  const options = { capture: true };
  form?.addEventListener("submit", async (event) => {
    const button = event.submitter;
    if (!["_test", "_try"].includes(button?.name) || button.dataset.reloads) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    if (button.ariaBusy === "true") return;
    const buttonText = button.textContent;
    button.ariaBusy = "true";
    button.textContent = "Testing…";
    const body = new FormData(form);
    body.set(button.name, "1"); // FormData does not include the button
    const page = await fetch(location.href, { method: "POST", body })
      .then((response) => response.text())
      .then((text) => new DOMParser().parseFromString(text, "text/html"))
      .catch(() => null);
    button.ariaBusy = "false";
    button.textContent = buttonText;
    if (!page?.querySelector("#report")) {
      button.dataset.reloads = "1";
      return form.requestSubmit(button);
    }
    page.querySelector("#secret-not-kept")?.remove();
    const currentParts = document.querySelectorAll(RESULT_SELECTOR);
    page.querySelectorAll(RESULT_SELECTOR).forEach((part, index) => currentParts[index]?.replaceWith(part));
    document.querySelector("#report").focus();
  }, options);
});

// Focuses the first invalid field, or the first field of an empty form. Django's own script would focus the "Copy"
// button or, while the theme still hides the page, nothing.
window.addEventListener("load", () => {
  const invalidField = document.querySelector("#oidcsetting_form .errors :is(input, select, textarea):not([type=hidden])");
  const firstField = location.pathname.endsWith("/add/") ? document.querySelector("#id_name") : null;
  const field = invalidField ?? firstField;
  const isTyping = document.activeElement.matches("input, select, textarea") && document.activeElement !== firstField;
  if (!field || isTyping) return;
  field.focus({ preventScroll: true });
  field.scrollIntoView({ block: field === invalidField ? "center" : "nearest" });
});
