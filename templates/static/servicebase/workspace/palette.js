// Ctrl K or ⌘ K opens a search of tables, records, collections and pages of the administration.
"use strict";
{
  const SEARCH_DELAY_MS = 120;
  let palette = null;

  document.addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() !== "k" || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
    event.preventDefault();
    openPalette();
  });
  for (const link of document.querySelectorAll("[data-palette]")) {
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      openPalette();
    });
  }

  function openPalette() {
    palette ??= new Palette();
    palette.open();
  }

  class Palette {
    constructor() {
      this.dialog = document.createElement("dialog");
      this.dialog.className = "palette";
      this.dialog.setAttribute("aria-label", "Search");
      this.input = Object.assign(document.createElement("input"), { type: "text", placeholder: "Table, number or name", maxLength: 200 });
      const attributes = { role: "combobox", "aria-label": "Search", "aria-expanded": "true", "aria-controls": "palette-results", "aria-autocomplete": "list" };
      for (const [name, value] of Object.entries(attributes)) this.input.setAttribute(name, value);
      this.results = Object.assign(document.createElement("div"), { id: "palette-results" });
      this.results.setAttribute("role", "listbox");
      this.results.setAttribute("aria-label", "Results");
      this.hint = Object.assign(document.createElement("p"), { className: "muted small", textContent: "Finds tables, records by number or name, collections and pages. ↑ ↓ to choose, Enter to open, Esc to close" });
      this.dialog.append(this.input, this.results, this.hint);
      document.body.append(this.dialog);
      this.input.addEventListener("input", () => {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.search(), SEARCH_DELAY_MS);
      });
      this.input.addEventListener("keydown", (event) => this.handleKey(event));
      this.dialog.addEventListener("click", (event) => event.target === this.dialog && this.dialog.close());
    }

    open() {
      if (this.dialog.open) return;
      this.dialog.showModal();
      this.input.select();
      this.search();
    }

    async search() {
      const request = (this.request = {});
      const url = `/find/?${new URLSearchParams({ q: this.input.value.trim() })}`;
      const response = await fetch(url, { headers: { Accept: "application/json" } }).catch(() => null);
      if (request !== this.request) return;
      if (response?.redirected || response?.status === 401) return location.reload(); // the session has ended
      const body = response?.ok ? await response.json() : null;
      this.show(body?.groups ?? [], body ? "Nothing found." : "The search failed. Try again.");
    }

    show(groups, emptyText) {
      this.results.replaceChildren();
      for (const group of groups) {
        const section = document.createElement("div");
        section.setAttribute("role", "group");
        section.setAttribute("aria-label", group.title);
        const title = Object.assign(document.createElement("div"), { className: "muted small", textContent: group.title });
        title.setAttribute("aria-hidden", "true");
        section.append(title, ...group.items.map((item) => this.row(item)));
        this.results.append(section);
      }
      this.rows = [...this.results.querySelectorAll("[role=option]")];
      this.rows.forEach((row, index) => (row.id = `palette-${index}`));
      if (!this.rows.length) this.results.append(Object.assign(document.createElement("p"), { textContent: emptyText }));
      this.activate(this.rows.length ? 0 : -1);
    }

    row(item) {
      const row = Object.assign(document.createElement("a"), { href: item.url, textContent: item.title, tabIndex: -1 });
      row.setAttribute("role", "option");
      if (item.detail) row.append(Object.assign(document.createElement("span"), { className: "muted", textContent: ` ${item.detail}` }));
      return row;
    }

    activate(index) {
      this.index = index;
      this.rows.forEach((row, position) => row.setAttribute("aria-selected", String(position === index)));
      if (index < 0) return this.input.removeAttribute("aria-activedescendant");
      this.input.setAttribute("aria-activedescendant", this.rows[index].id);
      this.rows[index].scrollIntoView({ block: "nearest" });
    }

    handleKey(event) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step && this.rows?.length) {
        event.preventDefault();
        this.activate((this.index + step + this.rows.length) % this.rows.length);
      } else if (event.key === "Enter" && this.rows?.[this.index]) {
        event.preventDefault();
        this.rows[this.index].click();
      }
    }
  }
}
