"""The schema of designed tables, and the one row with the version of the catalogue."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("tableapi", "0001_initial"), ("system", "0001_foundation")]
    operations = [
        migrations.RunSQL("CREATE SCHEMA IF NOT EXISTS records", "DROP SCHEMA records CASCADE"),
        migrations.RunSQL("CREATE SEQUENCE public.tableapi_version START 2", "DROP SEQUENCE public.tableapi_version"),
        migrations.RunSQL(
            "INSERT INTO tableapi_state (id, version, shipped_level) VALUES (1, 1, 0) ON CONFLICT DO NOTHING",
            migrations.RunSQL.noop,
        ),
    ]
