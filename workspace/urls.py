"""URLs of the workspace, below `/tables/`."""

from django.urls import path

from tableapi.attached import attachments, comments, followers
from workspace.pages import (
    fields,
    home,
    list,
    list_bulk,
    list_cell,
    list_columns,
    list_export,
    notifications,
    options,
    saved_lists,
)
from workspace.pages.activity import ActivityAction, ActivityPage
from workspace.pages.activity_files import AttachmentFile, AttachmentPageImage, UploadAction

RECORD = "<slug:table>/<slug:sys_id>/"
COMMENT, ATTACHMENT = f"{RECORD}comments/<slug:entry>/", f"{RECORD}attachments/<slug:entry>/"
create_comment = ActivityAction.as_view(action=comments.create_comment, takes_text=True)
change_comment = ActivityAction.as_view(action=comments.change_comment, takes_text=True)

urlpatterns = [
    path("", home.HomePage.as_view(), name="tables"),
    path("notifications/", notifications.NotificationsPage.as_view(), name="notifications"),
    path("notifications/<slug:entry>/", notifications.NotificationAction.as_view(), name="notification"),
    path("<slug:table>/options/", options.OptionsView.as_view(), name="record-options"),
    path("<slug:table>/fields/", fields.FieldsView.as_view(), name="table-fields"),
    path("<slug:table>/", list.ListPage.as_view(), name="table-list"),
    path("<slug:table>/export/", list_export.ExportView.as_view(), name="list-export"),
    path("<slug:table>/columns/", list_columns.ColumnsPage.as_view(), name="list-columns"),
    path("<slug:table>/bulk/", list_bulk.BulkPage.as_view(), name="list-bulk"),
    path("<slug:table>/saved/", saved_lists.SavedListPage.as_view(), name="saved-list-new"),
    path("<slug:table>/saved/<slug:sys_id>/", saved_lists.SavedListPage.as_view(), name="saved-list"),
    path("<slug:table>/<slug:sys_id>/cell/<slug:column>/", list_cell.CellView.as_view(), name="list-cell"),
]

urlpatterns += [
    path(f"{RECORD}activity/", ActivityPage.as_view(), name="record-activity"),
    path(f"{RECORD}follow/", ActivityAction.as_view(action=followers.follow), name="follow"),
    path(f"{RECORD}unfollow/", ActivityAction.as_view(action=followers.unfollow), name="unfollow"),
    path(f"{RECORD}comments/", create_comment, name="record-comments"),
    path(COMMENT, change_comment, name="record-comment"),
    path(f"{COMMENT}delete/", ActivityAction.as_view(action=comments.delete_comment), name="delete-comment"),
    path(f"{RECORD}attachments/", UploadAction.as_view(), name="record-attachments"),
    path(ATTACHMENT, AttachmentFile.as_view(), name="record-attachment"),
    path(
        f"{ATTACHMENT}delete/", ActivityAction.as_view(action=attachments.delete_attachment), name="delete-attachment"
    ),
    path(f"{ATTACHMENT}pages/<int:number>/", AttachmentPageImage.as_view(), name="attachment-page"),
]
