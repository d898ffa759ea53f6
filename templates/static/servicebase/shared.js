// On all pages of a signed-in user: the switch of colours without a reload, and the focus on the first wrong field.
"use strict";
{
  const root = document.documentElement;
  const isAdministration = root.hasAttribute("x-data");
  // Before the administration's theme reads it. The page has the theme of the user; the browser may remember another one.
  if (isAdministration) localStorage.setItem("adminTheme", JSON.stringify(root.className));

  // The administration's theme changes the colours with Ctrl E, but does not store them.
  const isThemeKey = (event) => (event.ctrlKey || event.metaKey) && event.key === "e";
  if (isAdministration) addEventListener("keydown", (event) => { if (isThemeKey(event)) event.stopPropagation(); }, true);

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.matches(".theme-switch") || !event.submitter) return;
    event.preventDefault();
    const theme = event.submitter.value;
    for (const button of form.querySelectorAll("[aria-pressed]")) button.setAttribute("aria-pressed", String(button === event.submitter));
    root.dataset.theme = theme;
    if (isAdministration) Alpine.$data(root).switchTheme(theme === "system" ? "auto" : theme);
    root.dispatchEvent(new Event("themechange"));
    const body = new URLSearchParams(new FormData(form, event.submitter));
    const response = await fetch(form.action, { method: "POST", body, redirect: "manual" }).catch(() => null);
    if (response?.type !== "opaqueredirect") location.reload(); // not saved: show the stored theme
  });

  const focusFirstWrongField = () => {
    const field = document.querySelector("main [aria-invalid=true]:not([type=hidden])");
    if (!field || ![document.body, null].includes(document.activeElement)) return;
    const replacement = field.matches(".select2-hidden-accessible") ? field.nextElementSibling?.querySelector("[tabindex]") : null;
    (replacement ?? field).focus();
  };
  addEventListener("load", focusFirstWrongField);
}
