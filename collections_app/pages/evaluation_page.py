"""The tab on which writers of a collection measure its search quality."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.decorators import method_decorator
from django.utils.html import format_html
from django.views.decorators.csrf import csrf_exempt, csrf_protect

from collections_app import access
from collections_app.evaluation import questions, runs
from collections_app.evaluation.comparison import CHANGES
from collections_app.http.api.evaluation_serializers import read_question_file, read_questions
from collections_app.models import Collection, Document, EvaluationRun
from collections_app.models.evaluation import RunState
from collections_app.pages.views import CollectionPage, confirmation_page
from system.errors import ServiceError
from system.http import uploads

URL_NAME = "collection-evaluation"


class EvaluationPage(CollectionPage):
    """`/collections/{sys_id}/evaluation/`: the runs, the questions with their ranks, and forms to add questions."""

    def get(self, request: HttpRequest, sys_id: str) -> HttpResponse:
        return self.show(access.open_collection_by_id(self.user(), sys_id, "write"))

    def post(self, request: HttpRequest, sys_id: str) -> HttpResponse:
        collection = access.open_collection_by_id(self.user(), sys_id, "write")
        try:
            return self.change(collection)
        except ServiceError as error:
            if self.requested_part() is not None:
                raise
            return self.show(collection, error)

    def change(self, collection: Collection) -> HttpResponse:
        """Adds a question, from the form of this page or from a result of a search."""
        form = self.request.POST
        lines = [line.rstrip("\r") for line in form.get("doc_ids", "").split("\n")]
        entry: dict[str, Any] = {name: form.get(name, "") for name in ("query", "note")}
        entries = read_questions([entry | {"doc_ids": [line for line in lines if line.strip()]}])
        questions.store_questions(collection, entries, user_id=self.user().pk)
        if self.requested_part() is not None:
            return HttpResponse(format_html('<span class="small muted" role="status">{}</span>', "Kept as question"))
        messages.success(self.request, "Question saved.")
        return redirect(URL_NAME, collection.pk)

    def show(self, collection: Collection, error: ServiceError | None = None) -> HttpResponse:
        last_runs = list(collection.evaluation_runs.defer("results"))
        page = self.requested_page(question_rows(collection, last_runs))
        add_documents(collection, page)
        is_part = self.requested_part() == "evaluation"
        context = {} if is_part else self.tab_context(collection, "evaluation")
        context |= {
            "collection": collection,
            "runs": run_rows(last_runs),
            "running": next((run for run in last_runs if run.state == RunState.RUNNING), None),
            "page": page,
            "error": error,
        }
        template = "evaluation_results" if is_part else "evaluation"
        return render(self.request, f"collections/{template}.html", context, status=error.status if error else 200)


class StartEvaluation(EvaluationPage):
    def change(self, collection: Collection) -> HttpResponse:
        runs.start_run(collection, user_id=self.user().pk)
        return redirect(URL_NAME, collection.pk)


class DeleteQuestion(CollectionPage):
    def post(self, request: HttpRequest, sys_id: str, question: str) -> HttpResponse:
        collection = access.open_collection_by_id(self.user(), sys_id, "write")
        if "confirmed" not in request.POST:
            return confirmation_page(request, "Delete this question?", collection, tab=URL_NAME)
        questions.delete_question(collection, question)
        return redirect(URL_NAME, sys_id)


@method_decorator(csrf_exempt, name="dispatch")  # otherwise, the check reads the body of people who are not signed in
class UploadQuestions(EvaluationPage):
    def change(self, collection: Collection) -> HttpResponse:
        with uploads.receive_upload(self.request, settings.DATA_UPLOAD_MAX_MEMORY_SIZE) as upload:
            return self._store(self.request, collection, upload)

    @method_decorator(csrf_protect)
    def _store(self, request: HttpRequest, collection: Collection, upload: uploads.Upload) -> HttpResponse:
        entries, replaces = read_question_file(upload.content()), "replaces" in request.POST
        counts = questions.store_questions(collection, entries, user_id=self.user().pk, replaces=replaces)
        text = "{added} questions added, {deleted} deleted. The collection now has {questions_count}."
        messages.success(request, text.format(**counts))
        return redirect(URL_NAME, collection.pk)


def run_rows(last_runs: list[EvaluationRun]) -> list[dict[str, Any]]:
    """The finished runs, each with the difference to the one before, unless their numbers of questions differ."""
    rows: list[dict[str, Any]] = []
    previous: dict[str, Any] = {}
    for run in reversed(last_runs):
        measures = run.measures or {}
        is_compared = measures.get("questions") and measures["questions"] == previous.get("questions")
        difference = round(measures["ndcg_at_10"] - previous["ndcg_at_10"], 4) if is_compared else None
        if run.state != RunState.RUNNING:
            rows.insert(0, {"run": run, "difference": difference})
        previous = measures or previous
    return rows


def question_rows(collection: Collection, last_runs: list[EvaluationRun]) -> list[dict[str, Any]]:
    """The questions with their results in the last complete run; those that got worse come first."""
    last_run = next((run for run in last_runs if run.state == RunState.DONE), None)
    results = {result["query"]: result for result in runs.compared_results(last_run)} if last_run else {}
    rows = [
        {"question": question, **results.get(question.query, {})} for question in collection.evaluation_questions.all()
    ]
    order = {change: position for position, change in enumerate(CHANGES)}
    return sorted(rows, key=lambda row: order.get(row.get("change", ""), len(order)))


def add_documents(collection: Collection, rows: Any) -> None:
    """Adds the expected documents to each row: pairs of `doc_id` and document, or None if it does not exist."""
    doc_ids = {doc_id for row in rows for doc_id in row["question"].doc_ids}
    found = Document.objects.filter(collection=collection, deleted_at=None, doc_id__in=doc_ids).select_related("newest")
    documents = {document.doc_id: document for document in found}
    for row in rows:
        row["documents"] = [(doc_id, documents.get(doc_id)) for doc_id in row["question"].doc_ids]
