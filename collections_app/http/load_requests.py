"""Reads the parameters of a load request, and recognizes the format of an uploaded file."""

from collections.abc import Callable
from typing import Any

from django.conf import settings

from collections_app import extract
from collections_app.http import parameters
from collections_app.http.parameters import RequestParameters
from collections_app.http.serializers import LoadParameters, OneCollectionParameters
from collections_app.http.uploads import FILE, Upload
from collections_app.ingest.loading import LoadRequest
from system.errors import UnsupportedMediaType

OPTIONS = LoadParameters.names()
PARAMETERS = (*OneCollectionParameters.names(), *OPTIONS)


def from_upload(upload: Upload, values: RequestParameters, check: Callable[[], object] | None = None) -> LoadRequest:
    """A load request for an uploaded file, whose content, name and media type must agree.

    `check` refuses callers who are not allowed to load, before the file is read.
    """
    options = _options(values)
    if check is not None:
        check()
    try:
        format = extract.recognise(upload.content(), upload.filename, upload.declared)
    except UnsupportedMediaType as error:
        error.field = FILE
        raise
    return LoadRequest(data=upload.parts(), size=upload.size, filename=upload.filename, format=format, **options)


def from_text(values: RequestParameters) -> LoadRequest:
    text = values.require("text", parameters.long_text(settings.COLLECTIONS["text_limit"]))
    data = text.encode()
    return LoadRequest(data=data, size=len(data), filename="", format="text", **_options(values))


def _options(values: RequestParameters) -> dict[str, Any]:
    return {
        "metadata": values.get("metadata", parameters.metadata) or {},
        "doc_id": values.get("doc_id", parameters.name_of),
        "on_duplicate": values.get("on_duplicate", parameters.choice(parameters.ON_DUPLICATE)) or "skip",
        "wants_to_wait": values.get("wait", parameters.switch) is not False,
    }
