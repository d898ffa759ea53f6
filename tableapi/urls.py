"""The addresses of the Table API, with and without a slash at the end."""

from django.urls import re_path

from tableapi.http.batch_views import BatchView
from tableapi.http.bulk_views import BulkView, UpsertView
from tableapi.http.change_views import ChangeFeedView, HistoryView
from tableapi.http.statistics_views import StatisticsView
from tableapi.http.table_views import TableViewSet

LIST_VIEW = TableViewSet.as_view({"get": "list", "post": "create"})
RECORD_VIEW = TableViewSet.as_view({"get": "retrieve", "put": "update", "patch": "partial_update", "delete": "destroy"})

urlpatterns = [
    re_path(r"^rest/v1/table/(?P<table>[^/]+)/?$", LIST_VIEW, name="records"),
    re_path(r"^rest/v1/table/(?P<table>[^/]+)/(?P<sys_id>[^/]+)/?$", RECORD_VIEW, name="record"),
    re_path(r"^rest/v1/table/(?P<table>[^/]+)/(?P<sys_id>[^/]+)/history/?$", HistoryView.as_view(), name="history"),
    re_path(r"^rest/v1/batch/?$", BatchView.as_view(), name="batch"),
    re_path(r"^rest/v1/bulk/(?P<table>[^/]+)/?$", BulkView.as_view(), name="bulk"),
    re_path(r"^rest/v1/upsert/(?P<table>[^/]+)/?$", UpsertView.as_view(), name="upsert"),
    re_path(r"^rest/v1/stats/(?P<table>[^/]+)/?$", StatisticsView.as_view(), name="statistics"),
    re_path(r"^rest/v1/changes/(?P<table>[^/]+)/?$", ChangeFeedView.as_view(), name="changes"),
]
