"""Serializers of evaluations, and the reader of questions in JSON and CSV."""

import csv
import io
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from rest_framework import serializers

from collections_app.evaluation.comparison import CHANGES
from collections_app.evaluation.questions import MAX_QUESTIONS
from collections_app.extract.parsers.common import decoding
from collections_app.http.api.base import DocIdField, StrictSerializer, time_field
from collections_app.models import EvaluationQuestion
from collections_app.models.evaluation import MAX_EXPECTED_DOCUMENTS, MAX_NOTE_LENGTH, MAX_QUERY_LENGTH, RunState
from system.errors import InvalidInput, ServiceError
from system.http.error_responses import from_drf
from system.strict_json import parse_json

CSV_COLUMNS = ("query", "doc_id", "note")
WRONG_QUESTIONS = 'Send an array of questions, or {"questions": […]}.'
# Rows of a CSV file, or questions in JSON. Checking one takes 0.1 ms.
MAX_ENTRIES = MAX_QUESTIONS * MAX_EXPECTED_DOCUMENTS
TOO_MANY_ENTRIES = f"Send at most {MAX_ENTRIES:,} questions or rows at once."
WRONG_CSV = "The first line of the CSV file must name the columns query and doc_id, and optionally note."


class QuestionSerializer(StrictSerializer):
    """A question with the documents that answer it."""

    query = serializers.CharField(max_length=MAX_QUERY_LENGTH)
    doc_ids = serializers.ListField(
        child=DocIdField(),
        min_length=1,
        max_length=MAX_EXPECTED_DOCUMENTS,
        help_text="The `doc_id` of each document that answers the question.",
    )
    note = serializers.CharField(required=False, allow_blank=True, max_length=MAX_NOTE_LENGTH)


class QuestionListSerializer(serializers.Serializer[Any]):
    questions = QuestionSerializer(many=True)


class StoredQuestionSerializer(serializers.Serializer[Any]):
    """A question of a collection."""

    sys_id = serializers.CharField(source="id")
    query = serializers.CharField()
    doc_ids = serializers.ListField(child=serializers.CharField())
    note = serializers.CharField()
    missing_doc_ids = serializers.SerializerMethodField(help_text="Expected documents that do not exist.")
    created_at = time_field()

    def get_missing_doc_ids(self, question: EvaluationQuestion) -> list[str]:
        return [doc_id for doc_id in question.doc_ids if doc_id in self.context["missing"]]


class QuestionsChangeSerializer(serializers.Serializer[Any]):
    status = serializers.CharField()
    added = serializers.IntegerField()
    deleted = serializers.IntegerField()
    questions_count = serializers.IntegerField()


class MeasuresSerializer(serializers.Serializer[Any]):
    """Means over the questions of which an expected document exists."""

    ndcg_at_10 = serializers.FloatField(allow_null=True)
    hit_at_1 = serializers.FloatField(allow_null=True)
    hit_at_5 = serializers.FloatField(allow_null=True)
    hit_at_10 = serializers.FloatField(allow_null=True)
    questions = serializers.IntegerField()
    missing = serializers.IntegerField(help_text="Questions that were not measured: no expected document exists.")


class RunSerializer(serializers.Serializer[Any]):
    sys_id = serializers.CharField(source="id")
    state = serializers.ChoiceField(choices=RunState.choices)
    is_automatic = serializers.BooleanField(help_text="Whether a change of settings started the run.")
    error = serializers.CharField(help_text="Why the run failed or has to wait; empty if nothing went wrong.")
    created_at = time_field()
    finished_at = time_field(allow_null=True)
    evaluated_questions = serializers.IntegerField(source="results_count", help_text="The number so far.")
    settings = serializers.DictField(
        help_text="What decides the ranking: `embedding_model`, `alpha` (`null`: the weights of the model), a digest "
        "of the `synonyms`, and in `load_settings` chunk size, overlap and language with which the searched documents "
        "were loaded."
    )
    measures = MeasuresSerializer(allow_null=True, help_text="Null until the run is done.")


class QuestionResultSerializer(serializers.Serializer[Any]):
    query = serializers.CharField()
    doc_ids = serializers.ListField(child=serializers.CharField())
    missing_doc_ids = serializers.ListField(child=serializers.CharField())
    rank = serializers.IntegerField(allow_null=True, help_text="The rank of the first expected document.")
    rank_before = serializers.IntegerField(allow_null=True, help_text="The rank in the previous run.")
    ndcg = serializers.FloatField(allow_null=True)
    change = serializers.ChoiceField(choices=CHANGES)


class RunDetailSerializer(RunSerializer):
    questions = QuestionResultSerializer(many=True)


def read_questions(value: Any) -> list[dict[str, Any]]:
    """Returns the valid questions of a JSON value; raises the error of the first invalid one, with its position."""
    entries = value.get("questions") if isinstance(value, Mapping) and set(value) == {"questions"} else value
    if not isinstance(entries, list) or not all(isinstance(entry, Mapping) for entry in entries):
        raise InvalidInput(WRONG_QUESTIONS, field="questions")
    if len(entries) > MAX_ENTRIES:
        raise InvalidInput(TOO_MANY_ENTRIES, field="questions")
    return [_read_question(number, entry) for number, entry in enumerate(entries, start=1)]


def _read_question(number: int, entry: Mapping[str, Any]) -> dict[str, Any]:
    question = QuestionSerializer(data=entry)
    try:
        question.is_valid(raise_exception=True)
    except (ServiceError, serializers.ValidationError) as error:
        reason = error if isinstance(error, ServiceError) else from_drf(error)
        field = f"questions.{number}" + (f".{reason.field}" if reason.field else "")
        raise InvalidInput(f"Question {number}: {reason.message}", code=reason.code, field=field) from None
    values: dict[str, Any] = question.validated_data
    return values


def read_question_file(content: bytes) -> list[dict[str, Any]]:
    """Reads a JSON array, or CSV with a row for each expected document of a question."""
    if content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"[", b"{"):
        return read_questions(parse_json(content.removeprefix(b"\xef\xbb\xbf")))
    try:
        rows = _read_csv(decoding.decode(content))
    except (decoding.NotText, csv.Error):
        raise InvalidInput(WRONG_CSV, field="questions") from None
    return read_questions(rows)


def _read_csv(text: str) -> Sequence[Mapping[str, Any]]:
    """
    >>> _read_csv("query;doc_id\\nWhat is it?;a\\n")
    [{'query': 'What is it?', 'doc_ids': ['a'], 'note': ''}]
    """
    header = text.partition("\n")[0]
    delimiter = next((character for character in ";\t" if character in header), ",")
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    if not {"query", "doc_id"} <= set(reader.fieldnames or ()) <= set(CSV_COLUMNS):
        raise InvalidInput(WRONG_CSV, field="questions")
    rows: list[dict[str | None, str]] = list(islice(reader, MAX_ENTRIES + 1))
    if any(None in row for row in rows):
        raise InvalidInput("A row has more values than the first line. Quote values with commas.", field="questions")
    return [
        {"query": row["query"] or "", "doc_ids": [row["doc_id"] or ""], "note": row.get("note") or ""} for row in rows
    ]
