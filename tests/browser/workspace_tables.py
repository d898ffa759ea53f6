"""The table of the browser tests of forms: everybody may work with its records."""

from tests.config.stack import Stack, manage

CREATE_TABLES = """
from tableapi.design import saving
from tableapi.models import Choice, Column, Rule, Table, View, ViewColumn

def table(name, label, *columns):
    table = Table(name=name, label=label)
    saving.save_table(table)
    for column in columns:
        choices = column.pop("choices", {})
        column = Column(table=table, **column)
        saving.save_column(column)
        for position, (value, text) in enumerate(choices.items()):
            saving.save_choice(Choice(column=column, value=value, label=text, position=position))
    for operation in ("create", "read", "write", "delete"):
        saving.save_rule(Rule(operation=operation, table=table))
    return table

STATES = {"1": "New", "2": "In use", "3": "Retired"}
maker = table("maker", "Maker", dict(name="name", label="Name", type="string", is_display=True))
table(
    "asset", "Asset",
    dict(name="name", label="Name", type="string", is_display=True, mandatory=True),
    dict(name="state", label="State", type="choice", choices=STATES, default_value="1"),
    dict(name="maker", label="Maker", type="reference", reference_table=maker),
    dict(name="makers", label="Other makers", type="list", reference_table=maker),
    dict(name="bought", label="Bought on", type="date"),
    dict(name="seen", label="Last seen", type="datetime"),
    dict(name="warranty", label="Warranty", type="duration"),
    dict(name="worth", label="Worth left", type="percent"),
    dict(name="data", label="Data", type="json"),
    dict(name="story", label="Story", type="wysiwyg"),
    dict(name="notes", label="Notes", type="text"),
)
"""


def create_tables(product: Stack) -> None:
    completed = manage("shell", "-c", CREATE_TABLES, env=product.env)
    assert completed.returncode == 0, completed.stderr
