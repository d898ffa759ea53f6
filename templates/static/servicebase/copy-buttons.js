// Buttons that copy the text of the element named in data-copies. Without this script, or where the browser does not
// allow it (without https), the buttons stay hidden and one click selects the text.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll("button[data-copies]")) {
    button.hidden = !navigator.clipboard;
    button.addEventListener("click", async () => {
      const source = document.getElementById(button.dataset.copies);
      await navigator.clipboard.writeText(source.value ?? source.textContent);
      button.textContent = "Copied";
    });
  }
});
