// The designer: rows added in place, names derived from labels, controls that fit the type, and lists that are ordered by
// drag or keyboard. Without this script, buttons add rows, and choices and views are lines of text.

import { button, element, input } from "./elements.js";
import { Fields } from "./filter-fields.js";
import { createPicker } from "./picker.js";

const MAX_NAME_LENGTH = 63;
const form = document.getElementById("design-form");
const fields = form.dataset.table ? new Fields(form.dataset.table) : null;
const columnRows = form.querySelector("[data-rows=columns]");
// The page of rules for any table has no columns and no preview.
const typesByControl = columnRows ? JSON.parse(columnRows.dataset.typesByControl) : {};
const controlOf = (row, name) => row.querySelector(`[name$="-${name}"]`);
function focusOn(control) {
  for (let details = control.closest("details"); details; details = details.parentElement.closest("details")) details.open = true;
  control.focus();
}
const changed = (control) => control.dispatchEvent(new Event("input", { bubbles: true }));
document.body.classList.add("has-script");

// Names.
export function slugOf(label) {
  const plain = label.replaceAll("ß", "ss").normalize("NFKD").replace(/[^\x00-\x7f]/g, "").toLowerCase();
  return (plain.match(/[a-z0-9]+/g) ?? []).join("_").slice(0, MAX_NAME_LENGTH).replace(/_+$/, "");
}
function nameOf(label, prefix = "") {
  const slug = slugOf(label);
  return slug && ((prefix || (/^\d/.test(slug) ? "c_" : "")) + slug).slice(0, MAX_NAME_LENGTH).replace(/_+$/, "");
}
function deriveName(label, name, prefix) {
  if (!label || !name) return;
  let derived = name.value;
  if (derived && derived !== nameOf(label.value, prefix)) return;
  label.addEventListener("input", () => {
    if (name.value === derived) name.value = derived = nameOf(label.value, prefix);
  });
}
deriveName(form.elements["table-label"], form.elements["table-name"]);

// Rows.
let rowCount = 0;
function addRow(kind) {
  const template = form.querySelector(`template[data-row-template=${kind}]`);
  const holder = element("div");
  const number = () => `s${++rowCount}`;
  let free = number();
  while (form.querySelector(`[name="${kind}-row"][value="${free}"]`)) free = number();
  holder.innerHTML = template.innerHTML.replaceAll("__row__", free);
  const row = holder.firstElementChild;
  form.querySelector(`[data-rows=${kind}]`).append(row);
  prepareRow(row, kind);
  return row;
}
function prepareRow(row, kind) {
  row.querySelector("[data-remove]")?.addEventListener("click", () => {
    const next = row.nextElementSibling ?? row.previousElementSibling;
    row.remove();
    (next?.querySelector("input:not([type=hidden])") ?? form.querySelector("[data-add-type]"))?.focus();
    changed(form);
  });
  if (kind === "columns") prepareColumn(row);
  if (kind === "views") row.addEventListener("input", () => row.setAttribute("aria-label", `View ${controlOf(row, "name").value}`));
  if (kind === "automatic") prepareAutomaticValue(row);
  for (const text of row.querySelectorAll("textarea[data-sortable]")) new LineList(text);
  for (const text of row.querySelectorAll("textarea[data-view-columns]")) new LineList(text, true);
}

// Columns.
function typeOf(row) {
  return row.querySelector("[name$='-type']:checked, input[type=hidden][name$='-type']")?.value;
}
function showControls(row) {
  const type = typeOf(row);
  for (const part of row.querySelectorAll("[data-control]")) {
    const types = typesByControl[part.dataset.control];
    const control = part.querySelector("input, select, textarea");
    const isEmpty = control.type === "checkbox" ? !control.checked : !control.value;
    part.hidden = Boolean(types) && !types.includes(type) && isEmpty;
  }
  const card = row.querySelector("[name$='-type']:checked")?.closest(".type-card");
  if (!card) return;
  for (const part of row.querySelectorAll("[data-type-label]")) part.textContent = card.querySelector("strong").textContent;
  row.querySelector("[data-type-description]").textContent = card.querySelector(".small").textContent;
}
columnRows?.addEventListener("change", () => {
  for (const mark of columnRows.querySelectorAll("[data-mark]")) {
    const option = controlOf(mark.closest("[data-row]"), mark.dataset.mark);
    if (option) mark.hidden = !option.checked;
  }
});
// A picker in place of a select with many options.
const MAX_OPTIONS = 20;
function addPicker(select) {
  const options = [...select.options].filter(({ value }) => value).map(({ value, textContent }) => ({ id: value, label: textContent }));
  const find = async (text) => options.filter(({ label }) => label.toLowerCase().includes(text.toLowerCase())).slice(0, MAX_OPTIONS);
  const onChange = ([item]) => {
    select.value = item?.id ?? "";
    changed(select);
  };
  const items = options.filter(({ id }) => id === select.value);
  const picker = createPicker({ label: select.labels[0].textContent, items, find, onChange });
  const text = picker.querySelector("input");
  text.placeholder = select.options[0].textContent;
  text.id = select.id;
  select.removeAttribute("id");
  select.hidden = true;
  select.before(picker);
}
function prepareColumn(row) {
  const label = controlOf(row, "label");
  const target = controlOf(row, "reference_table");
  if (target) addPicker(target);
  deriveName(label, controlOf(row, "name"), columnRows.dataset.namePrefix);
  showControls(row);
  row.addEventListener("change", (event) => {
    if (event.target.name?.endsWith("-type")) showControls(row);
    if (event.target.name?.endsWith("-is_display") && event.target.checked)
      for (const other of columnRows.querySelectorAll("[name$='-is_display']")) other.checked = other === event.target;
  });
  row.addEventListener("input", () => {
    row.setAttribute("aria-label", label.value || "New column");
    const shownLabel = row.querySelector("[data-label]");
    if (shownLabel) shownLabel.textContent = label.value;
  });
  label.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    const next = row.nextElementSibling;
    if (next) focusOn(controlOf(next, "label"));
    else if (label.value.trim()) addColumn("string");
  });
}
function addColumn(type) {
  const row = addRow("columns");
  row.querySelector(`[name$='-type'][value=${type}]`).checked = true;
  showControls(row);
  controlOf(row, "label").focus();
  changed(form);
}
for (const card of form.querySelectorAll("[data-add-type]")) card.addEventListener("click", () => addColumn(card.dataset.addType));

// The columns as they were typed: name and label.
function typedColumns() {
  return [...columnRows.children]
    .map((row) => ({
      row,
      name: controlOf(row, "name")?.value ?? row.querySelector("[data-name]").textContent,
      label: controlOf(row, "label").value,
    }))
    .filter((column) => column.name && !controlOf(column.row, "delete")?.checked);
}

// Automatic values: the selects have the columns that were typed, and a choice column suggests its choices.
function prepareAutomaticValue(row) {
  const watched = controlOf(row, "watched");
  const value = controlOf(row, "value");
  const list = element("datalist", { id: `${value.id}-options` });
  value.after(list);
  value.setAttribute("list", list.id);
  for (const select of row.querySelectorAll("select[data-columns]")) {
    select.addEventListener("focus", () => fillSelect(select));
    fillSelect(select);
  }
  const suggest = () => {
    const column = typedColumns().find(({ name }) => name === watched.value);
    const lines = (column && controlOf(column.row, "choices")?.value.split("\n")) ?? [];
    const choices = typeOf(column?.row ?? row) === "choice" ? lines.filter((line) => line.trim()) : [];
    list.replaceChildren(
      ...choices.map((line) => {
        const [value, label] = line.includes(": ") ? line.split(": ") : [slugOf(line) || line, line];
        return element("option", { value: value.trim(), label: label.trim() });
      }),
    );
  };
  value.addEventListener("focus", suggest);
}
function fillSelect(select) {
  const chosen = select.value;
  const columns = typedColumns();
  if (chosen && !columns.some(({ name }) => name === chosen)) return;
  const options = columns.map(({ name, label }) => element("option", { value: name, textContent: label || name }));
  select.replaceChildren(select.options[0], ...options);
  select.value = chosen;
}

// The lines of a text as a list that is ordered by drag or by buttons. The columns of a view are chosen with a picker.
class LineList {
  constructor(text, isView = false) {
    this.text = text;
    this.isView = isView;
    this.labels = JSON.parse(text.closest("[data-labels]")?.dataset.labels || "{}");
    this.list = element("ol", { className: "column-choices line-list" });
    const holder = text.closest(".field");
    if (isView) this.buildView(holder);
    else holder.append(element("details", {}, element("summary", { textContent: "Order" }), this.list));
    this.list.addEventListener("dragstart", (event) => event.target.classList.add("dragged"));
    this.list.addEventListener("dragend", (event) => {
      event.target.classList.remove("dragged");
      this.write([...this.list.children].map((row) => row.dataset.line));
    });
    this.list.addEventListener("dragover", (event) => this.drag(event));
    text.addEventListener("input", () => this.show());
    if (isView) form.addEventListener("input", () => this.text.value.trim() || this.show());
    this.show();
  }

  buildView(holder) {
    const details = element("details", {}, element("summary", { textContent: "Edit as text" }));
    holder.after(this.list, this.tools(), details);
    details.append(holder);
  }

  tools() {
    const isWanted = () => true;
    const find = async (text) => {
      const typed = typedColumns().filter(({ label }) => label.toLowerCase().includes(text.toLowerCase()));
      const options = typed.map(({ name, label }) => ({ id: name, label: label || name }));
      const stored = fields ? await fields.suggest(text, isWanted) : [];
      return [...options, ...stored.filter((option) => !options.some(({ id }) => id === option.id))];
    };
    const onChange = ([item]) => {
      if (!item) return;
      this.labels[item.id] = item.label;
      if (!this.lines().includes(item.id)) this.write([...this.lines(), item.id]);
      picker.querySelector("input").value = "";
    };
    const picker = createPicker({ label: "Add a column to the view", find, onChange });
    picker.querySelector("input").placeholder = "Add a column";
    const heading = input({ label: "New heading", value: "", placeholder: "Add a heading", onChange: () => {} });
    const addHeading = () => {
      if (heading.value.trim()) this.write([...this.lines(), `# ${heading.value.trim()}`]);
      heading.value = "";
    };
    heading.addEventListener("keydown", (event) => {
      if (event.key !== "Enter") return;
      event.preventDefault();
      addHeading();
    });
    return element("div", { className: "view-tools" }, picker, heading, button("Add heading", addHeading, { className: "secondary small-button" }));
  }

  // An empty view shows all columns.
  lines() {
    const lines = this.text.value.split("\n").map((line) => line.trim()).filter(Boolean);
    return lines.length || !this.isView ? lines : typedColumns().map(({ name }) => name);
  }

  write(lines) {
    this.text.value = lines.join("\n");
    changed(this.text);
  }

  labelOf(line) {
    if (!this.isView) return line;
    if (line.startsWith("#")) return line.slice(1).trim() || "No heading";
    return typedColumns().find(({ name }) => name === line)?.label || this.labels[line] || line;
  }

  show() {
    const lines = this.lines();
    const isEditable = !this.text.disabled;
    this.list.hidden = !isEditable || (lines.length < 2 && !this.isView);
    const rows = lines.map((line, index) => {
      const label = this.labelOf(line);
      const move = (distance) => this.move(index, distance);
      const options = { className: "secondary" };
      const up = button("↑", () => move(-1), { ...options, disabled: !index, aria: { label: `Move ${label} up` } });
      const down = button("↓", () => move(1), { ...options, disabled: index === lines.length - 1, aria: { label: `Move ${label} down` } });
      const remove = button("×", () => this.write(lines.filter((_, other) => other !== index)), { ...options, aria: { label: `Remove ${label}` } });
      const text = element("span", { textContent: label, className: line.startsWith("#") && this.isView ? "line-heading" : "line-text" });
      const row = element("li", { draggable: true }, text, up, down, ...(this.isView ? [remove] : []));
      row.dataset.line = line;
      return row;
    });
    this.list.replaceChildren(...rows);
  }

  move(index, distance) {
    const lines = this.lines();
    const [line] = lines.splice(index, 1);
    lines.splice(index + distance, 0, line);
    this.write(lines);
    const buttons = this.list.children[index + distance].querySelectorAll("button");
    const wanted = buttons[distance < 0 ? 0 : 1];
    (wanted.disabled ? buttons[distance < 0 ? 1 : 0] : wanted).focus();
  }

  drag(event) {
    const dragged = this.list.querySelector(".dragged");
    const row = event.target.closest("li");
    if (!dragged || !row) return;
    event.preventDefault();
    if (row === dragged) return;
    const { top, height } = row.getBoundingClientRect();
    row[event.clientY < top + height / 2 ? "before" : "after"](dragged);
  }
}

for (const rows of form.querySelectorAll("[data-rows]"))
  for (const row of rows.children) prepareRow(row, rows.dataset.rows);
for (const add of form.querySelectorAll("[data-add-row]"))
  add.addEventListener("click", () => addRow(add.dataset.addRow).querySelector("select, input:not([type=hidden])").focus());
for (const add of form.querySelectorAll("[data-add-view]"))
  add.addEventListener("click", () => {
    const viewName = add.dataset.addView;
    const names = [...form.querySelector("[data-rows=views]").children].map((row) => controlOf(row, "name"));
    const existing = viewName && names.find(({ value }) => value === viewName);
    if (existing) return existing.focus();
    const name = controlOf(addRow("views"), "name");
    name.value = viewName;
    name.focus();
    changed(name);
  });

// The preview follows what was typed. The answer to an older request is dropped.
const preview = document.getElementById("preview");
let previewTimer;
let previewRequest;
async function showPreview() {
  if (!preview) return;
  previewRequest?.abort();
  const request = (previewRequest = new AbortController());
  const options = { method: "POST", body: new FormData(form), signal: request.signal };
  const response = await fetch(preview.dataset.url, options).catch(() => null);
  const text = response?.ok && !response.redirected ? await response.text().catch(() => "") : "";
  if (text && request === previewRequest) preview.innerHTML = text;
}
for (const type of ["input", "change"])
  form.addEventListener(type, () => {
    clearTimeout(previewTimer);
    previewTimer = setTimeout(showPreview, 400);
  });

// Unsaved changes, the focus, and the shortcut.
const note = document.getElementById("unsaved-note");
let isChanged = "unsaved" in form.dataset;
let isSaving = false;
note.hidden = !isChanged;
for (const type of ["input", "change"])
  form.addEventListener(type, () => {
    isChanged = true;
    note.hidden = false;
  });
form.addEventListener("submit", () => (isSaving = true));
addEventListener("pageshow", () => (isSaving = false));
addEventListener("beforeunload", (event) => {
  if (isChanged && !isSaving) event.preventDefault();
});
addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || event.key.toLowerCase() !== "s") return;
  event.preventDefault();
  form.requestSubmit(document.getElementById("design-save"));
});
const wrong = form.querySelector(".field:has(.errors) :is(input, select, textarea)") ?? form.querySelector("[data-focus]");
if (wrong) focusOn(wrong);
else if (!form.dataset.table) form.elements["table-label"]?.focus();
