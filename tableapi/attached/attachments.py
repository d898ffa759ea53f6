"""Files attached to records. The database stores their bytes in pieces, so a database backup includes them."""

import hashlib
from collections.abc import Iterator
from typing import Any

from django.db import transaction

from system import properties
from system.errors import BadRequest, UnsupportedMediaType
from system.http.uploads import Upload, clean_filename
from system.plain_sql import server_binding_cursor
from system.property_definitions import ATTACHMENT_TYPES
from tableapi.catalogue.definitions import Catalogue
from tableapi.models import Attachment
from tableapi.query.parameters import RawParameters
from tableapi.read.catalogue_retry import on_current_catalogue
from tableapi.read.context import Caller
from tableapi.read.entry_pages import EntryPage, format_time

from .media_types import SAMPLE_BYTES, media_type
from .records import OpenRecord, open_record, open_writable_record


@on_current_catalogue
def read_attachments(catalogue: Catalogue, caller: Caller, table: str, sys_id: str, raw: RawParameters) -> EntryPage:
    return attachment_page(open_record(catalogue, caller, table, sys_id), raw)


def attachment_page(record: OpenRecord, raw: RawParameters) -> EntryPage:
    return record.page(Attachment, raw, attachment_entry)


@on_current_catalogue
def check_can_attach(catalogue: Catalogue, caller: Caller, table: str, sys_id: str) -> None:
    with transaction.atomic():
        open_writable_record(catalogue, caller, table, sys_id)


@on_current_catalogue
def create_attachment(catalogue: Catalogue, caller: Caller, table: str, sys_id: str, upload: Upload) -> Attachment:
    file_name = clean_filename(upload.filename)
    if not file_name:
        raise BadRequest("The file must have a name.", code="mandatory", field="file_name")
    content_type = _checked_type(upload, file_name)
    digest = hashlib.sha256()
    for piece in upload.parts():
        digest.update(piece)
    with transaction.atomic():
        record = open_writable_record(catalogue, caller, table, sys_id)
        attachment = Attachment.objects.create(
            **record.key_columns,
            file_name=file_name,
            content_type=content_type,
            size=upload.size,
            sha256=digest.hexdigest(),
        )
        with server_binding_cursor() as cursor:
            for number, piece in enumerate(upload.parts()):
                cursor.execute(
                    "INSERT INTO public.sys_attachment_piece (attachment_id, number, data) VALUES (%s, %s, %b)",
                    [attachment.pk, number, piece],
                )
        return attachment


@on_current_catalogue
def find_attachment(catalogue: Catalogue, caller: Caller, table: str, sys_id: str, attachment_id: str) -> Attachment:
    return open_record(catalogue, caller, table, sys_id).row(Attachment, attachment_id)


@on_current_catalogue
def delete_attachment(
    catalogue: Catalogue, caller: Caller, table: str, sys_id: str, attachment_id: str
) -> dict[str, Any]:
    with transaction.atomic():
        open_writable_record(catalogue, caller, table, sys_id).row(Attachment, attachment_id).delete()
    return {"sys_id": attachment_id}


def content_of(attachment: Attachment) -> Iterator[bytes]:
    """Yield the bytes in pieces. Ends early if the attachment is deleted concurrently."""
    statement = "SELECT data FROM public.sys_attachment_piece WHERE attachment_id = %s AND number = %s"
    bytes_read, number = 0, 0
    while bytes_read < attachment.size:
        with server_binding_cursor() as cursor:
            row = cursor.execute(statement, [attachment.pk, number], binary=True).fetchone()
        if row is None:
            return
        yield row[0]
        bytes_read, number = bytes_read + len(row[0]), number + 1


def attachment_entry(attachment: Attachment) -> dict[str, Any]:
    return {
        "sys_id": attachment.pk,
        "file_name": attachment.file_name,
        "content_type": attachment.content_type,
        "size": attachment.size,
        "sha256": attachment.sha256,
        "sys_created_at": format_time(attachment.sys_created_at),
        "sys_created_by": attachment.sys_created_by,
    }


def _checked_type(upload: Upload, file_name: str) -> str:
    upload.file.seek(0)
    content_type = media_type(upload.file.read(SAMPLE_BYTES), file_name)
    allowed_types = properties.get(ATTACHMENT_TYPES)
    if allowed_types and content_type not in allowed_types:
        raise UnsupportedMediaType(f"Attachments of the type {content_type} are not allowed.", field="file")
    return content_type
