// Reference pickers: a text field that suggests records (the combobox pattern of WAI-ARIA).
//
// Without this script, `<input name="assigned_user" value="Anna" data-picker="/tables/user/options/">` takes a display
// value. The script moves the name to a hidden input that holds the id, so that equal display values do not matter.
// With data-multiple, it holds several ids, separated by commas, shown as removable tags. Typed text that was not chosen
// is sent as it is, so that the server explains what is wrong with it and nothing is lost.

const SUGGEST_DELAY_MS = 150;
let pickerCount = 0;

export function enhancePickers(root) {
  for (const input of root.querySelectorAll("input[data-picker]:not([role=combobox])")) new Picker(input);
}

// A picker for scripts. `items` are the chosen records ({id, label}); `onChange` gets the new ones. `find` returns the
// options for a text instead of the URL. An option with `next` is not a choice: it continues the search with that text.
export function createPicker({ url = "", label, items = [], isMultiple = false, find, onChange = () => {} }) {
  const input = document.createElement("input");
  Object.assign(input, { type: "text", autocomplete: "off" });
  input.setAttribute("aria-label", label);
  input.dataset.picker = url;
  input.dataset.items = JSON.stringify(items);
  if (isMultiple) input.dataset.multiple = "";
  const holder = document.createElement("span");
  holder.append(input);
  const picker = new Picker(input, find);
  picker.hidden.addEventListener("change", () => onChange(picker.items));
  return holder;
}

class Picker {
  constructor(input, find) {
    this.input = input;
    this.find = find;
    this.isMultiple = "multiple" in input.dataset;
    this.items = JSON.parse(input.dataset.items || "[]");
    this.options = [];
    this.activeIndex = -1;
    const refusedText = this.items.length || this.isMultiple ? "" : input.value;
    this.build();
    this.show();
    if (refusedText) this.input.value = this.hidden.value = refusedText;
  }

  build() {
    const id = `picker-${++pickerCount}`;
    this.box = document.createElement("span");
    this.box.className = "picker";
    this.input.replaceWith(this.box);
    this.hidden = Object.assign(document.createElement("input"), { type: "hidden", disabled: this.input.disabled });
    if (this.input.name) this.hidden.name = this.input.name;
    this.input.removeAttribute("name");
    this.hidden.setAttribute("form", this.input.getAttribute("form") || "");
    if (!this.input.getAttribute("form")) this.hidden.removeAttribute("form");
    this.tags = Object.assign(document.createElement("span"), { className: "picker-tags", hidden: !this.isMultiple });
    this.list = Object.assign(document.createElement("ul"), { id, className: "picker-options", hidden: true });
    this.list.setAttribute("role", "listbox");
    this.list.setAttribute("aria-label", "Suggestions");
    const attributes = { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": id };
    for (const [name, value] of Object.entries(attributes)) this.input.setAttribute(name, value);
    this.input.autocomplete = "off";
    this.box.append(this.tags, this.input, this.list, this.hidden);
    this.input.addEventListener("input", () => this.schedule());
    this.input.addEventListener("focus", () => this.input.select());
    this.input.addEventListener("click", () => this.list.hidden && this.suggest());
    this.input.addEventListener("keydown", (event) => this.handleKey(event));
    this.input.addEventListener("blur", () => this.leave());
    // Otherwise the field would lose the focus before the click.
    this.list.addEventListener("mousedown", (event) => event.preventDefault());
    this.list.addEventListener("click", (event) => {
      const option = event.target.closest("[role=option]");
      if (option) this.choose(this.options[[...this.list.children].indexOf(option)]);
    });
  }

  // Show the chosen records.
  show() {
    this.hidden.value = this.items.map((item) => item.id).join(",");
    this.input.value = this.isMultiple ? "" : (this.items[0]?.label ?? "");
    if (!this.isMultiple) return;
    this.tags.replaceChildren(
      ...this.items.map((item) => {
        const button = Object.assign(document.createElement("button"), { type: "button", className: "picker-tag" });
        button.textContent = `${item.label} ×`;
        button.setAttribute("aria-label", `Remove ${item.label}`);
        button.disabled = this.input.disabled;
        button.onclick = () => this.setItems(this.items.filter((other) => other !== item));
        return button;
      }),
    );
  }

  setItems(items) {
    this.items = items;
    this.show();
    this.close();
    this.hidden.dispatchEvent(new Event("change", { bubbles: true }));
  }

  choose(option) {
    if (!option) return;
    if (option.next) {
      this.input.value = option.next;
      return this.suggest(option.next.trim());
    }
    const others = this.isMultiple ? this.items.filter((item) => item.id !== option.id) : [];
    this.setItems([...others, option]);
  }

  schedule() {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.suggest(this.input.value.trim()), SUGGEST_DELAY_MS);
  }

  async suggest(text = "") {
    const request = (this.request = new AbortController());
    const options = await (this.find ? this.find(text) : this.fetchOptions(text, request.signal));
    if (!options || request !== this.request || document.activeElement !== this.input) return;
    this.options = options;
    this.showOptions();
  }

  async fetchOptions(text, signal) {
    const url = `${this.input.dataset.picker}?${new URLSearchParams({ q: text })}`;
    const response = await fetch(url, { headers: { Accept: "application/json" }, signal }).catch(() => null);
    return response?.ok ? (await response.json()).options : null;
  }

  showOptions() {
    this.list.replaceChildren(
      ...this.options.map((option, index) => {
        const row = Object.assign(document.createElement("li"), { id: `${this.list.id}-${index}`, textContent: option.label });
        row.setAttribute("role", "option");
        if (option.detail) row.append(Object.assign(document.createElement("span"), { className: "muted", textContent: ` ${option.detail}` }));
        return row;
      }),
    );
    if (!this.options.length) {
      const row = Object.assign(document.createElement("li"), { className: "muted", textContent: "No matches" });
      row.setAttribute("role", "option");
      row.setAttribute("aria-disabled", "true");
      this.list.append(row);
    }
    this.list.hidden = false;
    this.input.setAttribute("aria-expanded", "true");
    this.activate(this.input.value.trim() && this.options.length ? 0 : -1);
  }

  activate(index) {
    this.activeIndex = index;
    [...this.list.children].forEach((row, position) => row.setAttribute("aria-selected", String(position === index)));
    if (index < 0) return this.input.removeAttribute("aria-activedescendant");
    this.input.setAttribute("aria-activedescendant", this.list.children[index].id);
    this.list.children[index].scrollIntoView({ block: "nearest" });
  }

  handleKey(event) {
    const isOpen = !this.list.hidden;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!isOpen) return this.suggest();
      const count = this.options.length;
      const step = event.key === "ArrowDown" ? 1 : -1;
      if (count) this.activate((Math.max(this.activeIndex, step > 0 ? -1 : 0) + step + count) % count);
    } else if ((event.key === "Enter" || event.key === "Tab") && isOpen && this.activeIndex >= 0) {
      if (event.key === "Enter") event.preventDefault();
      this.choose(this.options[this.activeIndex]);
    } else if (event.key === "Escape" && isOpen) {
      event.stopPropagation();
      this.close();
      if (!this.isMultiple) this.show();
    } else if (event.key === "Backspace" && this.isMultiple && !this.input.value && this.items.length) {
      this.setItems(this.items.slice(0, -1));
    }
  }

  // An emptied field has no value.
  leave() {
    clearTimeout(this.timer);
    this.request?.abort();
    const text = this.input.value.trim();
    if (!this.isMultiple && !text && this.items.length) return this.setItems([]);
    const match = this.options.filter((option) => option.label === text);
    if (!this.list.hidden && match.length === 1 && match[0].id !== this.items[0]?.id) return this.choose(match[0]);
    this.close();
    if (!text || !this.hidden.name || (!this.isMultiple && text === this.items[0]?.label)) return this.show();
    const ids = this.isMultiple ? this.items.map((item) => item.id) : [];
    this.hidden.value = [...ids, text].join(",");
    this.hidden.dispatchEvent(new Event("change", { bubbles: true }));
  }

  close() {
    this.list.hidden = true;
    this.options = [];
    this.input.setAttribute("aria-expanded", "false");
    this.input.removeAttribute("aria-activedescendant");
  }
}
