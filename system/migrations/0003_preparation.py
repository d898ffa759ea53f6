from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("system", "0002_initial")]
    operations = [
        migrations.CreateModel(
            name="Preparation",
            fields=[("stamp", models.CharField(max_length=64, primary_key=True, serialize=False))],
            options={"db_table": "system_preparation"},
        ),
    ]
