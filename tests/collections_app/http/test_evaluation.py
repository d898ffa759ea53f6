"""The evaluation endpoints: questions in JSON and CSV, runs, limits, and who can use them."""

import time
from typing import Any

import pytest

from collections_app.evaluation import questions, runs
from collections_app.http.api import evaluation_serializers as schemas
from collections_app.models import Collection, EvaluationRun
from tests.collections_app import library
from tests.collections_app.http.calls import API_PATH, KeyCaller, error_of, make_key_caller
from tests.support.users import make_user

pytestmark = pytest.mark.django_db
QUESTION = {"query": "When do I replace the toner?", "doc_ids": ["printers"], "note": "from the help desk"}


@pytest.fixture
def handbooks(db: Any) -> Collection:
    collection = library.make_library_collection(readers=("staff",), writers=("crew",))
    library.add_document(collection, doc_id="printers")
    return collection


@pytest.fixture
def writer(handbooks: Collection) -> KeyCaller:
    return make_key_caller(make_user("dora", "crew"))


@pytest.fixture
def base(handbooks: Collection) -> str:
    return f"{API_PATH}/{handbooks.pk}/evaluation"


def run_worker() -> None:
    while runs.continue_oldest_run(time.monotonic() + 30):
        pass


def stored_questions(writer: KeyCaller, base: str) -> dict[str, Any]:
    return {question["query"]: question for question in writer.get(f"{base}/questions").json()}


def test_questions_are_added_listed_replaced_and_deleted(writer: KeyCaller, base: str):
    other = {"query": "What is in the mailbox?", "doc_ids": ["printers", "gone"]}
    added = writer.post(f"{base}/questions", {"questions": [QUESTION, other]})
    assert added.json() == {"status": "OK", "added": 2, "deleted": 0, "questions_count": 2}
    first, second = writer.get(f"{base}/questions").json()
    assert {name: first[name] for name in QUESTION} == QUESTION and first["missing_doc_ids"] == []
    assert second["note"] == "" and second["missing_doc_ids"] == ["gone"]
    page = writer.get(f"{base}/questions", limit=1, offset=1)
    assert [entry["sys_id"] for entry in page.json()] == [second["sys_id"]] and page["X-Total-Count"] == "2"

    replaced = writer.send("PUT", f"{base}/questions", [{"query": QUESTION["query"], "doc_ids": ["new"]}])
    assert replaced.json() == {"status": "OK", "added": 0, "deleted": 1, "questions_count": 1}
    (question,) = stored_questions(writer, base).values()
    assert (question["sys_id"], question["doc_ids"], question["note"]) == (first["sys_id"], ["new"], "")
    assert writer.delete(f"{base}/questions/{first['sys_id']}").json()["questions_count"] == 0
    assert writer.delete(f"{base}/questions/{first['sys_id']}").status_code == 404


def test_documents_are_added_to_an_existing_question(writer: KeyCaller, base: str):
    for doc_ids in (["printers"], ["mail", "printers"]):
        writer.post(f"{base}/questions", {"questions": [{"query": " Toner? ", "doc_ids": doc_ids}]})
    assert stored_questions(writer, base)["Toner?"]["doc_ids"] == ["printers", "mail"]


@pytest.mark.parametrize(
    "content",
    [
        'query,doc_id,note\nWhat?,a,why\nWhat?,b,\n"Two, three?",c,',
        "query;doc_id;note\r\nWhat?;a;why\r\nWhat?;b;\r\nTwo, three?;c;\r\n",
        "\ufeffquery\tdoc_id\tnote\nWhat?\ta\twhy\nWhat?\tb\t\nTwo, three?\tc\t\n",
    ],
    ids=["commas", "semicolons", "tabs"],
)
def test_csv_has_a_row_for_each_expected_document(writer: KeyCaller, base: str, content: str):
    response = writer.send_raw(content.encode(), "text/csv; charset=utf-8", path=f"{base}/questions")
    assert response.json()["added"] == 2, response.content
    repeated = writer.send_raw(content.encode(), "application/octet-stream", path=f"{base}/questions")
    assert repeated.json()["questions_count"] == 2, repeated.content
    stored = stored_questions(writer, base)
    assert (stored["What?"]["doc_ids"], stored["What?"]["note"]) == (["a", "b"], "why")
    assert stored["Two, three?"]["doc_ids"] == ["c"]


@pytest.mark.parametrize(
    ("content", "field"),
    [
        (b"", "questions"), (b"question,doc\nx,y\n", "questions"), (b"query,doc_id\n,y\n", "questions.1.query"),
        (b"query,doc_id\nx\n", "questions.1.doc_ids.0"), (b"query,doc_id\nx,y,z,1\n", "questions"),
        (b"\x00\x01\x02\xff", "questions"), (b"[1]", "questions"), (b"{", None), (b"\xef\xbb\xbf[[[", None),
        (b"query,doc_id\n" + b"x" * 140_000 + b",y\n", "questions"),
    ],
)  # fmt: skip
def test_invalid_files_are_refused(writer: KeyCaller, base: str, content: bytes, field: str | None):
    response = writer.send_raw(content, "text/csv", path=f"{base}/questions")
    assert response.status_code in (400, 422), response.content
    if field is not None:
        assert (error_of(response)[2] or "").startswith(field), response.content
    assert stored_questions(writer, base) == {}


@pytest.mark.parametrize(
    "body",
    [
        {}, {"questions": {}}, {"questions": [1]}, {"questions": [QUESTION], "more": 1}, "text", 3, None,
        [{"query": "", "doc_ids": ["a"]}], [{"query": "x", "doc_ids": []}], [{"query": "x", "doc_ids": ["a\n"]}],
        [{"query": "x" * 1001, "doc_ids": ["a"]}], [{"query": "x", "doc_ids": ["a"] * 21}], [{**QUESTION, "rank": 1}],
        [{"query": "a\x00", "doc_ids": ["a"]}], [{"query": "x", "doc_ids": ["a" * 201]}], [{"query": 1.5}],
    ],
    ids=lambda body: str(body)[:30],
)  # fmt: skip
def test_invalid_bodies_are_refused(writer: KeyCaller, base: str, body: Any):
    response = writer.post(f"{base}/questions", body)
    assert response.status_code in (400, 422), response.content
    assert stored_questions(writer, base) == {}


def test_one_invalid_question_is_named_and_none_is_stored(writer: KeyCaller, base: str):
    response = writer.post(f"{base}/questions", [QUESTION, {"query": "x", "doc_ids": "printers"}])
    assert error_of(response) == (422, "invalid_value", "questions.2.doc_ids")
    assert stored_questions(writer, base) == {}


def test_limits(writer: KeyCaller, base: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(questions, "MAX_QUESTIONS", 2)
    entries = [{"query": f"Question {number}", "doc_ids": ["a"]} for number in range(3)]
    assert error_of(writer.post(f"{base}/questions", entries))[:2] == (409, "too_many_questions")
    assert writer.post(f"{base}/questions", entries[:2]).status_code == 200
    assert writer.send("PUT", f"{base}/questions", entries[1:]).json()["questions_count"] == 2
    for start in (0, 15):
        doc_ids = [f"document {number}" for number in range(start, start + 15)]
        response = writer.post(f"{base}/questions", [{"query": "Question 1", "doc_ids": doc_ids}])
    assert error_of(response)[:2] == (409, "too_many_questions")


@pytest.mark.parametrize(("count", "status"), [(3, 200), (4, 422)])
def test_number_of_rows_in_a_request_is_limited(
    writer: KeyCaller, base: str, monkeypatch: pytest.MonkeyPatch, count: int, status: int
):
    monkeypatch.setattr(schemas, "MAX_ENTRIES", 3)
    rows = "".join(f"What?,document {number}\n" for number in range(count))
    csv_file = writer.send_raw(f"query,doc_id\n{rows}".encode(), "text/csv", path=f"{base}/questions")
    json_list = writer.post(f"{base}/questions", [QUESTION] * count)
    assert (csv_file.status_code, json_list.status_code) == (status, status)


def test_run_is_started_and_read_with_its_questions(writer: KeyCaller, base: str):
    assert error_of(writer.post(f"{base}/runs")) == (409, "no_questions", None)
    writer.post(f"{base}/questions", [QUESTION])
    started = writer.post(f"{base}/runs")
    assert (started.status_code, started.json()["state"], started.json()["measures"]) == (202, "running", None)
    run_worker()
    writer.post(f"{base}/questions", [{"query": "full mailbox", "doc_ids": ["printers"]}])
    second = writer.post(f"{base}/runs").json()
    run_worker()

    run = writer.get(f"{base}/runs/{second['sys_id']}").json()
    assert list(run) == list(schemas.RunDetailSerializer().fields)
    assert (run["state"], run["measures"]["ndcg_at_10"], run["evaluated_questions"]) == ("done", 1.0, 2)
    assert [(result["change"], result["rank"], result["rank_before"]) for result in run["questions"]] == [
        ("same", 1, 1), ("new", 1, None)
    ]  # fmt: skip
    listed = writer.get(f"{base}/runs").json()
    assert [entry["sys_id"] for entry in listed] == [second["sys_id"], started.json()["sys_id"]]
    assert list(listed[0]) == list(schemas.RunSerializer().fields)
    assert writer.get(f"{base}/runs/0").status_code == 404
    assert writer.get(f"{base}/runs", foo=1).status_code == 400


def requests_of(caller: KeyCaller, base: str, question: str, run: str) -> list[Any]:
    return [
        caller.get(f"{base}/questions"),
        caller.post(f"{base}/questions", [QUESTION]),
        caller.send("PUT", f"{base}/questions", [QUESTION]),
        caller.delete(f"{base}/questions/{question}"),
        caller.get(f"{base}/runs"),
        caller.post(f"{base}/runs"),
        caller.get(f"{base}/runs/{run}"),
    ]


def test_only_writers_see_questions_and_runs(writer: KeyCaller, stranger: KeyCaller, base: str):
    writer.post(f"{base}/questions", [QUESTION])
    ids = writer.get(f"{base}/questions").json()[0]["sys_id"], writer.post(f"{base}/runs").json()["sys_id"]
    reader = make_key_caller(make_user("rosa", "staff"))
    for caller, status in ((reader, 403), (stranger, 404)):
        hidden, missing = requests_of(caller, base, *ids), requests_of(caller, base, "1", "1")
        assert {response.status_code for response in (*hidden, *missing)} == {status}
        assert [response.content for response in hidden] == [response.content for response in missing]
    absent = requests_of(stranger, f"{API_PATH}/179999999900000000/evaluation", *ids)
    assert [response.content for response in absent] == [
        response.content for response in requests_of(stranger, base, *ids)
    ]
    assert writer.get(f"{base}/questions").json() and EvaluationRun.objects.count() == 1


def test_questions_and_runs_of_another_collection_are_404(writer: KeyCaller, base: str):  # C02
    other = library.make_library_collection("others", writers=("crew",))
    questions.store_questions(other, [QUESTION], user_id="")
    question, run = other.evaluation_questions.get(), runs.start_run(other)
    assert writer.delete(f"{base}/questions/{question.pk}").status_code == 404
    assert writer.get(f"{base}/runs/{run.pk}").status_code == 404
    assert other.evaluation_questions.exists()
