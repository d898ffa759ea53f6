// Dates of conditions: named periods and moments, and local times in the person's time zone.

const call = (name, argument = "") => `javascript:gs.${name}(${argument})`;
const capitalize = (text) => text[0].toUpperCase() + text.slice(1);

function namedPeriods() {
  const days = ["Today", "Yesterday", "Tomorrow"].map((day) => [day, call(`beginningOf${day}`), call(`endOf${day}`)]);
  const others = ["week", "month", "quarter", "year"].flatMap((unit) =>
    ["This", "Last", "Next"].map((side) => {
      const period = side + capitalize(unit);
      return [`${side} ${unit}`, call(`beginningOf${period}`), call(`endOf${period}`)];
    }),
  );
  const last = [7, 30, 90].map((count) => [`Last ${count} days`, call("daysAgoStart", count), call("daysAgoEnd", 0)]);
  const next = [7, 30, 90].map((count) => [`Next ${count} days`, call("daysAgoStart", 0), call("daysAgoEnd", -count)]);
  return [...days, ...others, ...last, ...next].map((parts) => ({ label: parts[0], value: parts.join("@") }));
}

export const PERIODS = namedPeriods();

// The named period of a value, whatever its label is.
export const findPeriod = (value) =>
  PERIODS.find((period) => period.value.split("@").slice(1).join("@") === value.split("@").slice(1).join("@"));

export const MOMENTS = [
  { label: "now", value: call("now") },
  ...["Today", "ThisWeek", "ThisMonth", "ThisQuarter", "ThisYear"].flatMap((period) =>
    ["beginning", "end"].map((edge) => ({
      label: `the ${edge === "end" ? "end" : "start"} of ${period.replace("This", "this ").toLowerCase()}`,
      value: call(`${edge}Of${period}`),
    })),
  ),
];

export const UNITS = ["minute", "hour", "day", "week", "month", "quarter", "year"];

const INSTANT = /^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d)?)(Z|[+-]\d\d:\d\d)?)?$/;

export const isDate = (value) => /^\d{4}-\d\d-\d\d$/.test(value);

// "2024-05-19 15:30:00" in UTC, as "2024-05-19T17:30" for a control; null if it is not a time.
export function toLocalTime(value, timeZone) {
  const match = INSTANT.exec(value);
  const instant = match && new Date(`${match[1]}T${match[2] ?? "00:00"}${match[3] ?? "Z"}`);
  if (!instant || Number.isNaN(instant.getTime())) return null;
  return wallClock(instant, timeZone).replace(" ", "T").replace(/:00$/, "");
}

// The reverse, in UTC.
export function fromLocalTime(local, timeZone) {
  const asUtc = new Date(`${local}Z`).getTime();
  if (Number.isNaN(asUtc)) return "";
  const offset = (time) => new Date(`${wallClock(new Date(time), timeZone).replace(" ", "T")}Z`).getTime() - time;
  // The second time with the offset at the result, which differs near a change of the clocks.
  const result = asUtc - offset(asUtc - offset(asUtc));
  return new Date(result).toISOString().slice(0, 19).replace("T", " ");
}

function wallClock(instant, timeZone) {
  return new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "medium" }).format(instant);
}
