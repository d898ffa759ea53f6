"""The URL of MCP, with or without a trailing slash."""

from django.urls import re_path

from agents.http.errors import error_body
from agents.http.view import McpView
from system.http.error_responses import FOREIGN_ERROR_BODIES

FOREIGN_ERROR_BODIES["/mcp"] = error_body
urlpatterns = [re_path(r"^mcp/?$", McpView.as_view(), name="mcp")]
