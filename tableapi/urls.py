"""URLs of the Table API, with or without a trailing slash."""

from django.urls import re_path

from system.http.error_responses import FOREIGN_ERROR_BODIES
from tableapi.http import entry_views as entries
from tableapi.http.batch_views import BatchView
from tableapi.http.design_views import DesignApplyView, DesignPlanView, DesignView
from tableapi.http.import_views import ImportRunView, ImportsView, ImportUndoView, ImportView
from tableapi.http.table_views import BulkView, TableViewSet, UpsertView
from tableapi.servicenow import attachments as servicenow_files
from tableapi.servicenow import views as servicenow
from tableapi.servicenow.batch import ServiceNowBatch
from tableapi.servicenow.errors import PATH_PREFIX, error_body

LIST_VIEW = TableViewSet.as_view({"get": "list", "post": "create"})
RECORD_VIEW = TableViewSet.as_view({"get": "retrieve", "put": "update", "patch": "partial_update", "delete": "destroy"})
RECORD = r"^rest/v1/table/(?P<table>[^/]+)/(?P<sys_id>[^/]+)"
SERVICENOW = r"^api/now/(?:v[12]/)?"
ENTRY = r"(?P<entry>[0-9a-z]{1,32})"
IMPORTS = r"^rest/v1/import/(?P<table>[^/]+)"

FOREIGN_ERROR_BODIES[PATH_PREFIX] = error_body
urlpatterns = [
    re_path(rf"{SERVICENOW}table/(?P<table>[^/]+)/?$", servicenow.TableView.as_view()),
    re_path(rf"{SERVICENOW}table/(?P<table>[^/]+)/(?P<sys_id>[^/]+)/?$", servicenow.RecordView.as_view()),
    re_path(rf"{SERVICENOW}stats/(?P<table>[^/]+)/?$", servicenow.StatisticsView.as_view()),
    re_path(rf"{SERVICENOW}batch/?$", ServiceNowBatch.as_view()),
    re_path(rf"{SERVICENOW}attachment/?$", servicenow_files.AttachmentsView.as_view()),
    re_path(rf"{SERVICENOW}attachment/(?:file|upload)/?$", servicenow_files.UploadView.as_view()),
    re_path(rf"{SERVICENOW}attachment/{ENTRY}/?$", servicenow_files.AttachmentView.as_view()),
    re_path(rf"{SERVICENOW}attachment/{ENTRY}/file/?$", servicenow_files.AttachmentContentView.as_view()),
    re_path(r"^rest/v1/table/(?P<table>[^/]+)/?$", LIST_VIEW, name="records"),
    re_path(rf"{RECORD}/?$", RECORD_VIEW, name="record"),
    re_path(rf"{RECORD}/history/?$", entries.HistoryView.as_view(), name="history"),
    re_path(rf"{RECORD}/comments/?$", entries.CommentsView.as_view(), name="comments"),
    re_path(rf"{RECORD}/comments/{ENTRY}/?$", entries.CommentView.as_view(), name="comment"),
    re_path(rf"{RECORD}/attachments/?$", entries.AttachmentsView.as_view(), name="attachments"),
    re_path(rf"{RECORD}/attachments/{ENTRY}/?$", entries.AttachmentView.as_view(), name="attachment"),
    re_path(
        rf"{RECORD}/attachments/{ENTRY}/content/?$", entries.AttachmentContentView.as_view(), name="attachment-content"
    ),
    re_path(rf"{RECORD}/followers/me/?$", entries.FollowerView.as_view(), name="follower"),
    re_path(r"^rest/v1/notifications/?$", entries.NotificationsView.as_view(), name="notifications"),
    re_path(rf"^rest/v1/notifications/{ENTRY}/?$", entries.NotificationView.as_view(), name="notification"),
    re_path(rf"^rest/v1/restore/{ENTRY}/?$", entries.RestoreView.as_view(), name="restore"),
    re_path(r"^rest/v1/batch/?$", BatchView.as_view(), name="batch"),
    re_path(r"^rest/v1/bulk/(?P<table>[^/]+)/?$", BulkView.as_view(), name="bulk"),
    re_path(r"^rest/v1/upsert/(?P<table>[^/]+)/?$", UpsertView.as_view(), name="upsert"),
    re_path(rf"{IMPORTS}/?$", ImportsView.as_view(), name="imports"),
    re_path(rf"{IMPORTS}/{ENTRY}/?$", ImportView.as_view(), name="import"),
    re_path(rf"{IMPORTS}/{ENTRY}/run/?$", ImportRunView.as_view(), name="import-run"),
    re_path(rf"{IMPORTS}/{ENTRY}/undo/?$", ImportUndoView.as_view(), name="import-undo"),
    re_path(r"^rest/v1/stats/(?P<table>[^/]+)/?$", entries.StatisticsView.as_view(), name="statistics"),
    re_path(r"^rest/v1/changes/(?P<table>[^/]+)/?$", entries.ChangeFeedView.as_view(), name="changes"),
    re_path(r"^rest/v1/design/?$", DesignView.as_view(), name="design"),
    re_path(r"^rest/v1/design/plan/?$", DesignPlanView.as_view(), name="design-plan"),
    re_path(r"^rest/v1/design/apply/?$", DesignApplyView.as_view(), name="design-apply"),
]
