"""URLs of the workspace, below `/tables/`."""

from django.urls import path

from workspace.pages import fields, home, list, list_bulk, list_cell, list_columns, list_export, options, saved_lists

urlpatterns = [
    path("", home.HomePage.as_view(), name="tables"),
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
