// The record form: pickers, JSON checks, unsaved changes, shortcuts, and the focus after a refused save.
// Without this script, the form works with its plain controls.

import { enhancePickers } from "./picker.js";

const SINGLE_KEYS = "servicebase-single-keys";

const form = document.querySelector("[data-record-form]");
const shortcuts = document.getElementById("shortcuts");

if (form) {
  enhancePickers(form);
  for (const control of form.querySelectorAll("[data-control=json]")) checkJson(control);
  watchChanges();
  focusFirstError();
}
setUpShortcuts();

// The server decides; this only tells early that a text is not JSON.
function checkJson(control) {
  const note = Object.assign(document.createElement("p"), { className: "errors", hidden: true });
  note.setAttribute("role", "status");
  control.after(note);
  control.addEventListener("change", () => {
    note.hidden = true;
    try {
      if (control.value.trim()) JSON.parse(control.value);
    } catch (error) {
      note.textContent = `This is not valid JSON: ${error.message}`;
      note.hidden = false;
    }
  });
}

function formState() {
  const values = new URLSearchParams(new FormData(form));
  return values.toString();
}

function watchChanges() {
  const note = document.getElementById("unsaved-note");
  const initial = formState();
  let isSaving = false;
  const isChanged = () => "unsaved" in form.dataset || formState() !== initial;
  const show = () => (note.hidden = !isChanged());
  form.addEventListener("input", show);
  form.addEventListener("change", show);
  form.addEventListener("submit", (event) => {
    if (isSaving) return event.preventDefault(); // a double click
    isSaving = true;
    // The page may come back from the browser's cache.
    addEventListener("pageshow", () => (isSaving = false), { once: true });
  });
  addEventListener("beforeunload", (event) => {
    if (!isSaving && isChanged()) event.preventDefault();
  });
  show();
}

// Rich text moves the focus to its editor itself.
function focusFirstError() {
  const wrong = form.querySelector("[aria-invalid=true], fieldset.conflict");
  const target = wrong?.matches("fieldset") ? wrong.querySelector("input:checked, input") : wrong;
  (target ?? document.getElementById("form-errors"))?.focus();
}

function usesSingleKeys() {
  return localStorage.getItem(SINGLE_KEYS) !== "off";
}

function setUpShortcuts() {
  const button = document.getElementById("shortcuts-button");
  button.hidden = false;
  button.addEventListener("click", () => shortcuts.showModal());
  const choice = document.getElementById("single-keys");
  choice.checked = usesSingleKeys();
  choice.addEventListener("change", () => localStorage.setItem(SINGLE_KEYS, choice.checked ? "on" : "off"));
  const actions = {
    "?": () => shortcuts.showModal(),
    p: () => document.getElementById("previous-link")?.click(),
    n: () => document.getElementById("next-link")?.click(),
    b: () => document.getElementById("list-link")?.click(),
    e: () => form?.querySelector(".record-field :is(input:not([type=hidden]), select, textarea, [contenteditable])")?.focus(),
  };
  addEventListener("keydown", (event) => {
    const hasModifier = event.ctrlKey || event.metaKey;
    if (hasModifier && !event.altKey && event.key.toLowerCase() === "s") {
      event.preventDefault();
      form?.requestSubmit();
    }
    const isTyping = event.target.closest?.("input, select, textarea, [contenteditable]");
    const action = actions[event.key.toLowerCase()];
    if (!action || hasModifier || event.altKey || isTyping || document.querySelector("dialog[open]")) return;
    if (!usesSingleKeys()) return;
    event.preventDefault();
    action();
  });
}
