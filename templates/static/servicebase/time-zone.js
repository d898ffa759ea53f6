// Offers the time zone of the browser below the select, if another one is selected.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const select = document.querySelector("select[name=time_zone]");
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
  if (!select || select.value === zone || ![...select.options].some((option) => option.value === zone)) return;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "text-button";
  button.textContent = `Use ${zone.replaceAll("_", " ")}, the time zone of your browser`;
  button.addEventListener("click", () => {
    select.value = zone;
    select.focus();
    button.remove();
  });
  select.after(button);
});
