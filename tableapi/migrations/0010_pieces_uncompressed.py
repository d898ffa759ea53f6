from django.db import migrations

# Files are rarely compressible, and would be compressed again under the lock of their record.
FORWARDS = "ALTER TABLE public.sys_attachment_piece ALTER COLUMN data SET STORAGE EXTERNAL"
BACKWARDS = "ALTER TABLE public.sys_attachment_piece ALTER COLUMN data SET STORAGE EXTENDED"


class Migration(migrations.Migration):
    dependencies = [("tableapi", "0009_set_rules")]
    operations = [migrations.RunSQL(FORWARDS, BACKWARDS)]
