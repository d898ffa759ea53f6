"""URLs of the workspace: `/tables/` and the pages beside it, whose names no table can take."""

from django.urls import path

from workspace.pages import home, options, search

urlpatterns = [
    path("find/", search.SearchPage.as_view(), name="find"),
    path("tables/", home.HomePage.as_view(), name="tables"),
    path("tables/<slug:table>/options/", options.OptionsView.as_view(), name="record-options"),
]
