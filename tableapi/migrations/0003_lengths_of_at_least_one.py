"""A bound of the forms and the interface; the database stays as it is."""

from django.core.validators import MinValueValidator
from django.db import migrations, models


def length() -> models.PositiveIntegerField:
    at_least_one = MinValueValidator(1, "Only text has one, of at least 1.")
    return models.PositiveIntegerField(blank=True, null=True, validators=[at_least_one])


class Migration(migrations.Migration):
    dependencies = [("tableapi", "0002_records")]
    operations = [
        migrations.AlterField("column", "max_length", length()),
        migrations.AlterField("historicalcolumn", "max_length", length()),
    ]
