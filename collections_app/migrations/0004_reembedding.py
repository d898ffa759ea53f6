from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("collections_app", "0003_indexes_of_the_queue")]
    operations = [
        migrations.AddField(
            model_name="collection",
            name="reembed_error",
            field=models.CharField(
                blank=True, default="", editable=False, max_length=300, verbose_name="re-embedding"
            ),
        ),
        migrations.AddField(
            model_name="collection",
            name="reembed_attempt",
            field=models.PositiveSmallIntegerField(default=0, editable=False),
        ),
        migrations.AddField(
            model_name="collection",
            name="reembed_at",
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="collection",
            name="has_old_vectors",
            field=models.BooleanField(default=False, editable=False),
        ),
    ]
