// The fields that a condition can use: loaded once for each path, with a picker that also follows references.
import { createPicker } from "./picker.js";

const SEPARATOR = "›";
const MAX_OPTIONS = 200;
const COMPARABLE_KINDS = { id: "reference", date: "datetime", integer: "decimal" };

export const comparableKind = (kind) => COMPARABLE_KINDS[kind] ?? kind;

export class Fields {
  constructor(table) {
    this.table = table;
    this.requests = new Map();
  }

  // The fields behind a path of references; none if the path is hidden or unknown.
  load(path = "") {
    if (!this.requests.has(path)) this.requests.set(path, this.fetch(path));
    return this.requests.get(path);
  }

  async fetch(path) {
    const url = `/tables/${this.table}/fields/?${new URLSearchParams(path ? { path } : {})}`;
    const response = await fetch(url, { headers: { Accept: "application/json" } }).catch(() => null);
    if (!response?.ok) return { fields: [], operators: {} };
    const { fields, operators } = await response.json();
    const isOnce = (label) => fields.filter((field) => field.label === label).length === 1;
    return { fields: fields.map((field) => ({ ...field, label: isOnce(field.label) ? field.label : `${field.label} (${field.name})` })), operators };
  }

  // The field at the end of a path with its operators and a label such as "Caller › Company"; null if it is unknown.
  async find(path) {
    const names = path.split(".");
    const labels = [];
    for (const [index, name] of names.entries()) {
      const { fields, operators } = await this.load(names.slice(0, index).join("."));
      const field = fields.find((candidate) => candidate.name === name);
      if (!field) return null;
      labels.push(field.label);
      if (index === names.length - 1)
        return { ...field, path, pathLabel: labels.join(` ${SEPARATOR} `), operatorList: operators[field.operators] };
    }
  }

  // Options for "caller › comp": the fields of the caller that contain "comp", those that begin with it first.
  async suggest(text, isWanted) {
    const names = text.split(SEPARATOR).map((name) => name.trim().toLowerCase());
    const path = [];
    let label = "";
    for (const name of names.slice(0, -1)) {
      const { fields } = await this.load(path.join("."));
      const field = fields.find((candidate) => candidate.isWalkable && candidate.label.toLowerCase() === name);
      if (!field) return [];
      path.push(field.name);
      label += `${field.label} ${SEPARATOR} `;
    }
    const start = names.at(-1);
    const { fields } = await this.load(path.join("."));
    const rank = (field) => (field.label.toLowerCase().startsWith(start) ? 0 : 1);
    return fields
      .filter((field) => field.label.toLowerCase().includes(start))
      .sort((first, second) => rank(first) - rank(second))
      .flatMap((field) => [
        ...(isWanted(field) ? [{ id: [...path, field.name].join("."), label: label + field.label }] : []),
        ...(field.isWalkable ? [{ label: `${label}${field.label} ${SEPARATOR} …`, next: `${label}${field.label} ${SEPARATOR} ` }] : []),
      ])
      .slice(0, MAX_OPTIONS);
  }

  async createPicker({ label, path, isWanted = () => true, onChange }) {
    const field = path ? await this.find(path) : null;
    return createPicker({
      label,
      items: path ? [{ id: path, label: field?.pathLabel ?? path }] : [],
      find: (text) => this.suggest(text, isWanted),
      onChange: (items) => onChange(items[0]?.id ?? ""),
    });
  }
}
