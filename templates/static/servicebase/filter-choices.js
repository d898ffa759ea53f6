// Adds a search field above a long group of checkboxes. It hides those that neither match nor are checked.
"use strict";
const MANY = 12;
document.addEventListener("DOMContentLoaded", () => {
  for (const group of document.querySelectorAll(".choices")) {
    const choices = [...group.querySelectorAll("label")];
    if (choices.length <= MANY) continue;
    const field = document.createElement("input");
    field.type = "search";
    field.placeholder = "Type to filter";
    field.setAttribute("aria-label", `Filter: ${document.getElementById(group.getAttribute("aria-labelledby")).textContent}`);
    field.addEventListener("input", () => {
      const typed = field.value.trim().toLowerCase();
      for (const choice of choices)
        choice.hidden = !choice.textContent.toLowerCase().includes(typed) && !choice.querySelector("input").checked;
    });
    // Enter in the search field must not submit the form.
    field.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
    group.before(field);
  }
});
