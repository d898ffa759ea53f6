"""Evaluation endpoints: the questions of a collection, and the runs that measure its search quality with them."""

from collections.abc import Sequence
from typing import Any

from django.conf import settings
from rest_framework.generics import GenericAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from collections_app.evaluation import questions, runs
from collections_app.http import parameters, serializers
from collections_app.http.api import base
from collections_app.http.api import evaluation_serializers as schemas
from collections_app.models import EvaluationQuestion, EvaluationRun
from system import errors
from system.http import django_request, uploads
from system.openapi import describe

# Generators of clients support only the second one, so only that one is described.
FILE_TYPES = ("text/csv", "application/octet-stream")
QUESTION_FORMATS = {"application/json": schemas.QuestionListSerializer, FILE_TYPES[1]: bytes}


class EvaluationList(base.ManagementView, GenericAPIView[Any]):
    pagination_class = base.OffsetPagination

    def read_page(self, rows: Any) -> Sequence[Any]:
        parameters.refuse_unknown(self.request.query_params, base.OffsetPagination.parameter_names)
        page: Any = self.paginate_queryset(rows)
        return page  # type: ignore[no-any-return]


class EvaluationQuestions(EvaluationList):
    """The questions with which the search quality of a collection is measured. Only its writers can see them."""

    serializer_class = schemas.StoredQuestionSerializer
    queryset = EvaluationQuestion.objects.none()  # for the OpenAPI document
    http_method_names = [*base.ManagementView.http_method_names, "put"]

    @describe(
        "evaluation_questions_list", "List evaluation questions", {200: schemas.StoredQuestionSerializer(many=True)},
        errors.NotFound, errors.AccessDenied, errors.BadRequest, parameters=serializers.PAGE_HEADERS,
    )  # fmt: skip
    def get(self, request: Request, sys_id: str) -> Response:
        collection = self.open_collection(sys_id, "write")
        page = self.read_page(collection.evaluation_questions.all())
        context = {"missing": questions.missing_documents(collection, page)}
        return self.get_paginated_response(schemas.StoredQuestionSerializer(page, many=True, context=context).data)

    @describe(
        "evaluation_questions_add", "Add evaluation questions", {200: schemas.QuestionsChangeSerializer},
        errors.NotFound, errors.AccessDenied, errors.Conflict, request=QUESTION_FORMATS,
    )  # fmt: skip
    def post(self, request: Request, sys_id: str) -> Response:
        """Documents are added to a question that exists already. A file is JSON, or CSV with a row for each expected
        document and the columns `query`, `doc_id` and optionally `note`; its type can also be `text/csv`."""
        return self._store(request, sys_id, replaces=False)

    @describe(
        "evaluation_questions_replace", "Replace all evaluation questions", {200: schemas.QuestionsChangeSerializer},
        errors.NotFound, errors.AccessDenied, errors.Conflict, request=QUESTION_FORMATS,
    )  # fmt: skip
    def put(self, request: Request, sys_id: str) -> Response:
        return self._store(request, sys_id, replaces=True)

    def _store(self, request: Request, sys_id: str, *, replaces: bool) -> Response:
        collection = self.open_collection(sys_id, "write")
        if (request.content_type or "").partition(";")[0].strip() in FILE_TYPES:
            with uploads.receive_file(django_request(request), "", settings.DATA_UPLOAD_MAX_MEMORY_SIZE) as upload:
                entries = schemas.read_question_file(upload.content())
        else:
            entries = schemas.read_questions(request.data)
        counts = questions.store_questions(collection, entries, user_id=self.caller().pk, replaces=replaces)
        return Response({"status": "OK", **counts})


class EvaluationQuestionDetail(base.ManagementView):
    @describe(
        "evaluation_questions_delete", "Delete an evaluation question", {200: schemas.QuestionsChangeSerializer},
        errors.NotFound, errors.AccessDenied,
    )  # fmt: skip
    def delete(self, request: Request, sys_id: str, question: str) -> Response:
        collection = self.open_collection(sys_id, "write")
        questions.delete_question(collection, question)
        count = collection.evaluation_questions.count()
        return Response({"status": "OK", "added": 0, "deleted": 1, "questions_count": count})


class EvaluationRuns(EvaluationList):
    serializer_class = schemas.RunSerializer
    queryset = EvaluationRun.objects.none()  # for the OpenAPI document

    @describe(
        "evaluation_runs_list", "List evaluation runs", {200: schemas.RunSerializer(many=True)},
        errors.NotFound, errors.AccessDenied, errors.BadRequest, parameters=serializers.PAGE_HEADERS,
    )  # fmt: skip
    def get(self, request: Request, sys_id: str) -> Response:
        """Returns the last runs, newest first."""
        page = self.read_page(self.open_collection(sys_id, "write").evaluation_runs.defer("results"))
        return self.get_paginated_response(schemas.RunSerializer(page, many=True).data)

    @describe(
        "evaluation_runs_start", "Start an evaluation run", {202: schemas.RunSerializer},
        errors.NotFound, errors.AccessDenied, errors.Conflict, request=None,
    )  # fmt: skip
    def post(self, request: Request, sys_id: str) -> Response:
        """The worker runs it. If a run is in progress, returns that one."""
        run = runs.start_run(self.open_collection(sys_id, "write"), user_id=self.caller().pk)
        return Response(schemas.RunSerializer(run).data, status=202)


class EvaluationRunDetail(base.ManagementView):
    @describe(
        "evaluation_runs_read", "Read an evaluation run with its questions", {200: schemas.RunDetailSerializer},
        errors.NotFound, errors.AccessDenied,
    )  # fmt: skip
    def get(self, request: Request, sys_id: str, run: str) -> Response:
        """The results of each question, compared with the previous run."""
        found = self.open_collection(sys_id, "write").evaluation_runs.filter(pk=run).first()
        if found is None:
            raise errors.NotFound("The run does not exist.")
        results = schemas.QuestionResultSerializer(runs.compared_results(found), many=True).data
        return Response({**schemas.RunSerializer(found).data, "questions": results})
