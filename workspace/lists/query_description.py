"""Says a query in words, with the labels of columns, choices and records that the caller can see."""

import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from system.encoded_query import ComparisonKind as Kind
from system.encoded_query import Condition, Query, QueryError, ValueFunction, ValueKind, parse, read_instant, read_value
from tableapi.catalogue.definitions import Column, Table
from tableapi.query.path_resolver import resolve_path
from tableapi.read.context import ReadContext
from workspace.forms import display, options

from .operator_labels import operator_label
from .query_tree import SPELLINGS, JsonGroup, JsonObject, parse_tree, to_text, without_part

# The display values of records: {table: {id: display value}}.
RecordLabels = Mapping[str, Mapping[str, str]]

PATH_SEPARATOR = " \N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK} "
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


def filter_context(context: ReadContext, table: Table, text: str) -> JsonObject:
    """What `workspace/filter.html` needs: the data of the condition builder and the query in words.

    An invalid text has no parts. The builder shows it as text.
    """
    data: JsonObject = {"table": table.name, "spellings": SPELLINGS, "timeZone": str(context.caller.time_zone)}
    try:
        labels = read_record_labels(context, table, parse(text))
        parts = describe(context, table, text, labels)
    except QueryError:
        return {"filter_data": data | {"tree": None, "labels": {}}, "filter_parts": []}
    return {"filter_data": data | {"tree": parse_tree(text), "labels": labels}, "filter_parts": parts}


def describe(context: ReadContext, table: Table, text: str, labels: RecordLabels | None = None) -> list[JsonObject]:
    """The parts of a query: `joiner` ("", "and", "or"), `text`, and `rest`, the query without this part.

    With ^NQ, each part is a whole group.
    """
    tree = parse_tree(text)
    words = _Words(context, table, read_record_labels(context, table, parse(text)) if labels is None else labels)
    if len(tree["groups"]) == 1:
        joiner, terms = "and", tree["groups"][0]
        parts = [(words.group_text([term]), without_part(tree, 0, index)) for index, term in enumerate(terms)]
    else:
        joiner = "or"
        parts = [(words.group_text(group), without_part(tree, index)) for index, group in enumerate(tree["groups"])]
    return [
        {"joiner": joiner if index else "", "text": part_text, "rest": to_text(rest)}
        for index, (part_text, rest) in enumerate(parts)
    ]


def path_label(context: ReadContext, table: Table, path: tuple[str, ...]) -> str:
    """The labels of the columns. A path that the caller cannot see stays as it was written."""
    resolved = resolve_path(context.view, table, path)
    if resolved is None:
        return ".".join(path)
    columns = [*(step.column for step in resolved.steps), resolved.column]
    return PATH_SEPARATOR.join(column.label or column.name for column in columns)


def read_record_labels(context: ReadContext, table: Table, query: Query) -> RecordLabels:
    """The display values of the records whose ids the query contains, in one statement for each table."""
    ids: dict[str, list[str]] = defaultdict(list)
    for condition in query.conditions():
        column = _visible_column(context, table, condition.path)
        if column and column.reference and condition.row.kind in (ValueKind.TEXT, ValueKind.LIST):
            ids[column.reference] += condition.value.split(",")
    labels = {}
    for name, values in ids.items():
        wanted = [value for value in dict.fromkeys(values) if value.isalnum() and len(value) <= MAX_ID_LENGTH]
        target = context.view.table(name)
        labels[name] = options.labels_of(context, target, wanted[:MAX_RECORD_LABELS]) if target else {}
    return labels


def _visible_column(context: ReadContext, table: Table, path: tuple[str, ...]) -> Column | None:
    resolved = resolve_path(context.view, table, path)
    return resolved.column if resolved else None


class _Words:
    """Says the parts of one query."""

    def __init__(self, context: ReadContext, table: Table, labels: RecordLabels) -> None:
        self.context = context
        self.table = table
        self.labels = labels

    def group_text(self, group: JsonGroup) -> str:
        return " and ".join(self.term_text(term, in_parentheses=len(group) > 1) for term in group)

    def term_text(self, term: list[JsonObject], *, in_parentheses: bool) -> str:
        text = " or ".join(map(self.factor_text, term))
        return f"({text})" if in_parentheses and len(term) > 1 else text

    def factor_text(self, factor: JsonObject) -> str:
        if "groups" in factor:
            return f"({' or '.join(map(self.group_text, factor['groups']))})"
        condition = Condition(tuple(factor["path"].split(".")), factor["operator"], factor["value"])
        label = "Record" if condition.row.only_path else path_label(self.context, self.table, condition.path)
        return f"{label} {self.comparison_text(condition)}".rstrip()

    def comparison_text(self, condition: Condition) -> str:
        """The operator and the value."""
        column = _visible_column(self.context, self.table, condition.path)
        operator = operator_label(condition.operator, column.compare_as if column else Kind.TEXT)
        value: Any = read_value(condition)
        match condition.row.kind:
            case ValueKind.RELATIVE:
                distance, direction = _count_text(abs(value.count), value.unit), condition.value.split("@")[2]
                if sentence := _RELATIVE_LABELS.get((condition.operator, direction)):
                    return sentence.format(distance)
                return f"{operator} {distance} {'ago' if direction == 'ago' else 'from now'}"
            case ValueKind.LIST if condition.operator == "IN":
                return f"is {_join(' or ', [self.operand_text(item, column) for item in value])}"
            case ValueKind.LIST:
                return f"{operator} {_join(', ', [self.operand_text(item, column) for item in value])}"
        return f"{operator} {self.value_text(condition, value, column)}"

    def value_text(self, condition: Condition, value: Any, column: Column | None) -> str:
        match condition.row.kind:
            case ValueKind.DYNAMIC:
                return _DYNAMIC_LABELS[condition.value]
            case ValueKind.PATH:
                return path_label(self.context, self.table, value)
            case ValueKind.DISTANCE:
                side = "before" if value.is_before else "after"
                return (
                    f"{_count_text(value.count, value.unit)} {side} {path_label(self.context, self.table, value.path)}"
                )
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
            return display.MINUTE_FORMAT.format(instant.astimezone(self.context.caller.time_zone))
        except (QueryError, OverflowError):  # the latter near the first and the last year
            return value


def _join(joiner: str, texts: list[str]) -> str:
    rest = len(texts) - MAX_SHOWN_VALUES
    return joiner.join([*texts[:MAX_SHOWN_VALUES], *([f"{rest:,} more"] if rest > 0 else [])])


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
