"""The addresses of the Table API, with and without a slash at the end."""

from django.urls import re_path

from tableapi.http.table_views import TableViewSet

MANY = TableViewSet.as_view({"get": "list", "post": "create"})
ONE = TableViewSet.as_view({"get": "retrieve", "put": "update", "patch": "partial_update", "delete": "destroy"})

urlpatterns = [
    re_path(r"^rest/v1/table/(?P<table>[^/]+)/?$", MANY, name="records"),
    re_path(r"^rest/v1/table/(?P<table>[^/]+)/(?P<sys_id>[^/]+)/?$", ONE, name="record"),
]
