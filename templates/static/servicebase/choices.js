// Boxes to tick, where they are many: a field above them leaves those that have what is typed, and those that are ticked.
"use strict";
const MANY = 12;
document.addEventListener("DOMContentLoaded", () => {
  for (const group of document.querySelectorAll(".choices")) {
    const choices = [...group.querySelectorAll("label")];
    if (choices.length <= MANY) continue;
    const field = document.createElement("input");
    field.type = "search";
    field.placeholder = "Type to find one";
    field.setAttribute("aria-label", `Find in: ${document.getElementById(group.getAttribute("aria-labelledby")).textContent}`);
    field.addEventListener("input", () => {
      const typed = field.value.trim().toLowerCase();
      for (const choice of choices)
        choice.hidden = !choice.textContent.toLowerCase().includes(typed) && !choice.querySelector("input").checked;
    });
    // The form is not sent by who looks for a choice.
    field.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
    group.before(field);
  }
});
