"""The page that measures search quality: questions, uploads, runs, and questions kept from a search."""

import time
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from collections_app.evaluation import questions, runs
from collections_app.models import Collection, EvaluationRun
from tests.collections_app import library

pytestmark = pytest.mark.django_db
HTMX_HEADERS = {"HX-Request": "true"}


@pytest.fixture
def handbooks(db: Any) -> Collection:
    collection = library.make_library_collection(readers=("itil",))
    library.add_document(collection, doc_id="printers")
    return collection


def path(collection: Collection, name: str = "collection-evaluation", *ids: str) -> str:
    return reverse(name, args=[collection.pk, *ids])


def run_worker() -> None:
    while runs.continue_oldest_run(time.monotonic() + 30):
        pass


def test_question_is_added_run_and_deleted(as_carl: Client, handbooks: Collection):
    empty_page = as_carl.get(path(handbooks)).content.decode()
    assert "Run now" not in empty_page and "Add questions and the documents" in empty_page
    form = {"query": "<b>toner</b>", "doc_ids": "printers\r\ngone\r\n", "note": "asked often"}
    page = as_carl.post(path(handbooks), form, follow=True).content.decode()
    assert "Question saved." in page and "&lt;b&gt;toner&lt;/b&gt;" in page and "not run yet" in page
    assert ">handbook.md</a>" in page and "gone (does not exist)" in page and "asked often" in page

    page = as_carl.post(path(handbooks, "evaluation-start"), follow=True).content.decode()
    assert "Running: 0 of 1 questions" in page and "every 2s" in page and "Run now" not in page
    run_worker()
    part = as_carl.get(path(handbooks), headers={**HTMX_HEADERS, "HX-Target": "evaluation"}).content.decode()
    assert "nDCG@10 1.000" in part and "rank 1" in part and "every 2s" not in part and "<html" not in part

    (question,) = handbooks.evaluation_questions.all()
    delete_path = path(handbooks, "evaluation-question-delete", question.pk)
    confirmation = as_carl.post(delete_path).content.decode()
    assert "Delete this question?" in confirmation and f'<a href="{path(handbooks)}">Cancel</a>' in confirmation
    as_carl.post(delete_path, {"confirmed": "yes"})
    assert not handbooks.evaluation_questions.exists()


def test_changes_are_shown_worst_first(as_carl: Client, handbooks: Collection):
    entries = [{"query": query, "doc_ids": ["printers"]} for query in ("steady", "risen", "fallen")]
    questions.store_questions(handbooks, entries, user_id="")
    for ranks in ((1, 5, 2), (1, 3, None)):
        results = [
            {**entry, "id": "1", "missing_doc_ids": [], "rank": rank, "ndcg": 0.5}
            for entry, rank in zip(entries, ranks, strict=True)
        ]
        measures = {"ndcg_at_10": 0.5 + len(EvaluationRun.objects.all()) / 10, "hit_at_1": 0.1, "hit_at_5": 0.2,
                    "hit_at_10": 0.3, "questions": 3, "missing": 0}  # fmt: skip
        settings = {"alpha": None, "embedding_model": "local", "load_settings": ["1000/200 auto"]}
        handbooks.evaluation_runs.create(state="done", results=results, measures=measures, settings=settings)
    page = as_carl.get(path(handbooks)).content.decode()
    assert page.index("fallen") < page.index("risen") < page.index("steady")
    assert "not found, before 2" in page and "rank 3, before 5" in page and "+0.100" in page
    assert "passages 1000/200 auto" in page and "keyword weight of the model" in page


def test_result_of_a_search_is_kept_as_a_question(as_carl: Client, as_rita: Client, handbooks: Collection):
    search_path = reverse("collection", args=[handbooks.pk]) + "?query=red+lamp"
    assert "Keep as question" in as_carl.get(search_path).content.decode()
    assert "Keep as question" not in as_rita.get(search_path).content.decode()
    form = {"query": "red lamp", "doc_ids": "printers"}
    response = as_carl.post(path(handbooks), form, headers=HTMX_HEADERS)
    assert response.content.decode() == '<span class="small muted" role="status">Kept as question</span>'
    assert handbooks.evaluation_questions.get().doc_ids == ["printers"]
    refused = as_carl.post(path(handbooks), {**form, "query": "x" * 1001}, headers=HTMX_HEADERS)
    assert refused.status_code == 422


def test_files_are_uploaded(as_carl: Client, handbooks: Collection):
    for content, replaces in (
        (b"query,doc_id\na,printers\nb,printers\n", {}),
        (b'[{"query": "c", "doc_ids": ["x"]}]', {"replaces": "on"}),
    ):
        form = {"file": SimpleUploadedFile("questions", content), **replaces}
        page = as_carl.post(path(handbooks, "evaluation-upload"), form, follow=True).content.decode()
        assert "questions added" in page
    assert [question.query for question in handbooks.evaluation_questions.all()] == ["c"]


@pytest.mark.parametrize(
    "form", [{}, {"query": "x"}, {"query": " ", "doc_ids": "a"}, {"query": "x" * 1001, "doc_ids": "a"}]
)
def test_invalid_form_keeps_its_values(as_carl: Client, handbooks: Collection, form: dict[str, str]):
    response = as_carl.post(path(handbooks), form)
    assert response.status_code == 422 and 'role="alert"' in response.content.decode()
    assert form.get("query", "").strip() in response.content.decode()
    assert not handbooks.evaluation_questions.exists()


def test_invalid_file_and_start_without_questions_show_the_reason(as_carl: Client, handbooks: Collection):
    form = {"file": SimpleUploadedFile("questions.csv", b"a,b\n1,2\n")}
    assert "must name the columns" in as_carl.post(path(handbooks, "evaluation-upload"), form).content.decode()
    assert "Add questions first." in as_carl.post(path(handbooks, "evaluation-start")).content.decode()


def test_upload_requires_a_csrf_token(handbooks: Collection, carl: Any):
    client = Client(enforce_csrf_checks=True)
    client.force_login(carl)
    form = {"file": SimpleUploadedFile("questions.csv", b"query,doc_id\na,printers\n")}
    assert client.post(path(handbooks, "evaluation-upload"), form).status_code == 403
    assert not handbooks.evaluation_questions.exists()


@pytest.mark.parametrize("name", ["collection-evaluation", "evaluation-start", "evaluation-upload"])
def test_readers_and_strangers_have_no_page(as_rita: Client, as_bob: Client, handbooks: Collection, name: str):
    for client, status in ((as_rita, 403), (as_bob, 404)):
        for response in (client.get(path(handbooks, name)), client.post(path(handbooks, name), {"query": "x"})):
            assert response.status_code == status
    assert ">Evaluation</a>" not in as_rita.get(reverse("collection", args=[handbooks.pk])).content.decode()
