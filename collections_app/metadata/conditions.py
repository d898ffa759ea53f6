"""One condition on metadata as SQL: its field, its values and its restrictions. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from system.encoded_query import Condition, Moment, Path, QueryError

from .fields import Field, Kind, Sql
from .operands import Reader


@dataclass(frozen=True, slots=True)
class MetadataCondition:
    """One condition with its field, and the time and user that its values depend on."""

    field: Field
    condition: Condition
    moment: Moment

    @property
    def reader(self) -> Reader:
        return Reader(self.field, self.condition, self.moment)

    def other(self, path: Path) -> Field:
        return Field(self.field.column, path)

    def only(self, *kinds: Kind) -> None:
        """Refuse the operator on fields of other kinds; untyped fields support every operator."""
        refuse_unless(self.condition, self.field, *kinds)


def refuse_unless(condition: Condition, field: Field, *kinds: Kind) -> None:
    if field.kind is not Kind.ANY and field.kind not in kinds:
        raise QueryError(
            f"{condition.operator} cannot be used with {field.name}, a field of {field.kind}", condition.position
        )


# The SQL of an operator for the values of its field.
Row = Callable[[MetadataCondition], Sql]


def not_empty(restriction: MetadataCondition) -> Sql:
    if restriction.field.kind is not Kind.ANY:
        return Sql(f"{restriction.field.subject().key} IS NOT NULL")
    return restriction.field.holds(Sql("""item.value NOT IN ('null'::jsonb, '""'::jsonb, '{}'::jsonb, '[]'::jsonb)"""))
