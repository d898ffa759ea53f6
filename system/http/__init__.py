"""Middleware, error responses, request bodies, ETags."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.http import HttpRequest
    from rest_framework.request import Request


def django_request(request: "Request") -> "HttpRequest":
    """The Django request that a DRF request wraps, for which DRF has no public attribute."""
    return request._request
