// Creates elements for scripts that build controls.

export function element(name, properties = {}, ...children) {
  const { aria = {}, ...others } = properties;
  const created = Object.assign(document.createElement(name), others);
  for (const [key, value] of Object.entries(aria)) created.setAttribute(`aria-${key}`, value);
  created.append(...children);
  return created;
}

export const button = (text, onclick, properties = {}) =>
  element("button", { type: "button", textContent: text, onclick, ...properties });

// A select of options {value, label}; those in `groups` ({label: options}) follow below a heading.
export function select({ label, options, groups = {}, value, onChange }) {
  const toElement = (option) => element("option", { value: option.value, textContent: option.label });
  const headings = Object.entries(groups).map(([heading, group]) => element("optgroup", { label: heading }, ...group.map(toElement)));
  const control = element("select", { aria: { label } }, ...options.map(toElement), ...headings);
  control.value = value;
  control.addEventListener("change", () => onChange(control.value));
  return control;
}

export function input({ label, value, onChange, ...properties }) {
  const control = element("input", { type: "text", autocomplete: "off", value, ...properties, aria: { label } });
  control.addEventListener("input", () => onChange(control.value));
  return control;
}
