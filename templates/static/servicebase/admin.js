// Mends what the templates of the administration's theme leave out: hidden icon names, labels of fields without one, and
// labels in cards that begin with a capital letter, and only with one.
"use strict";
{
  const hideIcons = () => {
    for (const icon of document.querySelectorAll(".material-symbols-outlined:not([aria-hidden])")) icon.setAttribute("aria-hidden", "true");
  };
  const nameControls = () => {
    document.getElementById("searchbar-submit")?.setAttribute("aria-label", "Search");
    for (const link of document.querySelectorAll("a[href='#']:has(> .material-symbols-outlined:only-child)")) link.setAttribute("aria-label", "More");
    for (const heading of document.querySelectorAll(".inline-related thead th")) {
      if (!heading.textContent.trim()) heading.append(Object.assign(document.createElement("span"), { className: "visually-hidden", textContent: "Delete" }));
    }
    for (const area of document.querySelectorAll(".simplebar-content-wrapper[role]")) { // all have the same name
      area.removeAttribute("role");
      area.removeAttribute("aria-label");
    }
  };
  const capitalizeLabels = () => {
    for (const cell of document.querySelectorAll("#content-main [data-label]")) cell.dataset.label = cell.dataset.label.replace(/^./, (letter) => letter.toUpperCase());
  };
  const labelOf = (field) => document.querySelector(`label[for="${CSS.escape(field.id)}"]`)?.textContent.replace("*", "").trim();
  const headingOf = (field) => {
    const cell = field.closest("td");
    return cell?.closest("table")?.tHead?.rows[0]?.cells[cell.cellIndex]?.querySelector("span > span")?.textContent.replace("*", "").trim();
  };

  const labelFields = () => {
    for (const field of document.querySelectorAll(".inline-related td :is(input, select, textarea):not([type=hidden], [aria-label])")) {
      const name = labelOf(field) || headingOf(field);
      if (name) field.setAttribute("aria-label", name);
    }
    // The control that select2 shows in the place of a select, and its search field.
    for (const select of document.querySelectorAll("select.select2-hidden-accessible")) {
      const name = labelOf(select) || select.getAttribute("aria-label") || headingOf(select);
      if (!name) continue;
      const container = select.nextElementSibling;
      for (const control of container?.querySelectorAll("[role=combobox], [role=searchbox], [role=textbox], .select2-search__field") ?? []) {
        control.removeAttribute("aria-labelledby");
        control.setAttribute("aria-label", control.textContent.trim() ? `${name}: ${control.textContent.trim()}` : name);
      }
    }
  };

  document.addEventListener("DOMContentLoaded", () => {
    const mend = () => { hideIcons(); nameControls(); labelFields(); capitalizeLabels(); };
    mend();
    addEventListener("load", mend);
    new MutationObserver(mend).observe(document.body, { childList: true, subtree: true });
  });
}
