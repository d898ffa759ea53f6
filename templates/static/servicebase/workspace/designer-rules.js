// The matrix of access rules in the designer: roles and columns are added in place. Rows are copies of the first ones.
// The condition builder of lists edits the condition of a rule in a dialog.
import { element } from "./elements.js";
import { ConditionBuilder } from "./filter.js";

const form = document.getElementById("design-form");
const groups = form.querySelector("[data-rule-groups]");
const roleSelect = document.getElementById("rules-add-role");
const newRole = document.getElementById("rules-new-role");
const columnSelect = document.getElementById("rules-add-column");
const changed = () => form.dispatchEvent(new Event("input", { bubbles: true }));

// Write the keys and names of the cells of a row for its column and role.
function nameCells(row, column, label) {
  for (const box of row.querySelectorAll("[name=rules-cell]")) {
    const [operation] = box.value.split(":");
    box.value = `${operation}:${column}:${row.dataset.role}`;
    box.setAttribute("aria-label", `${row.querySelector("th span").textContent}: ${operation} ${label}`);
  }
}

function blankCopy(part) {
  const copy = part.cloneNode(true);
  for (const hidden of copy.querySelectorAll("[type=hidden]")) hidden.remove();
  for (const cell of copy.querySelectorAll("td[id]")) cell.removeAttribute("id");
  for (const box of copy.querySelectorAll("[name=rules-cell]")) box.checked = box.defaultChecked = false;
  return copy;
}

// The rules with conditions can have a new role too.
function offerNewRole(role, name) {
  const template = form.querySelector("template[data-row-template=rules]").content;
  for (const list of [template, ...form.querySelectorAll("[data-rows=rules] > [data-row]")]) {
    const option = list.querySelector(".rule-roles label:has(input)").parentElement;
    const copy = option.cloneNode(true);
    const box = copy.querySelector("input");
    box.value = role;
    box.removeAttribute("id");
    box.checked = box.defaultChecked = false;
    copy.querySelector("label").removeAttribute("for");
    copy.querySelector("label").replaceChildren(box, ` ${name}`);
    option.parentElement.append(copy);
  }
}

function addRole(role, name) {
  const existing = [...groups.querySelectorAll("tr[data-role]")].find((row) => row.querySelector("th span").textContent === name);
  if (!existing)
    for (const [index, group] of [...groups.children].entries()) {
      const row = blankCopy(group.querySelector("tbody tr"));
      row.dataset.role = role;
      row.querySelector("th span").textContent = name;
      if (!index) row.querySelector("th").prepend(element("input", { type: "hidden", name: "rules-role", value: role }));
      group.querySelector("tbody").append(row);
      nameCells(row, group.dataset.ruleGroup, group.querySelector("caption").textContent.toLowerCase());
    }
  if (!existing && role.startsWith("new:")) offerNewRole(role, name);
  (existing ?? groups.querySelector("tbody tr:last-child")).querySelector("[name=rules-cell]").focus();
  changed();
}

function addNewRole() {
  const name = newRole.value.trim();
  if (!name) return newRole.focus();
  const option = [...roleSelect.options].find((candidate) => candidate.value && candidate.textContent === name);
  newRole.value = "";
  addRole(option?.value ?? `new:${name}`, name);
  option?.remove();
}

function addColumn(column, label) {
  const group = blankCopy(groups.firstElementChild);
  group.dataset.ruleGroup = column;
  group.querySelector("caption").textContent = label;
  group.prepend(element("input", { type: "hidden", name: "rules-column", value: column }));
  for (const row of group.querySelectorAll("tbody tr")) nameCells(row, column, label);
  groups.append(group);
  group.querySelector("[name=rules-cell]").focus();
  changed();
}

// What is chosen in these selects is added at once, and no longer offered.
function onChoice(select, add) {
  select.addEventListener("change", () => {
    const option = select.selectedOptions[0];
    if (!option?.value) return;
    option.remove();
    select.value = "";
    add(option.value, option.textContent);
  });
}
onChoice(roleSelect, addRole);
onChoice(columnSelect, addColumn);
form.querySelector("[data-add-new-role]").addEventListener("click", addNewRole);
newRole.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing) return;
  event.preventDefault();
  addNewRole();
});

// The columns that were typed on this page can have rules too.
form.addEventListener("focusin", ({ target }) => {
  if (!target.matches?.("[data-rule-columns]")) return;
  const known = new Set([...target.options].map((option) => option.value));
  if (target === columnSelect) for (const group of groups.children) known.add(group.dataset.ruleGroup);
  for (const row of form.querySelector("[data-rows=columns]")?.children ?? []) {
    const name = row.querySelector("[name$='-name']")?.value ?? row.querySelector("[data-name]").textContent;
    const label = row.querySelector("[name$='-label']").value;
    if (name && !known.has(name)) target.append(element("option", { value: name, textContent: label || name }));
  }
});

// The condition builder.
const dialog = document.querySelector(".condition-dialog");
form.addEventListener("click", async ({ target }) => {
  const opener = target.closest("[data-build-condition]");
  if (!opener) return;
  const row = opener.closest("[data-row]");
  const condition = row.querySelector("[data-condition]");
  const url = `${opener.dataset.url}?${new URLSearchParams({ query: condition.value })}`;
  const response = await fetch(url).catch(() => null);
  if (!response?.ok || response.redirected) return condition.focus();
  const holder = dialog.querySelector("[data-builder]");
  holder.innerHTML = await response.text();
  const builder = new ConditionBuilder(holder.querySelector("[data-filter]"));
  const cancel = () => dialog.close();
  holder.querySelector("[data-cancel]").addEventListener("click", cancel);
  builder.form.addEventListener("submit", (event) => {
    if (event.defaultPrevented) return;
    event.preventDefault();
    condition.value = builder.textInput.value;
    row.querySelector("[data-words]").textContent = "";
    condition.dispatchEvent(new Event("input", { bubbles: true }));
    dialog.close();
  });
  dialog.onclose = () => {
    holder.replaceChildren();
    opener.focus();
  };
  dialog.showModal();
});
