"""The choices of a column's type come from the table of column types, so that a new type needs no migration."""

from __future__ import annotations

from django.db import migrations, models

from tableapi.catalogue import column_types


def type_name() -> models.CharField:
    return models.CharField(choices=column_types.choices, default="string", max_length=20)


class Migration(migrations.Migration):
    dependencies = [("tableapi", "0003_lengths_of_at_least_one")]
    operations = [
        migrations.AlterField("column", "type", type_name()),
        migrations.AlterField("historicalcolumn", "type", type_name()),
    ]
