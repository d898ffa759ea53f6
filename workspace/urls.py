"""URLs of the workspace: `/tables/` and what is below it, and pages beside it, whose names could be those of tables."""

from django.urls import path

from tableapi.attached import attachments, comments, followers
from workspace.pages import (
    access,
    design_files,
    designer,
    home,
    imports,
    list_columns,
    list_edit,
    notifications,
    record,
    saved_lists,
    search,
)
from workspace.pages import list as list_page
from workspace.pages.activity import ActivityAction, ActivityPage, AttachmentFile, UploadAction

TABLE = "tables/<slug:table>/"
RECORD = f"{TABLE}<slug:sys_id>/"
COMMENT, ATTACHMENT = f"{RECORD}comments/<slug:entry>/", f"{RECORD}attachments/<slug:entry>/"

create_comment = ActivityAction.as_view(action=comments.create_comment, takes_text=True)
change_comment = ActivityAction.as_view(action=comments.change_comment, takes_text=True)
mark_notification = notifications.NotificationsPage.as_view(http_method_names=["post", "options"])
delete_attachment = ActivityAction.as_view(action=attachments.delete_attachment)

urlpatterns = [
    path("access/", access.AccessPage.as_view(), name="access"),
    path("design-files/", design_files.DesignFilesPage.as_view(), name="design-files"),
    path("design-files/export/", design_files.DesignExport.as_view(), name="design-export"),
    path("find/", search.SearchPage.as_view(), name="find"),
    path("notifications/", notifications.NotificationsPage.as_view(), name="notifications"),
    path("notifications/<slug:entry>/", mark_notification, name="notification-read"),
    path("design/", designer.DesignListPage.as_view(), name="design"),
    path("design/any-table/", designer.TableDesignPage.as_view(), name="design-any-table"),
    path("design/<slug:table>/preview/", designer.PreviewView.as_view(), name="design-preview"),
    path("design/<slug:table>/condition/", designer.ConditionView.as_view(), name="design-condition"),
    path("design/<slug:table>/delete/", designer.TableDeletionPage.as_view(), name="design-delete"),
    path("design/<slug:table>/", designer.TableDesignPage.as_view(), name="design-table"),
    path("tables/", home.HomePage.as_view(), name="tables"),
    # The list of a table.
    path(TABLE, list_page.ListPage.as_view(), name="table-list"),
    path(f"{TABLE}options/", search.OptionsView.as_view(), name="record-options"),
    path(f"{TABLE}fields/", search.FieldsView.as_view(), name="table-fields"),
    path(f"{TABLE}export/", list_page.ExportView.as_view(), name="list-export"),
    path(f"{TABLE}columns/", list_columns.ColumnsPage.as_view(), name="list-columns"),
    path(f"{TABLE}bulk/", list_edit.BulkPage.as_view(), name="list-bulk"),
    path(f"{TABLE}import/", imports.NewImportPage.as_view(), name="import-new"),
    path(f"{TABLE}import/<slug:sys_id>/", imports.ImportPage.as_view(), name="import"),
    path(f"{TABLE}saved/", saved_lists.SavedListPage.as_view(), name="saved-list-new"),
    path(f"{TABLE}saved/<slug:sys_id>/", saved_lists.SavedListPage.as_view(), name="saved-list"),
    # A record. Fixed names come before ids.
    path(f"{TABLE}new/", record.NewRecordPage.as_view(), name="record-new"),
    path(RECORD, record.RecordPage.as_view(), name="record-page"),
    path(f"{RECORD}delete/", record.DeletePage.as_view(), name="record-delete"),
    path(f"{RECORD}related/", record.RelatedView.as_view(), name="record-related"),
    path(f"{RECORD}cell/<slug:column>/", list_edit.CellView.as_view(), name="list-cell"),
    path(f"{RECORD}activity/", ActivityPage.as_view(), name="record-activity"),
    path(f"{RECORD}follow/", ActivityAction.as_view(action=followers.follow), name="record-follow"),
    path(f"{RECORD}unfollow/", ActivityAction.as_view(action=followers.unfollow), name="record-unfollow"),
    path(f"{RECORD}comments/", create_comment, name="record-comments"),
    path(COMMENT, change_comment, name="record-comment"),
    path(f"{COMMENT}delete/", ActivityAction.as_view(action=comments.delete_comment), name="record-comment-delete"),
    path(f"{RECORD}attachments/", UploadAction.as_view(), name="record-attachments"),
    path(ATTACHMENT, AttachmentFile.as_view(), name="record-attachment"),
    path(f"{ATTACHMENT}delete/", delete_attachment, name="record-attachment-delete"),
    path(f"{ATTACHMENT}pages/<int:number>/", AttachmentFile.as_view(), name="record-attachment-page"),
]
