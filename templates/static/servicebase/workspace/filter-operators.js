// The operators of a field as choices in words. One operator can be several choices: "is me", "is one of my groups".

const DYNAMIC_VALUES = [
  { value: "me", label: "me", table: "user" },
  { value: "my_groups", label: "one of my groups", table: "sys_group" },
  { value: "my_roles", label: "one of my roles", table: "sys_role" },
];
const RELATIVE_LABELS = {
  RELATIVELT: { ago: "is more than … ago", ahead: "is less than … from now, or earlier" },
  RELATIVEGT: { ago: "is less than … ago, or later", ahead: "is more than … from now" },
};
// For operators whose words would be those of another one.
const LABEL_ENDS = { path: " (field)", relative: " (relative to now)" };
const ALWAYS_COMMON = ["=", "!=", "IN", "NOT IN", "HAS", "HASNOT", "ISEMPTY", "ISNOTEMPTY", "ARE", "INSTANCEOF"];
const TEXTS = ["LIKE", "NOTLIKE", "STARTSWITH", "ENDSWITH"];
const COMPARISONS = ["<", ">", "<=", ">=", "BETWEEN"];
const DATES = ["ON", "NOTON", ...COMPARISONS, "ISEMPTY", "ISNOTEMPTY"];
const COMMON = {
  text: [...ALWAYS_COMMON, ...TEXTS],
  id: ["=", "!=", "IN", "NOT IN", "ARE", "INSTANCEOF"],
  integer: [...ALWAYS_COMMON, ...COMPARISONS],
  decimal: [...ALWAYS_COMMON, ...COMPARISONS],
  date: DATES,
  datetime: DATES,
};
const USUAL_OPERATOR = { text: "LIKE", date: "ON", datetime: "ON", list: "HAS" };

// Each choice: `key`, `label`, `isCommon`, `operator`, `kind` (of the value) and `fixed`, a value that it always has.
export function operatorChoices(field) {
  const common = COMMON[field.kind] ?? ALWAYS_COMMON;
  return field.operatorList.flatMap(({ name, label, value: kind }) => {
    const choice = { operator: name, kind };
    if (kind === "dynamic")
      return DYNAMIC_VALUES.map((dynamic) => ({
        ...choice, key: `${name} ${dynamic.value}`, label: `${label} ${dynamic.label}`, fixed: dynamic.value,
        isCommon: dynamic.table === field.reference,
      }));
    if (RELATIVE_LABELS[name])
      return ["ago", "ahead"].map((direction) => ({
        ...choice, key: `${name} ${direction}`, label: RELATIVE_LABELS[name][direction], direction, isCommon: true,
      }));
    return [{ ...choice, key: name, label: label + (LABEL_ENDS[kind] ?? ""), isCommon: common.includes(name) }];
  });
}

// The choice that a condition shows; null if no choice fits, so that it is shown as text.
export function findChoice(choices, { operator, value }) {
  return (
    choices.find(
      (choice) =>
        choice.operator === operator &&
        (choice.fixed ?? value) === value &&
        (!choice.direction || !value || value.split("@")[2] === choice.direction),
    ) ?? null
  );
}

export function usualChoice(choices, field) {
  return choices.find((choice) => choice.operator === (USUAL_OPERATOR[field.kind] ?? "=")) ?? choices[0];
}
