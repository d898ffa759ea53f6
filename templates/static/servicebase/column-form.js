// The form of a column: hides the fields that the chosen type does not use, unless they have a value. Without this
// script all fields are shown, and saving rejects a value that the type does not use.
document.addEventListener("DOMContentLoaded", () => {
  const type = document.querySelector("select[data-types-by-field]");
  if (!type) return;
  const typesByField = JSON.parse(type.dataset.typesByField);

  const isEmpty = (part) =>
    part.querySelector("[name=choices-TOTAL_FORMS]")?.value === "0" ||
    [...part.querySelectorAll("input:not([type=hidden]), select, textarea")].every((field) =>
      field.type === "checkbox" ? !field.checked : !field.value,
    );

  function show() {
    for (const [name, types] of Object.entries(typesByField)) {
      const part = document.querySelector(name === "choices" ? "#choices-group" : `.field-${name}`);
      part?.classList.toggle("sb-unfit", !types.includes(type.value) && isEmpty(part));
    }
  }

  type.addEventListener("change", show);
  show();
});
