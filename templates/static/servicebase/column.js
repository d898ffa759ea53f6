// The form of a column: shows what a column of the chosen type can have. Without it everything is shown, and what does
// not fit is refused when it is saved. What has a value stays, so that nothing is sent unseen.
document.addEventListener("DOMContentLoaded", () => {
  const type = document.querySelector("select[data-fitting]");
  if (!type) return;
  const fitting = JSON.parse(type.dataset.fitting);

  const isEmpty = (part) =>
    part.querySelector("[name=choices-TOTAL_FORMS]")?.value === "0" ||
    [...part.querySelectorAll("input:not([type=hidden]), select, textarea")].every((field) =>
      field.type === "checkbox" ? !field.checked : !field.value,
    );

  function show() {
    for (const [name, types] of Object.entries(fitting)) {
      const part = document.querySelector(name === "choices" ? "#choices-group" : `.field-${name}`);
      part?.classList.toggle("sb-unfit", !types.includes(type.value) && isEmpty(part));
    }
  }

  type.addEventListener("change", show);
  show();
});
