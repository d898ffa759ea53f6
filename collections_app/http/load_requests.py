"""Reads load requests, as arguments of `loading.load_document`, and recognizes the format of an uploaded file."""

from django.conf import settings

from collections_app import extract
from collections_app.http import parameters
from collections_app.http.parameters import RequestParameters
from collections_app.http.serializers import LoadParameters, OneCollectionParameters
from collections_app.ingest.loading import LoadOptions, LoadRequest
from system.errors import UnsupportedMediaType
from system.http.uploads import FILE_FIELD, Upload

OPTION_NAMES = LoadParameters.names()
PARAMETER_NAMES = (*OneCollectionParameters.names(), *OPTION_NAMES)


def from_upload(upload: Upload, options: LoadOptions) -> LoadRequest:
    try:
        format = extract.recognize_format(upload.content(), upload.filename, upload.declared_type)
    except UnsupportedMediaType as error:
        error.field = FILE_FIELD
        raise
    return {"data": upload.parts(), "size": upload.size, "filename": upload.filename, "format": format, **options}


def from_text(values: RequestParameters) -> LoadRequest:
    data = values.require("text", parameters.long_text_reader(settings.COLLECTIONS["text_limit"])).encode()
    return {"data": data, "size": len(data), "filename": "", "format": "text", **read_options(values)}


def read_options(values: RequestParameters) -> LoadOptions:
    return {
        "metadata": values.get("metadata", parameters.read_metadata) or {},
        "doc_id": values.get("doc_id", parameters.read_name),
        "on_duplicate": values.get("on_duplicate", parameters.choice_reader(parameters.ON_DUPLICATE_CHOICES)),
        "wants_to_wait": values.get("wait", parameters.read_boolean) is not False,
    }
