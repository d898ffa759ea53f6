// The form of a column: hides the fields that the chosen type does not use, unless they have a value. Without this
// script all fields are shown, and saving rejects a value that the type does not use.
document.addEventListener("DOMContentLoaded", () => {
  const typeSelect = document.querySelector("select[data-types-by-field]");
  if (!typeSelect) return;
  const typesByField = JSON.parse(typeSelect.dataset.typesByField);

  const isEmpty = (container) =>
    container.querySelector("[name=choices-TOTAL_FORMS]")?.value === "0" ||
    [...container.querySelectorAll("input:not([type=hidden]), select, textarea")].every((field) =>
      field.type === "checkbox" ? !field.checked : !field.value,
    );

  function updateFields() {
    for (const [name, types] of Object.entries(typesByField)) {
      const container = document.querySelector(name === "choices" ? "#choices-group" : `.field-${name}`);
      container?.classList.toggle("sb-unused-field", !types.includes(typeSelect.value) && isEmpty(container));
    }
  }

  typeSelect.addEventListener("change", updateFields);
  updateFields();
});
