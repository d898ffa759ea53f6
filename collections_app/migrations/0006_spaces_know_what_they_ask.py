from typing import Any

from django.conf import settings
from django.db import migrations, models


def keep_what_was_asked(apps: Any, schema_editor: Any) -> None:
    """Until now the setting of the day decided for all of them."""
    if settings.EMBEDDING["dimensions"] is not None:
        spaces = apps.get_model("collections_app", "EmbeddingSpace").objects.using(schema_editor.connection.alias)
        spaces.filter(provider="openai").update(asks_dimensions=True)


class Migration(migrations.Migration):
    dependencies = [("collections_app", "0005_overlap_at_most_half")]
    operations = [
        migrations.AddField(
            model_name="embeddingspace",
            name="asks_dimensions",
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.RunPython(keep_what_was_asked, migrations.RunPython.noop),
        migrations.AddField(
            model_name="collection",
            name="reembed_after",
            field=models.BigIntegerField(db_default=0, default=0, editable=False),
        ),
    ]
