"""Middleware, error responses, request bodies, ETags."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from django.http import HttpRequest
    from rest_framework.request import Request


def django_request(request: "Request") -> "HttpRequest":
    """The Django request inside the one of Django REST framework, which has no public name for it."""
    return request._request
