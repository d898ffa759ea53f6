// The record form: pickers, JSON checks, unsaved changes, shortcuts, and the focus after a refused save.
// Without this script, the form works with its plain controls.

import { enhancePickers } from "./picker.js";

const SINGLE_KEYS = "servicebase-single-keys";

const form = document.querySelector("[data-record-form]");
const shortcuts = document.getElementById("shortcuts");

setUpListOrder();
if (form) {
  enhancePickers(form);
  for (const control of form.querySelectorAll("[data-control=json]")) checkJson(control);
  watchChanges();
  focusFirstError();
}
setUpShortcuts();

// The order of the list from which the record was opened, which a change of this record does not alter. A record that was
// opened elsewhere has the links of the server, until it is no longer in the list.
function setUpListOrder() {
  if (!new URLSearchParams(location.search).has("list")) return;
  const idOf = (url) => new URL(url, location.href).pathname.split("/")[3];
  const sys_id = idOf(location.href);
  const stored = JSON.parse(sessionStorage.getItem("servicebase-list") ?? "null");
  const place = stored?.rows.findIndex((row) => row.id === sys_id) ?? -1;
  const links = ["previous-link", "next-link"].map((id) => document.getElementById(id)?.href);
  if ((place < 0 || stored.isPart) && links.some(Boolean)) {
    const rows = [links[0], location.href, links[1]].filter(Boolean).map((url) => ({ id: idOf(url), url }));
    return sessionStorage.setItem("servicebase-list", JSON.stringify({ rows, isPart: true }));
  }
  if (place < 0) return;
  let before = document.getElementById("list-link");
  for (const [id, text, row] of [["previous-link", "Previous", stored.rows[place - 1]], ["next-link", "Next", stored.rows[place + 1]]]) {
    let link = document.getElementById(id);
    if (!row) {
      link?.remove();
      continue;
    }
    if (!link && before) {
      link = Object.assign(document.createElement("a"), { id, className: before.className, textContent: text });
      before.after(link);
    }
    if (link) link.href = row.url;
    before = link ?? before;
  }
  if (stored.isPart) return;
  const count = Object.assign(document.createElement("span"), { className: "muted small", textContent: `${place + 1} of ${stored.rows.length}${stored.hasMore ? "+" : ""}` });
  document.getElementById("list-link")?.before(count);
}

// A comment that was typed but not added is added together with the record.
function typedComment() {
  const text = document.getElementById("comment-text");
  return text?.value.trim() ? text : null;
}

async function addTypedComment() {
  const text = typedComment();
  if (!text) return true;
  const response = await fetch(text.form.action, { method: "POST", body: new FormData(text.form) }).catch(() => null);
  if (!response?.ok) {
    text.setCustomValidity("The comment could not be added. Add it before you save.");
    text.reportValidity();
    text.addEventListener("input", () => text.setCustomValidity(""), { once: true });
    return false;
  }
  text.value = "";
  return true;
}

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
  const isChanged = () => "unsaved" in form.dataset || formState() !== initial || Boolean(typedComment());
  const show = () => (note.hidden = !isChanged());
  form.addEventListener("input", show);
  form.addEventListener("change", show);
  form.addEventListener("submit", (event) => {
    if (isSaving) return event.preventDefault(); // a double click
    if (typedComment()) {
      const button = event.submitter;
      event.preventDefault();
      addTypedComment().then((isAdded) => isAdded && form.requestSubmit(button));
      return;
    }
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
  const isNew = location.pathname.endsWith("/new/") && !document.getElementById("form-errors");
  if (isNew) return focusFirstField();
  const wrong = form.querySelector("[aria-invalid=true], fieldset.conflict");
  const target = wrong?.matches("fieldset") ? wrong.querySelector("input:checked, input") : wrong;
  (target ?? document.getElementById("form-errors"))?.focus();
}

function focusFirstField() {
  form?.querySelector(".record-field :is(input:not([type=hidden]), select, textarea, [contenteditable])")?.focus();
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
    e: focusFirstField,
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
