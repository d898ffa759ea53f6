import accounts.models.notification_choices
import django.contrib.postgres.fields
import django.utils.timezone
from django.db import migrations, models

REASONS = [
    ("assigned", "A record is assigned to me"),
    ("mentioned", "Somebody mentions me in a comment"),
    ("commented", "Somebody comments on a record that I follow"),
    ("changed", "A record that I follow changes"),
]


def copy_email_choice(apps, schema_editor):
    apps.get_model("accounts", "NotificationChoice").objects.filter(by_email=False).update(email_reasons=[])


class Migration(migrations.Migration):

    dependencies = [
        ("accounts", "0009_time_zone"),
    ]

    operations = [
        migrations.AddField(
            model_name="session",
            name="last_used_at",
            field=models.DateTimeField(default=django.utils.timezone.now),
        ),
        migrations.AddField(
            model_name="notificationchoice",
            name="email_reasons",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.CharField(choices=REASONS, max_length=10),
                blank=True,
                default=accounts.models.notification_choices.all_reasons,
                size=None,
            ),
        ),
        migrations.RunPython(copy_email_choice, migrations.RunPython.noop),
        migrations.RemoveField(model_name="notificationchoice", name="by_email"),
    ]
