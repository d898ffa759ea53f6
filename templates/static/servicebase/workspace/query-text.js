// Writes a tree of a query as text, like `to_text` in workspace/lists/query_tree.py.

export function toText(tree, spellings) {
  const order = tree.order.map((key) => (key.is_descending ? "ORDERBYDESC" : "ORDERBY") + key.path);
  return (tree.groups.length ? [groupsText(tree.groups, false, spellings), ...order] : order).join("^");
}

function groupsText(groups, isInside, spellings) {
  const termText = (term) => term.map((factor) => factorText(factor, isInside, spellings)).join("^OR");
  return groups.map((group) => group.map(termText).join("^")).join("^NQ");
}

function factorText(factor, isInside, spellings) {
  if (factor.groups) return `(${groupsText(factor.groups, true, spellings)})`;
  const { path, operator, value } = factor;
  return path + operator + (needsQuotes(operator, value, isInside, spellings) ? `{${value.replaceAll("}", "}}")}}` : value);
}

// Whether the bare value would end early, open a quotation, or be read as part of a longer operator.
function needsQuotes(operator, value, isInside, spellings) {
  if (value.includes("^") || value.startsWith("{") || (isInside && value.includes(")"))) return true;
  return spellings.some((name) => name.length > operator.length && (operator + value).startsWith(name));
}

// The tree without conditions that have no field yet, and without parts that are empty then.
export function withoutEmptyParts(groups) {
  const cleanFactor = (factor) => (factor.groups ? { groups: withoutEmptyParts(factor.groups) } : factor);
  const isFull = (factor) => (factor.groups ? factor.groups.length : factor.path);
  return groups
    .map((group) => group.map((term) => term.map(cleanFactor).filter(isFull)).filter((term) => term.length))
    .filter((group) => group.length);
}
