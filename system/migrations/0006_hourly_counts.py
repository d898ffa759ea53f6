
"""Counts by hour, and an index with which the changes of an hour are counted."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('system', '0005_emptied_references'),
    ]

    operations = [
        migrations.CreateModel(
            name='HourlyCount',
            fields=[
                ('pk', models.CompositePrimaryKey('hour', 'kind', blank=True, editable=False, primary_key=True, serialize=False)),
                ('hour', models.DateTimeField()),
                ('kind', models.CharField(db_collation='C', max_length=20)),
                ('count', models.BigIntegerField()),
            ],
            options={
                'db_table': 'system_hourly_count',
            },
        ),
        # Small and cheap to write, since rows are stored in the order of their time. New partitions get it, too.
        migrations.RunSQL(
            "CREATE INDEX sys_change_at ON public.sys_change USING brin (at) "
            "WITH (pages_per_range = 32, autosummarize = on)",
            "DROP INDEX public.sys_change_at",
        ),
    ]
