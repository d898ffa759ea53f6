from django.db import migrations, models

# What is too large from now on becomes the largest that is not; it counts for what is loaded from then on.
# A table whose foreign keys are still to be checked cannot be altered: they are checked at once.
CUT = """
SET CONSTRAINTS ALL IMMEDIATE;
UPDATE document_collection SET chunk_overlap = chunk_size / 2 WHERE chunk_overlap > chunk_size / 2
"""


class Migration(migrations.Migration):
    dependencies = [("collections_app", "0004_reembedding")]
    operations = [
        migrations.RunSQL(CUT, migrations.RunSQL.noop),
        migrations.RemoveConstraint(model_name="collection", name="document_collection_overlap"),
        migrations.AddConstraint(
            model_name="collection",
            constraint=models.CheckConstraint(
                condition=models.Q(("chunk_size__gte", models.F("chunk_overlap") * 2)),
                name="document_collection_overlap",
            ),
        ),
    ]
