"""Serializers of the eight endpoints: the parameters they accept and the JSON they return, for the OpenAPI document.

Requests are read by `parameters`, which accepts each parameter from several places, and responses are built by
`responses`.
"""

from functools import partial
from typing import Any, ClassVar

from drf_spectacular.extensions import OpenApiSerializerExtension
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers as drf
from rest_framework.fields import empty

from collections_app.extract.file_formats import FORMAT_LABELS
from collections_app.http.parameters import (
    DEFAULT_K,
    MAX_CHARACTERS,
    MAX_COLLECTIONS,
    MAX_CONTEXT,
    MAX_K,
    MAX_QUERIES,
    MIN_CHARACTERS,
    ON_DUPLICATE_CHOICES,
    SEARCH_MODES,
)
from collections_app.models.collections import MAX_NAME_LENGTH
from collections_app.models.documents import VersionState
from collections_app.search.metadata_listing import DEFAULT_LIMIT, MAX_DOCUMENTS
from system.openapi import Object, response_header

FILTER_HELP = "An encoded query on metadata, such as `status=active^priority>2`. If empty, all documents match."
METADATA_HELP = (
    "`sys_id`, `status` and `type` are strings, `priority` is an integer, `flag` a boolean and `created` an ISO 8601 "
    "time in UTC. Other fields can hold any JSON value."
)
FREE_FORM_OBJECT: Object = {"type": "object", "additionalProperties": True}

SEARCH_HEADERS = [
    response_header(
        "X-Search-Mode",
        {"const": "text"},
        "`text` if the search used keywords only, because the embedding provider was unavailable.",
    ),
    response_header(
        "X-Rerank",
        {"const": "unavailable"},
        "`unavailable` if the passages were not sorted again, because the provider failed.",
    ),
]
PAGE_HEADERS = [
    response_header("X-Total-Count", {"type": "integer", "minimum": 0}, "The total number of entries."),
    response_header(
        "X-Next-Offset", {"type": "integer", "minimum": 1}, "The offset of the next page. Omitted on the last page."
    ),
]

count_field = partial(drf.IntegerField, min_value=0)


def schema_field(schema: Object, **options: Any) -> Any:
    """Creates a field with this schema, for types that DRF does not have."""
    return extend_schema_field(schema)(type("Field", (drf.Field,), {}))(**options)


weight_field = partial(schema_field, {"type": "number", "minimum": 0, "maximum": 1}, required=False)


class Parameters(drf.Serializer[Any]):
    # The parameters of an endpoint. Not a docstring, because it would become the description of each subclass.

    # Not required, but described as if they were.
    body_parameters: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(cls().fields)

    @classmethod
    def as_post_query_parameters(cls) -> "Parameters":
        """Returns the parameters that a POST also accepts in its query string.

        Required parameters are described only in the body, where generated clients then expect them. Defaults are
        omitted: a client that sends them could contradict its own body.

        >>> list(CollectionSearch.as_post_query_parameters().fields)[:4]
        ['k', 'metadata', 'mode', 'alpha']
        """
        serializer = cls()
        for name, field in list(serializer.fields.items()):
            field.default = empty
            if field.required or name in cls.body_parameters:
                del serializer.fields[name]
        return serializer


class ParametersExtension(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]
    target_class = Parameters
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> Object:
        schema: Object = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        return schema | {"additionalProperties": False}


class OneCollectionParameters(Parameters):
    collection_name = drf.CharField(min_length=1, max_length=MAX_NAME_LENGTH, help_text="The name of a collection.")


class LoadParameters(Parameters):
    metadata = schema_field(
        {
            "type": "string",
            "contentMediaType": "application/json",
            "contentSchema": FREE_FORM_OBJECT | {"description": METADATA_HELP},
        },
        required=False,
        help_text="The metadata, as the text of a JSON object.",
    )
    doc_id = drf.CharField(
        required=False,
        min_length=1,
        max_length=MAX_NAME_LENGTH,
        help_text="The ID of the document. Generated if omitted.",
    )
    on_duplicate = drf.ChoiceField(
        choices=list(ON_DUPLICATE_CHOICES.items()),
        default="skip",
        help_text="What to do if the document exists.",
    )
    wait = drf.BooleanField(
        default=True, help_text="If `false`, respond with 202 and process the document in the background."
    )


class FileLoadSerializer(LoadParameters):
    file = schema_field({"type": "string", "format": "binary"}, help_text=f"Supported formats: {FORMAT_LABELS}.")


class TextLoadSerializer(LoadParameters):
    text = drf.CharField(min_length=1, help_text="The text of the document.")
    metadata = schema_field(FREE_FORM_OBJECT, required=False, help_text=METADATA_HELP)


class SearchParameters(Parameters):
    body_parameters = ("query", "queries")  # one of them is required
    collection_names = drf.ListField(
        child=drf.CharField(), min_length=1, max_length=MAX_COLLECTIONS, help_text="The collections to search."
    )
    query = drf.CharField(
        required=False, min_length=1, help_text="The search query, at most 8 KB. Required without `queries`."
    )
    queries = drf.ListField(
        required=False,
        child=drf.CharField(),
        min_length=1,
        max_length=MAX_QUERIES,
        help_text="Several queries instead of one. The response is then an array with the passages of each query. "
        f"All queries together can ask for {MAX_K} passages.",
    )
    k = drf.IntegerField(min_value=1, max_value=MAX_K, default=DEFAULT_K, help_text="The maximum number of passages.")
    metadata = drf.CharField(required=False, allow_blank=True, help_text=FILTER_HELP)
    mode = drf.ChoiceField(choices=list(SEARCH_MODES.items()), default="hybrid", help_text="The retrieval method.")
    alpha = weight_field(
        help_text="The keyword weight in a hybrid search. Defaults to that of the collection or its model."
    )
    min_score = weight_field(
        help_text="Leaves out passages whose `scores.match` is lower. With 0.3, a query without sense finds nothing."
    )
    collapse = drf.BooleanField(
        default=False, help_text="If `true`, of passages with the same text only the best is returned."
    )
    group_by = drf.ChoiceField(
        required=False, choices=[("document", "only the best passage of each document")], help_text="Limits repetition."
    )
    context = drf.IntegerField(  # type: ignore[assignment]  # the field replaces a property of serializers
        required=False,
        min_value=0,
        max_value=MAX_CONTEXT,
        help_text="Adds this number of passages before and after each passage, and joins those that then touch or "
        "overlap. 0 only joins neighbours.",
    )
    max_characters = drf.IntegerField(
        required=False,
        min_value=MIN_CHARACTERS,
        max_value=MAX_CHARACTERS,
        help_text="The maximum length of all returned passages together. The last ones are left out, and a first one "
        "that is too long is cut.",
    )
    rerank = drf.BooleanField(
        default=False,
        help_text="If `true`, the best passages are sorted again by the provider that the operator has configured.",
    )


class CollectionSearch(SearchParameters):
    collection_names = None  # type: ignore[assignment]  # removes the inherited field


class ContentByTagParameters(OneCollectionParameters):
    tag_info = drf.CharField(required=False, allow_blank=True, help_text=FILTER_HELP)
    limit = drf.IntegerField(
        min_value=1, max_value=MAX_DOCUMENTS, default=DEFAULT_LIMIT, help_text="The maximum number of documents."
    )
    offset = drf.IntegerField(min_value=0, default=0, help_text="The number of documents to skip.")


class DeleteDocumentParameters(OneCollectionParameters):
    id_value = drf.CharField(min_length=1, help_text="The `doc_id` of the document to delete.")


class LoadResponseSerializer(drf.Serializer[Any]):
    status = schema_field({"const": "OK"})
    doc_id = drf.CharField()
    collection_name = drf.CharField()
    document_status = drf.ChoiceField(choices=VersionState.choices)
    duplicate = drf.BooleanField()
    chunks_count = count_field()
    pages = drf.IntegerField(allow_null=True)
    sha256 = drf.CharField()
    metadata = schema_field(FREE_FORM_OBJECT)
    status_url = drf.CharField()
    warnings = drf.ListField(child=drf.CharField())


class ScoresSerializer(drf.Serializer[Any]):
    vector = drf.FloatField(allow_null=True)
    text = drf.FloatField(allow_null=True)
    characters = drf.FloatField(allow_null=True)
    match = drf.FloatField()
    rerank = drf.FloatField(required=False, help_text="Only with `rerank`.")


class PassageSerializer(drf.Serializer[Any]):
    id = drf.CharField()
    type = schema_field({"const": "Document"})
    page_content = drf.CharField()
    metadata = schema_field(FREE_FORM_OBJECT)
    doc_id = drf.CharField()
    collection_name = drf.CharField()
    chunk_index = count_field()
    chunks_count = count_field()
    page = drf.IntegerField(allow_null=True)
    page_end = drf.IntegerField(allow_null=True)
    page_label = drf.CharField(allow_null=True)
    page_label_end = drf.CharField(allow_null=True)
    is_ocr = drf.BooleanField()
    char_start = count_field()
    char_end = count_field()
    heading_path = drf.ListField(child=drf.CharField())
    filename = drf.CharField()
    score = drf.FloatField()
    scores = ScoresSerializer()
    highlights = drf.ListField(child=drf.ListField(child=count_field(), min_length=2, max_length=2))


class ContentSerializer(drf.Serializer[Any]):
    doc_id = drf.CharField()
    collection_name = drf.CharField()
    page_content = drf.CharField()
    metadata = schema_field(FREE_FORM_OBJECT)
    filename = drf.CharField()
    chunks_count = count_field()
    created_at = drf.DateTimeField()
    updated_at = drf.DateTimeField()


class EmbeddingProgressSerializer(drf.Serializer[Any]):
    model = drf.CharField()
    total = count_field(help_text="The number of passages.")
    remaining = count_field(help_text="The number of passages without a vector, at least 1.")


class CollectionSerializer(drf.Serializer[Any]):
    collection_name = drf.CharField()
    documents_count = count_field()
    chunks_count = count_field()
    documents_by_status = drf.DictField(child=count_field())
    embedding_model = drf.CharField()
    embedding_progress = EmbeddingProgressSerializer(
        allow_null=True, help_text="The progress of a change to another embedding model, or `null`."
    )
    chunk_size = count_field()
    chunk_overlap = count_field()
    created_at = drf.DateTimeField()
    updated_at = drf.DateTimeField()


class DeletedDocumentSerializer(drf.Serializer[Any]):
    status = schema_field({"const": "OK"})
    collection_name = drf.CharField()
    doc_id = drf.CharField()
    deleted = schema_field({"const": True})
    deleted_chunks = count_field()


class DeletedCollectionSerializer(drf.Serializer[Any]):
    status = schema_field({"const": "OK"})
    collection_name = drf.CharField()
    deleted = schema_field({"const": True})
    deleted_documents = count_field()
    deleted_chunks = count_field()
