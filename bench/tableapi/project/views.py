"""The comparison: an idiomatic DRF view of the same table."""

from typing import Any

from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django_filters.rest_framework import DjangoFilterBackend
from rest_framework.filters import OrderingFilter
from rest_framework.pagination import CursorPagination
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.request import Request
from rest_framework.serializers import (
    BaseSerializer,
    CharField,
    ListField,
    ModelSerializer,
    PrimaryKeyRelatedField,
)
from rest_framework.viewsets import ModelViewSet

from accounts import roles
from bench.tableapi.project.models import Task
from tableapi.models import Table

NEXT_NUMBER = """SELECT 'TSK' || lpad(nextval('records."N' || %s || '"')::text, 7, '0')"""


def reference_value(request: Request, table: str, sys_id: str) -> dict[str, str]:
    return {"value": sys_id, "link": request.build_absolute_uri(f"/rest/v1/table/{table}/{sys_id}")}


class ReferenceField(PrimaryKeyRelatedField):  # type: ignore[type-arg]
    """A reference as in responses of the Table API: id and link."""

    def __init__(self, table: str, **options: Any) -> None:
        super().__init__(**options)
        self.table = table

    def to_representation(self, value: Any) -> Any:
        return reference_value(self.context["request"], self.table, value.pk)


class FollowersField(ListField):
    child = CharField()

    def to_representation(self, data: Any) -> Any:
        return [reference_value(self.context["request"], "user", sys_id) for sys_id in data]


class TaskSerializer(ModelSerializer[Task]):
    """All columns."""

    serializer_related_field = ReferenceField
    followers_list = FollowersField(required=False, allow_null=True)

    class Meta:
        model = Task
        fields = "__all__"

    def build_relational_field(self, field_name: str, relation_info: Any) -> Any:
        field, options = super().build_relational_field(field_name, relation_info)
        table_name = relation_info.related_model._meta.db_table.rpartition(".")[2].strip('"')
        return field, {**options, "table": table_name}


class ShortTaskSerializer(ModelSerializer[Task]):
    """Five fields, three of them from referenced records."""

    assigned_user_login = CharField(source="assigned_user.login", default=None)
    assignment_group_name = CharField(source="assignment_group.name", default=None)
    caller_first_name = CharField(source="caller.first_name", default=None)

    class Meta:
        model = Task
        fields = ("number", "short_description", "assigned_user_login", "assignment_group_name", "caller_first_name")


class TaskPagination(CursorPagination):
    """Uses cursors, because page numbers would count the table for each response."""

    page_size = 20
    page_size_query_param = "limit"
    max_page_size = 10_000
    ordering = "sys_id"


class HasItilRole(BasePermission):
    def has_permission(self, request: Request, view: Any) -> bool:
        return bool(request.user.has_role(roles.ITIL))  # type: ignore[union-attr]


class TaskViewSet(ModelViewSet[Task]):
    """Tasks that the caller may read."""

    permission_classes = [IsAuthenticated, HasItilRole]
    pagination_class = TaskPagination
    filter_backends = [DjangoFilterBackend, OrderingFilter]
    filterset_fields = {"active": ["exact"], "priority": ["exact", "in"], "state": ["exact", "in"]}
    ordering_fields = ["opened_at", "sys_id"]

    @property
    def is_short(self) -> bool:
        return "short" in self.request.query_params

    def get_queryset(self) -> QuerySet[Task]:
        readable_tasks = Task.objects.filter(Q(active=True) | Q(caller=self.request.user.pk))
        references = ("assigned_user", "assignment_group", "caller")
        return readable_tasks.select_related(*references) if self.is_short else readable_tasks

    def get_serializer_class(self) -> type[BaseSerializer[Task]]:
        return ShortTaskSerializer if self.is_short else TaskSerializer

    @transaction.atomic
    def perform_create(self, serializer: BaseSerializer[Task]) -> None:
        table = Table.objects.get(name="task")
        with connection.cursor() as cursor:
            cursor.execute(NEXT_NUMBER, [table.pk])
            (number,) = cursor.fetchone()
        user = self.request.user
        serializer.save(
            number=number, display_name=number, sys_db_table_id=table, sys_created_by=user, sys_updated_by=user
        )

    @transaction.atomic
    def perform_update(self, serializer: BaseSerializer[Task]) -> None:
        assert serializer.instance is not None
        serializer.save(sys_updated_by=self.request.user, sys_version=serializer.instance.sys_version + 1)
