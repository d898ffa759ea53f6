from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0003_composed_logins'),
    ]

    operations = [
        migrations.AddField(
            model_name='user',
            name='slow_at',
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name='user',
            name='slow_statements',
            field=models.PositiveSmallIntegerField(db_default=0, default=0, editable=False),
        ),
    ]
