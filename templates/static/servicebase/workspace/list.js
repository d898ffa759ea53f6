// The list page: menus, copying, columns (dialog, drag, widths), selection, and editing cells in place.
// Without this script, everything but widths and cells works with links and forms.
import { enhancePickers } from "./picker.js";

const MIN_WIDTH = 48;
const MAX_WIDTH = 1200;
const WIDTH_STEP = 16;
const csrfToken = document.querySelector("meta[name=csrf-token]").content;
const records = document.getElementById("records");

// Menus: one is open at a time; Escape or a click elsewhere closes it.
function closeMenus(except) {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (menu !== except) menu.open = false;
}
document.addEventListener("click", (event) => closeMenus(event.target.closest("details.menu")));
document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && event.target.closest("details.menu[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = !navigator.clipboard; // missing without https
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
    button.textContent = "Copied";
  });
}

// The columns dialog.
const columnsDialog = document.getElementById("columns-dialog");
document.addEventListener("htmx:afterSwap", (event) => {
  if (event.detail.target === columnsDialog) prepareColumns();
  if (event.detail.target === editedCell && editedCell?.isConnected) prepareCell(editedCell);
  focusReplacement();
  prepareRows();
});

let focusAfterSwap = "";
function prepareColumns() {
  if (columnsDialog.showModal && !columnsDialog.open) columnsDialog.showModal();
  const button = document.getElementById(focusAfterSwap);
  if (button && !button.disabled) button.focus();
  else button?.closest("li").querySelector("input").focus();
  focusAfterSwap = "";
}
columnsDialog?.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.id) focusAfterSwap = button.id;
  if (button?.value === "add") focusAfterSwap = "new-path";
  if (event.target.closest("[data-close]") && columnsDialog.close) {
    event.preventDefault();
    columnsDialog.close();
  }
});
columnsDialog?.addEventListener("dragstart", (event) => {
  event.dataTransfer.effectAllowed = "move";
  event.target.classList.add("dragged");
});
columnsDialog?.addEventListener("dragend", (event) => event.target.classList.remove("dragged"));
columnsDialog?.addEventListener("dragover", (event) => {
  const dragged = columnsDialog.querySelector(".dragged");
  const row = event.target.closest("li");
  if (!dragged || !row) return;
  event.preventDefault();
  if (row === dragged) return;
  const { top, height } = row.getBoundingClientRect();
  row[event.clientY < top + height / 2 ? "before" : "after"](dragged);
});

// Selection.
let lastBox = null;
function boxes() {
  return [...records.querySelectorAll("input[name=record-id]")];
}
function showSelection() {
  const count = boxes().filter((box) => box.checked).length;
  const text = document.getElementById("selected-count");
  if (!text) return;
  text.textContent = count ? `${count} selected` : "";
  for (const button of document.querySelectorAll("#bulk button[name=bulk-step]")) button.disabled = !count;
  const all = document.getElementById("select-all");
  all.checked = count > 0 && count === boxes().length;
  all.indeterminate = count > 0 && !all.checked;
}
function prepareSelection() {
  const head = document.getElementById("select-column");
  if (!head) return;
  const all = Object.assign(document.createElement("input"), { type: "checkbox", id: "select-all" });
  all.setAttribute("aria-label", "Select all records on this page");
  all.addEventListener("change", () => {
    for (const box of boxes()) box.checked = all.checked;
    showSelection();
  });
  head.replaceChildren(all);
  records.tBodies[0].addEventListener("click", (event) => {
    if (event.target.name !== "record-id") return;
    const all = boxes();
    if (event.shiftKey && lastBox) {
      const [from, to] = [all.indexOf(lastBox), all.indexOf(event.target)].sort((a, b) => a - b);
      for (const box of all.slice(from, to + 1)) box.checked = event.target.checked;
    }
    lastBox = event.target;
    showSelection();
  });
  showSelection();
}

// Widths: drag the border of a header, or focus it and press the arrow keys.
function headers() {
  return [...records.querySelectorAll("th[data-path]")];
}
function colOf(header) {
  return records.querySelectorAll("col")[header.cellIndex];
}
function freezeWidths() {
  if (records.classList.contains("fixed")) return;
  const widths = headers().map((header) => Math.round(header.getBoundingClientRect().width));
  headers().forEach((header, index) => (colOf(header).width = widths[index]));
  records.classList.add("fixed");
}
function setWidth(header, width) {
  freezeWidths();
  colOf(header).width = Math.min(MAX_WIDTH, Math.max(MIN_WIDTH, Math.round(width)));
  records.width = [...records.querySelectorAll("col")].reduce((sum, col) => sum + Number(col.width), 0);
  header.querySelector(".resizer").setAttribute("aria-valuenow", colOf(header).width);
}
let saveTimer;
function saveWidths() {
  clearTimeout(saveTimer);
  saveTimer = setTimeout(() => {
    const body = new URLSearchParams({ step: "widths" });
    for (const header of headers()) {
      body.append("path", header.dataset.path);
      body.append("width", colOf(header).width);
    }
    fetch(`/tables/${records.dataset.table}/columns/`, { method: "POST", body, headers: { "X-CSRFToken": csrfToken } });
  }, 400);
}
function prepareWidths() {
  for (const header of headers()) {
    const resizer = Object.assign(document.createElement("span"), { className: "resizer", tabIndex: 0 });
    const width = Math.round(header.getBoundingClientRect().width);
    const attributes = { role: "separator", "aria-orientation": "vertical", "aria-valuenow": width };
    Object.assign(attributes, { "aria-valuemin": MIN_WIDTH, "aria-valuemax": MAX_WIDTH });
    for (const [name, value] of Object.entries(attributes)) resizer.setAttribute(name, value);
    resizer.setAttribute("aria-label", `Width of ${header.innerText.trim()}`);
    header.append(resizer);
    resizer.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      resizer.setPointerCapture(event.pointerId);
      const start = event.clientX - header.getBoundingClientRect().width;
      resizer.onpointermove = (move) => setWidth(header, move.clientX - start);
      resizer.onpointerup = resizer.onpointercancel = () => {
        resizer.onpointermove = null;
        saveWidths();
      };
    });
    resizer.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -WIDTH_STEP, ArrowRight: WIDTH_STEP }[event.key];
      if (!step) return;
      event.preventDefault();
      setWidth(header, header.getBoundingClientRect().width + step);
      saveWidths();
    });
  }
}

// Editing in place. One cell can be reached with Tab; arrow keys move to the others.
let editedCell = null;
function headerOf(cell) {
  return records.tHead.rows[0].cells[cell.cellIndex];
}
function isEditable(cell) {
  return cell?.tagName === "TD" && "editable" in headerOf(cell).dataset && Boolean(cell.parentElement.dataset.id);
}
function prepareRows() {
  if (!records || records.querySelector("td[tabindex='0']")) return;
  const row = records.tBodies[0].rows[0];
  const cell = row && [...row.cells].find(isEditable);
  if (cell) cell.tabIndex = 0;
}
function focusCell(cell) {
  if (!cell || cell.classList.contains("select") || cell.colSpan > 1) return;
  for (const other of records.querySelectorAll("td[tabindex]")) other.removeAttribute("tabindex");
  cell.tabIndex = 0;
  cell.focus();
}
// What was typed is saved when the cell is left; Escape cancels.
function cellState(form) {
  return new URLSearchParams(new FormData(form)).toString();
}
function saveChangedCell(form) {
  if (form.dataset.initial === cellState(form)) return false;
  form.requestSubmit();
  return true;
}
function editCell(cell) {
  if (!isEditable(cell) || cell === editedCell) return;
  cancelEdit();
  editedCell = cell;
  cell.previousNodes = [...cell.childNodes];
  const header = headerOf(cell);
  const parameters = new URLSearchParams({ list: records.dataset.list });
  if ("link" in header.dataset) parameters.set("link", "1");
  const path = `/tables/${records.dataset.table}/${cell.parentElement.dataset.id}/cell/${header.dataset.path}/`;
  window.htmx.ajax("GET", `${path}?${parameters}`, { target: cell, swap: "innerHTML" });
}
function prepareCell(cell) {
  const form = cell.querySelector(".cell-form");
  if (!form) return;
  enhancePickers(form);
  // After a refused save, the form has what was typed.
  if (!form.querySelector(".errors, .notice")) form.dataset.initial = cellState(form);
  form.addEventListener("focusout", (event) => {
    const isLeft = event.relatedTarget && !form.contains(event.relatedTarget);
    if (isLeft && cell === editedCell && form.dataset.initial) saveChangedCell(form);
  });
  const control = form.querySelector("input:not([type=hidden]), select, textarea");
  control?.focus();
  if (control?.type === "text") control.select();
}
// A saved cell is replaced by a new one, which gets the focus.
let replacedCell = null;
document.addEventListener("htmx:beforeSwap", () => {
  replacedCell = editedCell && { row: editedCell.parentElement, index: editedCell.cellIndex };
});
function focusReplacement() {
  if (!editedCell || editedCell.isConnected || !replacedCell) return;
  editedCell = null;
  focusCell(replacedCell.row.cells[replacedCell.index]);
}
function cancelEdit() {
  const cell = editedCell;
  if (!cell) return;
  editedCell = null;
  cell.replaceChildren(...cell.previousNodes);
  focusCell(cell);
}
// The form of a record goes through the list in this order, even if the record moves in the list after a change.
function rememberOrder(event) {
  if (!event.target.closest("tr[data-id] a")) return;
  const rows = [...records.tBodies[0].querySelectorAll("tr[data-id]")]
    .map((row) => ({ id: row.dataset.id, url: row.querySelector(`a[href*="/${row.dataset.id}/"]`)?.getAttribute("href") }))
    .filter((row) => row.id && row.url);
  const hasMore = Boolean(records.querySelector("tr.more"));
  sessionStorage.setItem("servicebase-list", JSON.stringify({ rows, hasMore }));
}

function prepareEditing() {
  records.addEventListener("click", rememberOrder);
  records.addEventListener("dblclick", (event) => {
    if (!event.target.closest("a, form, th")) editCell(event.target.closest("td"));
  });
  records.addEventListener("click", (event) => {
    if (event.target.closest("[data-cancel]")) {
      const isConflict = event.target.textContent.startsWith("Keep");
      cancelEdit();
      if (isConflict) location.reload();
    }
  });
  records.addEventListener("keydown", (event) => {
    if (event.target.closest(".cell-form")) {
      if (event.key === "Escape") cancelEdit();
      if (event.key === "Enter" && event.target.tagName === "SELECT") {
        event.preventDefault();
        event.target.form.requestSubmit();
      }
      if (event.key === "Enter" && event.ctrlKey && event.target.tagName === "TEXTAREA") event.target.form.requestSubmit();
      return;
    }
    const cell = event.target;
    if (cell.tagName !== "TD") return;
    if (event.key === "Enter" || event.key === "F2") {
      event.preventDefault();
      if (isEditable(cell)) editCell(cell);
      else cell.querySelector("a")?.click();
      return;
    }
    const rows = [...records.tBodies[0].rows];
    const row = rows.indexOf(cell.parentElement);
    const next = {
      ArrowLeft: cell.previousElementSibling,
      ArrowRight: cell.nextElementSibling,
      ArrowUp: rows[row - 1]?.cells[cell.cellIndex],
      ArrowDown: rows[row + 1]?.cells[cell.cellIndex],
    };
    if (!(event.key in next)) return;
    event.preventDefault();
    focusCell(next[event.key]);
  });
}

if (records) {
  prepareSelection();
  prepareWidths();
  prepareRows();
  prepareEditing();
  const box = records.closest(".list-scroll");
  const hint = document.querySelector(".scroll-hint");
  const showHint = () => (hint.hidden = box.scrollWidth <= box.clientWidth + 1);
  new ResizeObserver(showHint).observe(box);
  showHint();
  document.querySelector(".edit-hint").hidden = !records.querySelector("th[data-editable]");
}
if (!records || !columnsDialog?.showModal) enhancePickers(document);
