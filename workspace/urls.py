"""URLs of the workspace, below `/tables/`."""

from django.urls import path

from workspace.pages import home, options

urlpatterns = [
    path("", home.HomePage.as_view(), name="tables"),
    path("<slug:table>/options/", options.OptionsView.as_view(), name="record-options"),
]
