"""Compiles expressions and decisions to SQL conditions on a record. Pure."""

from collections.abc import Callable

from system.encoded_query import ValueKind, read_words
from tableapi.catalogue.definitions import OWN_TABLE_COLUMN
from tableapi.query.expressions import (
    AllOf,
    AlwaysAllowed,
    AnyOf,
    ChildTablePredicate,
    Decision,
    DecisionCase,
    Expression,
    Predicate,
    RelatedRecords,
    ResolvedPath,
)

from .operators import ColumnConditionCompiler, ColumnSubject
from .statement_builder import StatementBuilder, TableAlias, literal

# Returns the SQL of a path.
PathSql = Callable[[ResolvedPath], str]


def decision_sql(builder: StatementBuilder, decision: Decision, alias: TableAlias) -> str | None:
    """Return the condition under which the decision holds for a record; None if it always holds."""
    if isinstance(decision, AlwaysAllowed):
        return None
    if not decision.cases:
        return "FALSE"
    return _join_conditions(" OR ", [_case_sql(builder, case, alias) for case in decision.cases])


def _case_sql(builder: StatementBuilder, case: DecisionCase, alias: TableAlias) -> str:
    parts = []
    if case.table_ids is not None:
        ids = ", ".join(map(literal, case.table_ids))
        parts.append(f"{alias.column(alias.table.columns[OWN_TABLE_COLUMN])} IN ({ids})")
    if case.conditions is not None:
        parts.append(_join_conditions(" OR ", [rule_sql(builder, condition, alias) for condition in case.conditions]))
    return _join_conditions(" AND ", parts) if parts else "TRUE"


def decision_conditions(builder: StatementBuilder, decision: Decision, alias: TableAlias) -> list[str]:
    """Return the condition of the decision as a list for a WHERE clause; empty if it always holds."""
    condition = decision_sql(builder, decision, alias)
    return [] if condition is None else [condition]


def guarded_value(builder: StatementBuilder, guard: Decision, alias: TableAlias, value: str) -> str:
    """Return the SQL of the value, or NULL where the guard does not hold."""
    condition = decision_sql(builder, guard, alias)
    return value if condition is None else f"CASE WHEN {condition} THEN {value} END"


def rule_sql(builder: StatementBuilder, condition: Expression, alias: TableAlias) -> str:
    """Compile the condition of a rule. Its paths have no guards, so that they ignore what the caller may read."""
    return expression_sql(builder, condition, alias, lambda path: _path_sql(builder, path, alias))


def _path_sql(builder: StatementBuilder, path: ResolvedPath, alias: TableAlias) -> str:
    """Return the value at the end of a path; each reference becomes a sub-select."""
    if not path.steps:
        return guarded_value(builder, path.guard, alias, alias.column(path.column))
    step = path.steps[0]
    reference = guarded_value(builder, step.guard, alias, alias.column(step.column))
    target = TableAlias(builder, step.target)
    value = _path_sql(builder, ResolvedPath(path.steps[1:], path.column, path.guard), target)
    conditions = [f"{target.sys_id()} = {reference}", *decision_conditions(builder, step.records, target)]
    return f"(SELECT {value} FROM {target.from_sql()} WHERE {' AND '.join(conditions)})"


def _related_sql(builder: StatementBuilder, related: RelatedRecords, value_of: PathSql) -> str:
    record = TableAlias(builder, related.table)

    def related_value_of(path: ResolvedPath) -> str:
        return _path_sql(builder, path, record)

    conditions = [f"{related_value_of(related.column)} = {value_of(related.path)}"]
    conditions += decision_conditions(builder, related.records, record)
    if related.part is not None:
        conditions.append(expression_sql(builder, related.part, record, related_value_of))
    rows = f"FROM {record.from_sql()} WHERE {' AND '.join(conditions)}"
    if (related.comparison, related.count) == (">=", 1):
        return f"EXISTS (SELECT {rows})"
    return f"((SELECT count(*) {rows}) {related.comparison} {related.count})"


def expression_sql(builder: StatementBuilder, condition: Expression, alias: TableAlias, value_of: PathSql) -> str:
    """Compile an expression; `value_of` returns the SQL of its paths."""
    match condition:
        case AllOf(parts):
            return _join_conditions(" AND ", [expression_sql(builder, part, alias, value_of) for part in parts])
        case AnyOf(parts):
            return _join_conditions(" OR ", [expression_sql(builder, part, alias, value_of) for part in parts])
        case ChildTablePredicate(table, part):
            child = TableAlias(builder, table)
            child_condition = rule_sql(builder, part, child)
            ids_match = f"{child.sys_id()} = {alias.sys_id()}"
            return f"EXISTS (SELECT FROM {child.from_sql()} WHERE {ids_match} AND {child_condition})"
        case RelatedRecords():
            return _related_sql(builder, condition, value_of)
        case Predicate():
            return _predicate_sql(builder, condition, alias, value_of)


def _predicate_sql(builder: StatementBuilder, predicate: Predicate, alias: TableAlias, value_of: PathSql) -> str:
    kind = predicate.condition.row.kind
    if kind in (ValueKind.TABLE, ValueKind.WORDS):
        sql = _family_sql(predicate, alias) if kind is ValueKind.TABLE else _words_sql(builder, predicate, value_of)
        # The condition is on the record's id, so it does not hold if the id is hidden.
        is_visible = isinstance(predicate.path.guard, AlwaysAllowed)
        return sql if is_visible else f"({value_of(predicate.path)} IS NOT NULL AND {sql})"
    name = predicate.condition.operator
    if name in ("ANYTHING", "NOTHING"):
        # These operators do not use the column, so its guard must not bind parameters that the text does not contain.
        return "TRUE" if name == "ANYTHING" else "FALSE"
    subject = ColumnSubject(predicate.path.column, value_of(predicate.path))
    other = ColumnSubject(predicate.other.column, value_of(predicate.other)) if predicate.other else None
    return ColumnConditionCompiler(builder, predicate.condition, predicate.slot, subject, other).sql()


def _family_sql(predicate: Predicate, alias: TableAlias) -> str:
    column = alias.table.columns.get(OWN_TABLE_COLUMN)
    if column is None:  # product tables extend no other table
        return "TRUE" if alias.table.id in predicate.table_ids else "FALSE"
    return f"({alias.column(column)} IN ({', '.join(map(literal, predicate.table_ids))}))"


def _words_sql(builder: StatementBuilder, predicate: Predicate, value_of: PathSql) -> str:
    """Each word must be in one of the columns. Each column has its own GIN index on this expression."""
    conditions = []
    for word in read_words(predicate.condition.value):
        query = f"plainto_tsquery('simple', {builder.parameter(lambda _, word=word: word, 'text')})"  # type: ignore[misc]
        columns = [f"to_tsvector('simple', {value_of(path)}) @@ {query}" for path in predicate.searched_paths]
        conditions.append(_join_conditions(" OR ", columns))
    return _join_conditions(" AND ", conditions)


def _join_conditions(separator: str, parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"({separator.join(parts)})"
