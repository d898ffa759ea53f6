"""Downloads of a document's original bytes.

The content is loaded into memory. If it were streamed, each slow client would block one of the four threads of a
process; a complete response is sent by the web server without a thread.
"""

from io import BytesIO
from itertools import count

from django.http import HttpResponse
from django.utils.http import content_disposition_header

from collections_app.models import Version
from system.errors import NotFound
from system.plain_sql import bound_cursor


def download_response(version: Version, filename: str, *, has_body: bool) -> HttpResponse:
    """Never with the file's own media type: an uploaded file must not run as a page of this service."""
    response = HttpResponse(read_pieces(version) if has_body else b"", content_type="application/octet-stream")
    response["Content-Length"] = str(version.size)
    response["Content-Disposition"] = content_disposition_header(as_attachment=True, filename=filename) or "attachment"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


def read_pieces(version: Version) -> bytes:
    """Reads piece by piece, so that memory holds them once. Pieces never change, but can be deleted concurrently."""
    content, numbers = BytesIO(), count()
    with bound_cursor() as cursor:
        while content.tell() < version.size:
            query = "SELECT data FROM document_piece WHERE version_id = %s AND number = %s"
            piece = cursor.execute(query, [version.pk, next(numbers)], binary=True).fetchone()
            if piece is None:
                raise NotFound("The document does not exist.")
            content.write(piece[0])
    return content.getvalue()
