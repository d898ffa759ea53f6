// Buttons that copy the text, or the value of the field, whose id is in data-copies. They stay hidden without this
// script, and where the browser does not allow it (without https).
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll("button[data-copies]")) {
    const source = document.getElementById(button.dataset.copies);
    button.hidden = !navigator.clipboard || !source;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(source.value ?? source.textContent);
      button.textContent = "Copied";
    });
  }
});
