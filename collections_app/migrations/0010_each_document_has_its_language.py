from django.db import migrations, models

COLLECTIONS = """
    UPDATE document_collection SET unmarked_configuration = text_configuration,
        text_configuration = CASE WHEN is_language_guessed THEN '' ELSE text_configuration END
    WHERE text_configuration <> ''
"""
VERSIONS = """
    UPDATE document_version version SET text_configuration = collection.unmarked_configuration
    FROM document_collection collection
    WHERE collection.sys_id = version.collection_id AND version.chunks_count > 0
"""
# The chunks of a language are counted as a word's are; until now all of a collection were of one.
COUNTS = """
    INSERT INTO term_count (collection_id, term, chunks)
    SELECT sys_id, ('x' || substr(md5(sys_id || ':language ' || unmarked_configuration), 1, 16))::bit(64)::bigint, chunks
    FROM term_count JOIN document_collection ON sys_id = collection_id
    WHERE term = 0 AND unmarked_configuration <> ''
    ON CONFLICT DO NOTHING
"""


def named() -> models.CharField:
    return models.CharField(blank=True, db_default="", default="", editable=False, max_length=63)


class Migration(migrations.Migration):
    dependencies = [("collections_app", "0009_a_guessed_language_is_known")]
    operations = [
        migrations.AddField("collection", "unmarked_configuration", named()),
        migrations.AddField("historicalcollection", "unmarked_configuration", named()),
        migrations.AddField("version", "text_configuration", named()),
        *[migrations.RunSQL(each, migrations.RunSQL.noop) for each in (COLLECTIONS, VERSIONS, COUNTS)],
        migrations.RemoveField("collection", "is_language_guessed"),
        migrations.RemoveField("historicalcollection", "is_language_guessed"),
    ]
