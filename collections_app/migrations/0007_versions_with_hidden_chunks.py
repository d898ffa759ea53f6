from django.db import migrations, models
from django.db.models import Q


class Migration(migrations.Migration):
    dependencies = [("collections_app", "0006_spaces_know_what_they_ask")]
    operations = [
        migrations.AddIndex(
            model_name="version",
            index=models.Index(
                fields=["collection"],
                condition=Q(is_searched=False, chunks_count__gt=0),
                name="document_version_hidden",
            ),
        )
    ]
