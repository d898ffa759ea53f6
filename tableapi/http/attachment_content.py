"""The response with the bytes of an attachment, for the API and for pages."""

from typing import TYPE_CHECKING

from django.http import HttpRequest
from django.utils.http import content_disposition_header

from system.http.stored_file import StoredFile, new_file
from tableapi.access.caller_view import record_not_found
from tableapi.attached.attachments import content_of
from tableapi.attached.media_types import IMAGE_TYPES

if TYPE_CHECKING:
    from tableapi.models import Attachment

# A file must not run scripts, even if a browser displays it.
CONTENT_POLICY = "sandbox; default-src 'none'"


def content_response(request: HttpRequest, attachment: "Attachment") -> StoredFile:
    """Only images are displayed; the browser saves all other files."""
    has_body = request.method == "GET"
    with new_file() as file:
        for piece in content_of(attachment) if has_body else ():
            file.write(piece)
        if has_body and file.tell() != attachment.size:
            raise record_not_found()  # deleted concurrently
    response = StoredFile(file.name, attachment.content_type)
    response["Content-Length"] = str(attachment.size)
    is_image = attachment.content_type in IMAGE_TYPES
    response["Content-Disposition"] = content_disposition_header(not is_image, attachment.file_name) or ""
    response["Content-Security-Policy"] = CONTENT_POLICY
    response["ETag"] = f'"{attachment.sha256}"'
    return response
