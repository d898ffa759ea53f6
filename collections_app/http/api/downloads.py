"""Downloads of a document's original bytes.

Chosen: whole in memory. The web server would take pieces one by one only as fast as a caller reads them, with one of
its four threads waiting for each: four slow callers would stop a process. A whole answer waits for them without one.
"""

from __future__ import annotations

from io import BytesIO
from itertools import count

from django.http import HttpResponse
from django.utils.http import content_disposition_header

from collections_app.models import Version
from system.database_cursor import bound_cursor
from system.errors import NotFound


def download(version: Version, called: str, *, has_body: bool) -> HttpResponse:
    """Never by its own type: what somebody loaded must not run as a page of this service."""
    response = HttpResponse(whole(version) if has_body else b"", content_type="application/octet-stream")
    response["Content-Length"] = str(version.size)
    response["Content-Disposition"] = content_disposition_header(as_attachment=True, filename=called) or "attachment"
    response["Content-Security-Policy"] = "default-src 'none'; sandbox"
    return response


def whole(version: Version) -> bytes:
    """Piece after piece, so that they lie in memory once. Pieces never change, but they may go meanwhile."""
    found, numbers = BytesIO(), count()
    with bound_cursor() as cursor:
        while found.tell() < version.size:
            query = "SELECT data FROM document_piece WHERE version_id = %s AND number = %s"
            piece = cursor.execute(query, [version.pk, next(numbers)], binary=True).fetchone()
            if piece is None:
                raise NotFound("The document does not exist.")
            found.write(piece[0])
    return found.getvalue()
