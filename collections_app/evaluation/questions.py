"""Keeps the questions of a collection: at most 1,000, each with its own text."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import transaction

from collections_app.models import Collection, Document, EvaluationQuestion
from collections_app.models.evaluation import MAX_EXPECTED_DOCUMENTS
from system.errors import Conflict, NotFound

MAX_QUESTIONS = 1000
TOO_MANY_QUESTIONS = f"A collection can have at most {MAX_QUESTIONS:,} questions."
TOO_MANY_DOCUMENTS = f"A question can have at most {MAX_EXPECTED_DOCUMENTS} expected documents."
Entry = Mapping[str, Any]


def store_questions(
    collection: Collection, entries: Iterable[Entry], *, user_id: str, replaces: bool = False
) -> dict[str, int]:
    """Adds questions; those with the text of an existing one add their documents to it. Returns what was changed.

    With `replaces`, the entries become the only questions of the collection.
    """
    with lock_questions(collection):
        stored = {question.query: question for question in collection.evaluation_questions.all()}
        changed: dict[str, EvaluationQuestion] = {}
        for entry in entries:
            query = entry["query"]
            question = stored.get(query) or EvaluationQuestion(
                collection=collection, query=query, doc_ids=[], created_by=user_id
            )
            if replaces and query not in changed:
                question.doc_ids, question.note = [], ""
            question = changed.setdefault(query, question)
            question.doc_ids = list(dict.fromkeys([*question.doc_ids, *entry["doc_ids"]]))
            question.note = entry.get("note") or question.note
            if len(question.doc_ids) > MAX_EXPECTED_DOCUMENTS:
                raise Conflict(TOO_MANY_DOCUMENTS, code="too_many_questions", field="doc_ids")
        deleted_ids = [question.pk for query, question in stored.items() if replaces and query not in changed]
        count = len(stored.keys() | changed.keys()) - len(deleted_ids)
        if count > MAX_QUESTIONS:
            raise Conflict(TOO_MANY_QUESTIONS, code="too_many_questions", field="questions")
        added = EvaluationQuestion.objects.bulk_create(
            [question for query, question in changed.items() if query not in stored]
        )
        EvaluationQuestion.objects.bulk_update(
            [changed[query] for query in stored if query in changed], ["doc_ids", "note"]
        )
        EvaluationQuestion.objects.filter(pk__in=deleted_ids).delete()
    return {"added": len(added), "deleted": len(deleted_ids), "questions_count": count}


def delete_question(collection: Collection, question_id: str) -> None:
    if not collection.evaluation_questions.filter(pk=question_id).delete()[0]:
        raise NotFound("The question does not exist.")


def missing_documents(collection: Collection, questions: Sequence[EvaluationQuestion]) -> set[str]:
    """Returns the expected documents that the collection does not have."""
    doc_ids = {doc_id for question in questions for doc_id in question.doc_ids}
    documents = Document.objects.filter(collection=collection, deleted_at=None, doc_id__in=doc_ids).order_by()
    return doc_ids - set(documents.values_list("doc_id", flat=True))


@contextmanager
def lock_questions(collection: Collection) -> Iterator[None]:
    """Lets one transaction change the questions and start runs of a collection, and none after its deletion."""
    with transaction.atomic():
        if Collection.lock(collection.pk) is None:
            raise NotFound("The collection does not exist.")
        yield
