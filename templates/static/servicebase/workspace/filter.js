// The condition builder of a list. It edits the tree of the query and submits its text in a plain form, which also works
// without this script. The terms of a group are joined by "and"; the factors of a term, and groups, by "or".
import { button, element, select } from "./elements.js";
import { Fields } from "./filter-fields.js";
import { findChoice, operatorChoices, usualChoice } from "./filter-operators.js";
import { initialValue, valueControls } from "./filter-values.js";
import { toText, withoutEmptyParts } from "./query-text.js";

const MAX_DEPTH = 20;
const newCondition = () => ({ path: "", operator: "=", value: "" });
const newTerm = () => [newCondition()];

export class ConditionBuilder {
  constructor(details) {
    const data = JSON.parse(document.getElementById("filter-data").textContent);
    this.data = data;
    this.form = details.querySelector("form");
    this.conditionsBox = details.querySelector(".filter-conditions");
    this.textBox = details.querySelector(".filter-text");
    this.textInput = this.textBox.querySelector("input");
    this.modeButton = details.querySelector("[data-mode]");
    this.fields = new Fields(data.table);
    this.groups = data.tree?.groups ?? [];
    this.order = data.tree?.order ?? [];
    this.rows = new Map();
    this.modeButton.onclick = () => this.setMode(!this.isText, true);
    details.querySelector("[data-clear]").onclick = () => this.clear();
    this.form.addEventListener("submit", (event) => this.submit(event));
    if (!data.tree) return; // The text is invalid, and can only be corrected as text.
    for (const control of details.querySelectorAll("[data-mode], [data-clear]")) control.hidden = false;
    details.addEventListener("toggle", () => details.open && !this.isStarted && this.start(true));
    if (details.open || "open" in details.dataset) this.start(false);
  }

  async start(hasFocus) {
    this.isStarted = true;
    this.setMode(false, false);
    if (!this.groups.length) this.groups.push([newTerm()]);
    await this.render();
    if (hasFocus) this.controlsOf(this.rows.values().next().value)[0]?.focus();
  }

  setMode(isText, hasFocus) {
    this.isText = isText;
    this.textBox.hidden = !isText;
    this.conditionsBox.hidden = isText;
    this.modeButton.textContent = isText ? "Edit as conditions" : "Edit as text";
    if (isText) this.textInput.value = this.text();
    if (hasFocus) (isText ? this.textInput : this.controlsOf(this.conditionsBox)[0])?.focus();
  }

  text() {
    return toText({ groups: withoutEmptyParts(this.groups), order: this.order }, this.data.spellings);
  }

  clear() {
    this.groups = [];
    this.textInput.value = this.text();
    this.isText = true; // so that the text is submitted as it is
    this.form.requestSubmit();
  }

  submit(event) {
    if (this.isText || !this.isStarted) return;
    for (const [condition, row] of this.rows) {
      row.querySelector(".errors")?.remove();
      const problem = this.problemOf(condition, row);
      if (!problem) continue;
      event.preventDefault();
      row.append(element("p", { className: "errors", role: "alert", textContent: problem.message }));
      return this.controlsOf(problem.box)[0]?.focus();
    }
    this.textInput.value = this.text();
  }

  // Rows without a field are left out, but a text there is perhaps the beginning of one.
  problemOf(condition, row) {
    const [fieldBox, , valueBox] = row.children;
    const fieldText = this.controlsOf(fieldBox)[0].value.trim();
    if (!condition.path) return fieldText && { message: "Choose a field of the list.", box: fieldBox };
    return !condition.value && !condition.isComplete?.() && { message: "Enter a value.", box: valueBox };
  }

  controlsOf(box) {
    return box ? [...box.querySelectorAll("input:not([type=hidden]), select, button")] : [];
  }

  // Build everything again after the structure changed, then focus the row of this condition.
  async render(condition) {
    const before = this.rows;
    this.rows = new Map();
    const content = await this.groupElements(this.groups, 0, before);
    this.conditionsBox.replaceChildren(...content);
    [...this.rows.values()].forEach((row, index) => row.setAttribute("aria-label", `Condition ${index + 1}`));
    if (condition) this.controlsOf(this.rows.get(condition))[0]?.focus();
  }

  async groupElements(groups, depth, before) {
    const elements = [];
    for (const [index, group] of groups.entries()) {
      const box = element("fieldset", { className: "filter-group" });
      box.append(element("legend", { textContent: index ? "or all of these" : "All of these" }));
      for (const term of group) box.append(await this.termElement(groups, group, term, depth, before));
      box.append(this.groupButtons(groups, group, depth));
      elements.push(box);
    }
    const addGroup = () => {
      const term = newTerm();
      groups.push([term]);
      return this.render(term[0]);
    };
    elements.push(button("Add group (or)", addGroup, { className: "text-button" }));
    return elements;
  }

  groupButtons(groups, group, depth) {
    const add = () => {
      const term = newTerm();
      group.push(term);
      return this.render(term[0]);
    };
    const addNested = () => {
      const term = newTerm();
      group.push([{ groups: [[term]] }]);
      return this.render(term[0]);
    };
    const buttons = element("p", { className: "filter-buttons" }, button("Add condition", add, { className: "text-button" }));
    if (depth < MAX_DEPTH) buttons.append(button("Add group (and)", addNested, { className: "text-button" }));
    return buttons;
  }

  async termElement(groups, group, term, depth, before) {
    const box = element("div", { className: "filter-term" });
    for (const [index, factor] of term.entries()) {
      if (index) box.append(element("span", { className: "filter-or", textContent: "or" }));
      const actions = this.factorActions(term, factor);
      if (factor.groups) {
        const heading = element("div", { className: "filter-row" }, element("span", { className: "label", textContent: "Group" }), actions);
        const nested = await this.groupElements(factor.groups, depth + 1, before);
        box.append(element("div", { className: "filter-nested", role: "group", aria: { label: "Group" } }, heading, ...nested));
      } else {
        const row = before.get(factor) ?? (await this.createRow(factor));
        row.querySelector(".filter-actions")?.remove();
        row.append(actions);
        this.rows.set(factor, row);
        box.append(row);
      }
    }
    return box;
  }

  factorActions(term, factor) {
    const addAlternative = () => {
      const condition = newCondition();
      term.splice(term.indexOf(factor) + 1, 0, condition);
      return this.render(condition);
    };
    const what = factor.groups ? "group" : "condition";
    return element(
      "span", { className: "filter-actions" },
      button("or", addAlternative, { className: "secondary", title: "Add an alternative", aria: { label: `or: add an alternative to this ${what}` } }),
      button("×", () => this.remove(term, factor), { className: "danger", title: "Remove", aria: { label: `Remove this ${what}` } }),
    );
  }

  // Focus the row that takes the place of the removed one.
  async remove(term, factor) {
    const position = [...this.rows.keys()].indexOf(factor);
    term.splice(term.indexOf(factor), 1);
    prune(this.groups);
    if (!this.groups.length) this.groups.push([newTerm()]);
    await this.render();
    const conditions = [...this.rows.keys()];
    const next = conditions[Math.min(Math.max(position, 0), conditions.length - 1)];
    this.controlsOf(this.rows.get(next))[0]?.focus();
  }

  async createRow(condition) {
    const row = element("div", { className: "filter-row", role: "group" });
    const operatorBox = element("span", { className: "filter-operator" });
    const valueBox = element("span", { className: "filter-value" });
    const changeField = async (path) => {
      condition.path = path;
      await this.showOperators(condition, operatorBox, valueBox, true);
    };
    const picker = await this.fields.createPicker({ label: "Field", path: condition.path, onChange: changeField });
    picker.className = "filter-field";
    picker.querySelector("input").placeholder = "Choose a field";
    row.append(picker, operatorBox, valueBox);
    await this.showOperators(condition, operatorBox, valueBox, false);
    return row;
  }

  async showOperators(condition, operatorBox, valueBox, isNewField) {
    const field = condition.path ? await this.fields.find(condition.path) : null;
    const choices = field ? operatorChoices(field) : [];
    let choice = findChoice(choices, condition);
    if (isNewField && field) {
      choice = usualChoice(choices, field);
      setChoice(condition, choice, field);
    }
    const showValue = () => this.showValue(condition, choice, field, valueBox);
    const options = choices.map(({ key, label, isCommon }) => ({ value: key, label, isCommon }));
    if (!choice && condition.path) options.unshift({ value: "", label: condition.operator, isCommon: true });
    const onChange = (key) => {
      const previous = choice;
      choice = choices.find((candidate) => candidate.key === key) ?? null;
      if (choice) setChoice(condition, choice, field, previous);
      return showValue();
    };
    const [common, more] = [true, false].map((isCommon) => options.filter((option) => option.isCommon === isCommon));
    const control = select({ label: "Operator", options: common, groups: more.length ? { More: more } : {}, value: choice?.key ?? "", onChange });
    operatorBox.replaceChildren(...(condition.path ? [control] : []));
    await showValue();
  }

  async showValue(condition, choice, field, valueBox) {
    condition.isComplete = () => choice?.kind === "none";
    const setValue = (value) => {
      condition.value = value;
    };
    const { labels, timeZone } = this.data;
    const context = { choice, field, value: condition.value, setValue, labels, timeZone, fields: this.fields };
    const hasValue = condition.path && (choice || condition.value);
    valueBox.replaceChildren(...(hasValue ? await valueControls(context) : []));
  }
}

// Keep a value that the new operator takes too, such as that of "is" for "is not" or "is one of".
function setChoice(condition, choice, field, previous) {
  const kinds = [previous?.kind, choice.kind];
  const isKept = kinds[0] === kinds[1] || (kinds.every((kind) => ["text", "list"].includes(kind)) && !condition.value.includes(","));
  condition.operator = choice.operator;
  if (!isKept || choice.fixed || choice.direction || !condition.value) condition.value = initialValue(choice, field);
}

// Remove terms, groups and parentheses that are empty.
function prune(groups) {
  for (const group of [...groups]) {
    for (const term of [...group]) {
      for (const factor of [...term]) {
        if (!factor.groups) continue;
        prune(factor.groups);
        if (!factor.groups.length) term.splice(term.indexOf(factor), 1);
      }
      if (!term.length) group.splice(group.indexOf(term), 1);
    }
    if (!group.length) groups.splice(groups.indexOf(group), 1);
  }
}

for (const details of document.querySelectorAll("details[data-filter]")) new ConditionBuilder(details);
