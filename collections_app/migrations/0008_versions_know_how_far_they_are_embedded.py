from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("collections_app", "0007_versions_with_hidden_chunks")]
    operations = [
        migrations.AddField(
            model_name="version",
            name="embedded_to",
            field=models.JSONField(
                db_default=models.Value({}, models.JSONField()), default=dict, editable=False
            ),
        )
    ]
