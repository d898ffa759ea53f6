"""The log of changes, partitioned by time: what is too old is dropped a month at a time."""

from django.db import migrations, models

MAKE = """
CREATE SEQUENCE public.sys_change_id AS bigint;
CREATE TABLE public.sys_change (
    id bigint NOT NULL DEFAULT nextval('public.sys_change_id'),
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    transaction xid8 NOT NULL DEFAULT pg_current_xact_id(),
    table_key varchar(63) COLLATE "C" NOT NULL,
    record_id varchar(32) COLLATE "C" NOT NULL,
    version integer NOT NULL,
    operation varchar(6) NOT NULL,
    changed_by varchar(32) COLLATE "C",
    old_values jsonb NOT NULL,
    new_values jsonb NOT NULL
) PARTITION BY RANGE (at);
CREATE INDEX sys_change_record ON public.sys_change (record_id, id);
CREATE INDEX sys_change_feed ON public.sys_change (table_key, transaction, id);
CREATE TABLE public.sys_change_other PARTITION OF public.sys_change DEFAULT;
"""

REMOVE = """
DROP TABLE public.sys_change;
DROP SEQUENCE public.sys_change_id;
"""


class Migration(migrations.Migration):
    dependencies = [("system", "0003_preparation")]
    operations = [
        migrations.RunSQL(
            MAKE,
            REMOVE,
            state_operations=[
                migrations.CreateModel(
                    name="Change",
                    fields=[
                        ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                        ("at", models.DateTimeField()),
                        ("table_key", models.CharField(max_length=63)),
                        ("record_id", models.CharField(max_length=32)),
                        ("version", models.IntegerField()),
                        ("operation", models.CharField(choices=[("create", "created"), ("update", "changed"), ("delete", "deleted")], max_length=6)),
                        ("changed_by", models.CharField(max_length=32, null=True)),
                        ("old_values", models.JSONField()),
                        ("new_values", models.JSONField()),
                    ],
                    options={"db_table": "sys_change", "managed": False},
                )
            ],
        )
    ]
