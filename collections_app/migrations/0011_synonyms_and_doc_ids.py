from django.db import migrations, models


def synonyms() -> models.TextField:
    return models.TextField(
        blank=True,
        db_default="",
        default="",
        help_text="Words that mean the same, one group a line, separated by commas: printer, MFP, multifunction "
        "device. A search for one also finds the others.",
    )


def doc_ids() -> models.BooleanField:
    return models.BooleanField(
        "document IDs from file names",
        db_default=False,
        default=False,
        help_text="A new document that is loaded without an ID gets its file name as its ID, instead of a number.",
    )


class Migration(migrations.Migration):
    dependencies = [("collections_app", "0010_each_document_has_its_language")]
    operations = [
        migrations.AddField(model, name, field())
        for model in ("collection", "historicalcollection")
        for name, field in (("synonyms", synonyms), ("doc_id_from_filename", doc_ids))
    ]
