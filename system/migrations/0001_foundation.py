"""The vector extension, and the function that makes every record's id: the tables of the next migrations need them."""

from django.db import migrations

MAKE = """
CREATE EXTENSION IF NOT EXISTS vector;

CREATE SEQUENCE public.svc_sys_id_sequence MINVALUE 0 MAXVALUE 99999999 START 0 CYCLE CACHE 1;

CREATE FUNCTION public.svc_new_sys_id() RETURNS varchar LANGUAGE sql VOLATILE PARALLEL UNSAFE
SET search_path = pg_catalog AS $$
    SELECT lpad(floor(extract(epoch FROM clock_timestamp()))::bigint::text, 10, '0')
        || lpad(nextval('public.svc_sys_id_sequence')::text, 8, '0')
$$;
"""

REMOVE = """
DROP FUNCTION public.svc_new_sys_id();
DROP SEQUENCE public.svc_sys_id_sequence;
"""


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [migrations.RunSQL(MAKE, REMOVE)]
