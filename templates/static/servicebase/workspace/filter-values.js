// The control for the value of a condition: by the kind of value that the operator takes, and the kind of the field.
// A value that a control cannot show is edited as text, so no query changes because it was read.
import { createPicker } from "./picker.js";
import { element, input, select } from "./elements.js";
import { comparableKind } from "./filter-fields.js";
import { MOMENTS, PERIODS, UNITS, findPeriod, fromLocalTime, isDate, toLocalTime } from "./filter-dates.js";

const ME = "javascript:gs.getUserID()";
const MONTHS = ["January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"];
const WEEKDAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];
const NUMBERED = { MONTH_IS: MONTHS, DAY_OF_WEEK_IS: WEEKDAYS, QUARTER_IS: ["1", "2", "3", "4"] };
const CUSTOM_DATE = "date";
const CUSTOM_RANGE = "range";
const AS_TEXT = "text";
const DISTANCE = /^([^@]+)@([a-z]+)@(before|after)@(\d+)$/;
const RELATIVE = /^@([a-z]+)@(ago|ahead)@(\d+)$/;

// The value of a new condition.
export function initialValue(choice, field) {
  if (choice.fixed) return choice.fixed;
  if (choice.kind === "day") return PERIODS[0].value;
  if (choice.kind === "relative") return `@day@${choice.direction ?? "ago"}@7`;
  if (field.kind === "boolean" && choice.kind === "text") return "true";
  return "";
}

// `context`: {choice, field, value, setValue, fields (all of them), labels of records, timeZone}. Returns elements.
export async function valueControls(context) {
  const { choice } = context;
  if (!choice) return [textControl(context)];
  if (choice.kind === "none" || choice.fixed) return [];
  const create = { text: operandControls, list: listControls, range: rangeControls, path: pathControls, day: dayControls,
    date_part: datePartControls, relative: relativeControls, distance: distanceControls }[choice.kind];
  return (create && (await create(context))) || [textControl(context)];
}

function textControl({ value, setValue, field, label = "Value" }) {
  const isNumber = ["integer", "decimal"].includes(field?.kind);
  return input({ label, value, onChange: setValue, inputMode: isNumber ? "decimal" : "text" });
}

function operandControls(context) {
  const { field, choice } = context;
  if (["date", "datetime"].includes(field.kind)) return momentControls(context);
  if (!["=", "!=", "BETWEEN"].includes(choice.operator)) return null;
  if (field.kind === "boolean") return booleanControls(context);
  if (field.kind === "choice") return choiceControls(context);
  if (field.optionsUrl) return recordControls(context, false);
  return null;
}

function booleanControls({ value, setValue, label = "Value" }) {
  const isTrue = ["true", "1"].includes(value.toLowerCase());
  if (!isTrue && !["false", "0"].includes(value.toLowerCase())) return null;
  const options = [{ value: "true", label: "Yes" }, { value: "false", label: "No" }];
  return [select({ label, options, value: String(isTrue), onChange: setValue })];
}

function choiceControls({ field, value, setValue, label = "Value" }) {
  const known = field.choices.map(([id, text]) => ({ value: id, label: text }));
  const isKnown = field.choices.some(([id]) => id === value);
  const options = isKnown ? known : [{ value, label: value || "Choose…" }, ...known];
  return [select({ label, options, value, onChange: setValue })];
}

function listControls(context) {
  const { field, value, setValue } = context;
  if (field.optionsUrl && field.kind !== "id") return recordControls(context, true);
  if (field.kind !== "choice") return [input({ label: "Values", value, onChange: setValue, placeholder: "Separate with commas" })];
  const options = field.choices.map(([id, label]) => ({ id, label }));
  const find = async (text) => options.filter((option) => option.label.toLowerCase().includes(text.toLowerCase()));
  const items = value ? value.split(",").map((id) => options.find((option) => option.id === id) ?? { id, label: id }) : [];
  return [createPicker({ label: "Values", items, isMultiple: true, find, onChange: joinIds(setValue) })];
}

const joinIds = (setValue) => (items) => setValue(items.map((item) => item.id).join(","));

function recordControls({ field, value, setValue, labels, label }, isMultiple) {
  const known = (labels[field.reference] ??= {});
  const itemOf = (id) => ({ id, label: id === ME ? "Me" : (known[id] ?? id) });
  const items = value ? (isMultiple ? value.split(",") : [value]).map(itemOf) : [];
  const onChange = (chosen) => {
    for (const item of chosen) if (item.label !== item.id) known[item.id] = item.label;
    joinIds(setValue)(chosen);
  };
  return [createPicker({ url: field.optionsUrl, label: label ?? (isMultiple ? "Values" : "Value"), items, isMultiple, onChange })];
}

// Two values of the field, as one text around a separator.
async function rangeControls(context) {
  const ends = context.value ? context.value.split("@") : ["", ""];
  if (ends.length !== 2) return null;
  const controls = await Promise.all(
    ["From", "To"].map((label, index) => {
      const setValue = (text) => {
        ends[index] = text;
        context.setValue(ends.every(Boolean) ? ends.join("@") : "");
      };
      const part = { ...context, value: ends[index], setValue, label };
      return operandControls(part) ?? [textControl(part)];
    }),
  );
  return [...controls[0], "and", ...controls[1]];
}

// A date or time, a moment such as the start of today, or any other text.
function momentControls(context) {
  const { field, value, setValue, timeZone, label = "Value" } = context;
  const asDate = field.kind === "date" ? (isDate(value) ? value : null) : toLocalTime(value, timeZone);
  const isMoment = MOMENTS.some((moment) => moment.value === value);
  const mode = isMoment ? value : asDate !== null || !value ? CUSTOM_DATE : AS_TEXT;
  const holder = element("span", { className: "filter-value" });
  const show = (newMode, text) => {
    const type = field.kind === "date" ? "date" : "datetime-local";
    const read = field.kind === "date" ? (local) => local : (local) => (local ? fromLocalTime(local, timeZone) : "");
    const controls = { [CUSTOM_DATE]: () => input({ label, type, value: text, onChange: (local) => setValue(read(local)) }),
      [AS_TEXT]: () => input({ label, value: text, onChange: setValue }) };
    holder.replaceChildren(...(controls[newMode] ? [controls[newMode]()] : []));
  };
  const options = [{ value: CUSTOM_DATE, label: field.kind === "date" ? "a date" : "a date and time" }, ...MOMENTS, { value: AS_TEXT, label: "other (text)" }];
  const onChange = (newMode) => {
    setValue([CUSTOM_DATE, AS_TEXT].includes(newMode) ? "" : newMode);
    show(newMode, "");
  };
  show(mode, mode === CUSTOM_DATE ? (asDate ?? "") : value);
  return [select({ label: `${label}: kind`, options, value: mode, onChange }), holder];
}

// A named period, a day, or a first and a last day.
function dayControls({ value, setValue }) {
  const [, first, last] = value.split("@");
  const period = findPeriod(value);
  const isRange = value.split("@").length === 3 && isDate(first) && isDate(last);
  const mode = period ? period.value : isDate(value) ? CUSTOM_DATE : isRange ? CUSTOM_RANGE : AS_TEXT;
  const holder = element("span", { className: "filter-value" });
  const show = (newMode, text, ends) => {
    const day = () => [input({ label: "Day", type: "date", value: text, onChange: setValue })];
    const days = () => {
      const setEnd = (index) => (end) => {
        ends[index] = end;
        setValue(ends.every(Boolean) ? `@${ends.join("@")}` : "");
      };
      const [from, to] = ["First day", "Last day"].map((label, index) => input({ label, type: "date", value: ends[index], onChange: setEnd(index) }));
      return [from, "to", to];
    };
    const controls = { [CUSTOM_DATE]: day, [CUSTOM_RANGE]: days, [AS_TEXT]: () => [input({ label: "Value", value: text, onChange: setValue })] };
    holder.replaceChildren(...(controls[newMode]?.() ?? []));
  };
  show(mode, value, isRange ? [first, last] : ["", ""]);
  const custom = [{ value: CUSTOM_DATE, label: "on a day" }, { value: CUSTOM_RANGE, label: "from … to …" }, { value: AS_TEXT, label: "other (text)" }];
  const onChange = (newMode) => {
    setValue(custom.some((option) => option.value === newMode) ? "" : newMode);
    show(newMode, "", ["", ""]);
  };
  return [select({ label: "Period", options: [...PERIODS.map(({ label, value: id }) => ({ label: label.toLowerCase(), value: id })), ...custom], value: mode, onChange }), holder];
}

function datePartControls({ choice, value, setValue }) {
  const names = NUMBERED[choice.operator];
  if (!names) return [input({ label: "Number", value, onChange: setValue, inputMode: "numeric" })];
  if (value && !names[Number(value) - 1]) return null;
  const options = [...(value ? [] : [{ value: "", label: "Choose…" }]), ...names.map((label, index) => ({ label, value: String(index + 1) }))];
  return [select({ label: "Value", options, value: value && String(Number(value)), onChange: setValue })];
}

const unitOptions = UNITS.map((unit) => ({ value: unit, label: `${unit}s` }));

function numberAndUnit(parts, update) {
  const setPart = (name) => (text) => {
    parts[name] = text;
    update();
  };
  return [
    input({ label: "Number", value: parts.count, inputMode: "numeric", onChange: setPart("count") }),
    select({ label: "Unit", options: unitOptions, value: parts.unit, onChange: setPart("unit") }),
  ];
}

function relativeControls({ choice, value, setValue }) {
  const match = RELATIVE.exec(value);
  if (!match) return null;
  const parts = { unit: match[1], direction: match[2], count: match[3] };
  const update = () => setValue(parts.count ? `@${parts.unit}@${parts.direction}@${parts.count}` : "");
  const controls = numberAndUnit(parts, update);
  if (choice.direction) return [...controls, choice.direction === "ago" ? "ago" : "from now"];
  const options = [{ value: "ago", label: "ago" }, { value: "ahead", label: "from now" }];
  const setDirection = (direction) => {
    parts.direction = direction;
    update();
  };
  return [...controls, select({ label: "Direction", options, value: parts.direction, onChange: setDirection })];
}

const isComparableWith = (field) => (other) => comparableKind(other.kind) === comparableKind(field.kind);

async function pathControls({ field, value, setValue, fields }) {
  return [await fields.createPicker({ label: "Other field", path: value, isWanted: isComparableWith(field), onChange: setValue })];
}

async function distanceControls({ field, value, setValue, fields }) {
  const match = DISTANCE.exec(value) ?? (value ? null : ["", "", "day", "after", "7"]);
  if (!match) return null;
  const parts = { path: match[1], unit: match[2], side: match[3], count: match[4] };
  const update = () => setValue(parts.path && parts.count ? `${parts.path}@${parts.unit}@${parts.side}@${parts.count}` : "");
  const setPart = (name) => (text) => {
    parts[name] = text;
    update();
  };
  const sides = ["before", "after"].map((side) => ({ value: side, label: side }));
  const picker = { label: "Other field", path: parts.path, isWanted: isComparableWith(field), onChange: setPart("path") };
  return [
    ...numberAndUnit(parts, update),
    select({ label: "Direction", options: sides, value: parts.side, onChange: setPart("side") }),
    await fields.createPicker(picker),
  ];
}
