"""Says a query in words, with the labels of columns, choices and records that the caller can see."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from system.encoded_query import ComparisonKind as Kind
from system.encoded_query import (
    Condition,
    Group,
    Query,
    QueryError,
    SubQuery,
    Term,
    ValueFunction,
    ValueKind,
    parse,
    read_instant,
    read_value,
)
from system.templatetags.moments import MINUTE_FORMAT
from tableapi.catalogue.definitions import Column, Rule, Table
from tableapi.query.path_resolver import resolve_path
from tableapi.read.context import ReadContext
from workspace.forms import display, options

from .fields import operator_label
from .query_tree import SPELLINGS, JsonObject, parse_tree, to_text, without_part

# The display values of records: {table: {id: display value}}.
RecordLabels = Mapping[str, Mapping[str, str]]

MAX_SHOWN_VALUES = 6
# For each table. The rest of a long list is shown as ids.
MAX_RECORD_LABELS = 200
MAX_ID_LENGTH = 32
_DYNAMIC_LABELS = {"me": "me", "my_groups": "one of my groups", "my_roles": "one of my roles"}
_RELATIVE_LABELS = {
    ("RELATIVELT", "ago"): "is more than {} ago",
    ("RELATIVEGT", "ago"): "is less than {} ago or later",
    ("RELATIVELT", "ahead"): "is less than {} from now or earlier",
    ("RELATIVEGT", "ahead"): "is more than {} from now",
}


def filter_context(context: ReadContext, table: Table, text: str) -> dict[str, Any]:
    """What `workspace/filter.html` needs: the data of the condition builder, and the parts of the query in words.

    An invalid text has no parts. The builder shows it as text.
    """
    data = {"table": table.name, "spellings": SPELLINGS, "timeZone": str(context.caller.time_zone)}
    try:
        query, tree = parse(text), parse_tree(text)
    except QueryError:
        return {"filter_data": data | {"tree": None, "labels": {}}, "filter_parts": []}
    labels = read_record_labels(context, table, query)
    parts = list(_parts(_Words(context, table, labels), query, tree))
    return {"filter_data": data | {"tree": tree, "labels": labels}, "filter_parts": parts}


def describe_query(context: ReadContext, table: Table, text: str) -> str:
    """The conditions in one sentence. A text that is invalid stays as it is."""
    parts = filter_context(context, table, text)["filter_parts"]
    return " ".join(" ".join(filter(None, (part["joiner"], part["text"]))) for part in parts) or text


def rule_in_words(viewer: ReadContext, table: Table, rule: Rule) -> dict[str, str]:
    """A rule that applies to this table, with its condition in words."""
    owner = viewer.view.catalogue.tables.get(rule.table or "")
    subject = ".".join(filter(None, (owner.label if owner else "any table", rule.column)))
    roles = " or ".join(sorted(rule.roles)) or ("roles that were deleted" if rule.is_broken else "everyone")
    condition = describe_query(viewer, owner or table, rule.condition) if rule.condition else ""
    return {"id": rule.id, "text": f"{rule.operation} {subject} for {roles}", "condition": condition}


def _parts(words: "_Words", query: Query, tree: JsonObject) -> Iterator[dict[str, str]]:
    """`joiner` ("", "and", "or"), `text`, and `rest`, the query without the part. With ^NQ, a part is a whole group."""
    if len(query.groups) == 1:
        for index, term in enumerate(query.groups[0].terms):
            rest = to_text(without_part(tree, 0, index))
            yield {"joiner": "and" if index else "", "text": words.term_text(term), "rest": rest}
    else:
        for index, group in enumerate(query.groups):
            rest = to_text(without_part(tree, index))
            yield {"joiner": "or" if index else "", "text": words.group_text(group), "rest": rest}


def read_record_labels(context: ReadContext, table: Table, query: Query) -> RecordLabels:
    """The display values of the records whose ids the query contains, in one statement for each table."""
    ids: dict[str, list[str]] = defaultdict(list)
    for condition in query.conditions():
        path = resolve_path(context.view, table, condition.path)
        if path and path.column.reference and condition.row.kind in (ValueKind.TEXT, ValueKind.LIST):
            ids[path.column.reference] += condition.value.split(",")
    labels = {}
    for name, values in ids.items():
        wanted = [value for value in dict.fromkeys(values) if value.isalnum() and len(value) <= MAX_ID_LENGTH]
        target = context.view.table(name)
        labels[name] = options.labels_of(context, target, wanted[:MAX_RECORD_LABELS]) if target else {}
    return labels


class _Words:
    def __init__(self, context: ReadContext, table: Table, labels: RecordLabels) -> None:
        self.view, self.zone, self.table, self.labels = context.view, context.caller.time_zone, table, labels

    def group_text(self, group: Group) -> str:
        texts = [
            f"({self.term_text(term)})" if len(term.factors) > 1 < len(group.terms) else self.term_text(term)
            for term in group.terms
        ]
        return " and ".join(texts)

    def term_text(self, term: Term) -> str:
        return " or ".join(map(self.factor_text, term.factors))

    def factor_text(self, factor: Condition | SubQuery) -> str:
        if isinstance(factor, SubQuery):
            return f"({' or '.join(map(self.group_text, factor.groups))})"
        label = "Record" if factor.row.only_path else self.path_label(factor.path)
        return f"{label} {self.comparison_text(factor)}".rstrip()

    def path_label(self, path: tuple[str, ...]) -> str:
        """The labels of the columns. A path that the caller cannot see stays as it was written."""
        resolved = resolve_path(self.view, self.table, path)
        return ".".join(path) if resolved is None else display.path_label(resolved)

    def comparison_text(self, condition: Condition) -> str:
        path = resolve_path(self.view, self.table, condition.path)
        column = path.column if path else None
        operator = operator_label(condition.operator, column.compare_as if column else Kind.TEXT)
        value: Any = read_value(condition)
        match condition.row.kind:
            case ValueKind.RELATIVE:
                distance, direction = _count_text(abs(value.count), value.unit), condition.value.split("@")[2]
                sentence = _RELATIVE_LABELS.get((condition.operator, direction))
                end = "ago" if direction == "ago" else "from now"
                return sentence.format(distance) if sentence else f"{operator} {distance} {end}"
            case ValueKind.LIST:
                texts = [self.operand_text(item, column) for item in value[:MAX_SHOWN_VALUES]]
                texts += [f"{len(value) - MAX_SHOWN_VALUES:,} more"] * (len(value) > MAX_SHOWN_VALUES)
                return f"is {' or '.join(texts)}" if condition.operator == "IN" else f"{operator} {', '.join(texts)}"
        return f"{operator} {self.value_text(condition, value, column)}"

    def value_text(self, condition: Condition, value: Any, column: Column | None) -> str:
        match condition.row.kind:
            case ValueKind.DYNAMIC:
                return _DYNAMIC_LABELS[condition.value]
            case ValueKind.PATH:
                return self.path_label(value)
            case ValueKind.DISTANCE:
                side = "before" if value.is_before else "after"
                return f"{_count_text(value.count, value.unit)} {side} {self.path_label(value.path)}"
            case ValueKind.DAY if value.last is None:
                return self.operand_text(value.first, column)
            case ValueKind.DAY:
                period = condition.value.partition("@")[0].strip().lower()
                first, last = self.operand_text(value.first, column), self.operand_text(value.last, column)
                return period or f"from {first} to {last}"
            case ValueKind.RANGE:
                return f"{self.operand_text(value.low, column)} and {self.operand_text(value.high, column)}"
            case ValueKind.TEXT:
                return self.operand_text(value, column)
        return condition.value

    def operand_text(self, operand: str | ValueFunction, column: Column | None) -> str:
        if isinstance(operand, ValueFunction):
            return _function_text(operand)
        if column is None:
            return operand
        if column.compare_as is Kind.BOOLEAN:
            return "Yes" if operand.lower() in ("true", "1") else "No"
        if column.compare_as in (Kind.DATE, Kind.DATETIME):
            return self.time_text(operand)
        label = dict(column.choices).get(operand) or self.labels.get(column.reference or "", {}).get(operand)
        return label or operand

    def time_text(self, value: str) -> str:
        try:
            instant = read_instant(value)
            if len(value) == len("2024-05-19"):
                return f"{instant.day} {instant:%b %Y}"
            return MINUTE_FORMAT.format(instant.astimezone(self.zone))
        except (QueryError, OverflowError):  # the latter near the first and the last year
            return value


def _count_text(count: int, unit: str) -> str:
    return f"{count:,} {unit}{'' if count == 1 else 's'}"


def _function_text(function: ValueFunction) -> str:
    """
    >>> [_function_text(ValueFunction(*call)) for call in (("beginningOfLastWeek",), ("daysAgo", 7), ("now",))]
    ['the start of last week', '7 days ago', 'now']
    """
    if function.name == "getUserID":
        return "me"
    words = re.findall("[A-Z]?[a-z]+", function.name)
    if "Ago" not in words:
        return "now" if words[0] == "now" else "the " + " ".join(words).lower().replace("beginning", "start")
    distance = _count_text(abs(function.count), words[0].removesuffix("s"))
    edge = f"the {words[2].lower()} of the {words[0].removesuffix('s')} " if len(words) > 2 else ""
    return f"{edge}{distance} {'ago' if function.count >= 0 else 'from now'}"
