// Adds a search field above a long group of checkboxes. It hides the unchecked ones that do not match.
"use strict";
const MAX_UNFILTERED_CHOICES = 12;
document.addEventListener("DOMContentLoaded", () => {
  for (const group of document.querySelectorAll(".choices")) {
    const choices = [...group.querySelectorAll("label")];
    if (choices.length <= MAX_UNFILTERED_CHOICES) continue;
    const searchField = document.createElement("input");
    searchField.type = "search";
    searchField.placeholder = "Type to filter";
    searchField.setAttribute("aria-label", `Filter: ${document.getElementById(group.getAttribute("aria-labelledby")).textContent}`);
    searchField.addEventListener("input", () => {
      const searchText = searchField.value.trim().toLowerCase();
      for (const choice of choices)
        choice.hidden = !choice.textContent.toLowerCase().includes(searchText) && !choice.querySelector("input").checked;
    });
    // Enter in the search field must not submit the form.
    searchField.addEventListener("keydown", (event) => event.key === "Enter" && event.preventDefault());
    group.before(searchField);
  }
});
