"""Foreign keys that take rows along, and how wide values are stored: what Django's models cannot say."""

from django.db import migrations

CASCADES = (
    ("document_piece", "version_id", "document_version", "id"),
    ("document_text", "version_id", "document_version", "id"),
    ("chunk", "version_id", "document_version", "id"),
    ("chunk_words", "chunk_id", "chunk", "id"),
    ("chunk_vector", "chunk_id", "chunk", "id"),
    ("term_count", "collection_id", "document_collection", "sys_id"),
)

MAKE = "".join(
    f"ALTER TABLE {table} ADD CONSTRAINT {table}_{column}_goes FOREIGN KEY ({column}) "
    f"REFERENCES {other} ({key}) ON DELETE CASCADE;\n"
    for table, column, other, key in CASCADES
)
# No vector of another length than its space's.
MAKE += """
ALTER TABLE chunk_vector ADD CONSTRAINT chunk_vector_space FOREIGN KEY (space_id, dimensions)
    REFERENCES embedding_space (id, dimensions);
ALTER TABLE chunk_vector ADD CONSTRAINT chunk_vector_dimensions CHECK (vector_dims(embedding) = dimensions);
-- Beside the row, not in a table of its own: a scan reads them all.
ALTER TABLE chunk_vector ALTER COLUMN embedding SET STORAGE PLAIN;
ALTER TABLE chunk_words ALTER COLUMN weights SET STORAGE MAIN;
-- Read by nothing but its index.
ALTER TABLE chunk_words ALTER COLUMN terms SET STORAGE EXTERNAL;
-- Already compressed, most of it.
ALTER TABLE document_piece ALTER COLUMN data SET STORAGE EXTERNAL;
"""

REMOVE = "".join(f"ALTER TABLE {table} DROP CONSTRAINT {table}_{column}_goes;\n" for table, column, _, _ in CASCADES)
REMOVE += """
ALTER TABLE chunk_vector DROP CONSTRAINT chunk_vector_space;
ALTER TABLE chunk_vector DROP CONSTRAINT chunk_vector_dimensions;
"""


class Migration(migrations.Migration):
    dependencies = [("collections_app", "0001_initial")]
    operations = [migrations.RunSQL(MAKE, REMOVE)]
