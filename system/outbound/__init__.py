"""HTTP client for URLs that an administrator entered, such as those of identity providers.

    check_url ──▶ names ──▶ addresses ──▶ channel ──▶ calls ──▶ response
    which URLs    the        which of      TCP and     one        status,
    are valid     addresses  them may      TLS to the  request    headers,
                  of a name  be called     checked IP  and reply  body, JSON

`calls` defines the order. `Policy` contains what the operator allows and all limits; `errors` lists the possible
errors. Nothing here reads settings, proxy variables or the database.
"""

from .calls import OutboundResponse, get, post_form, post_json
from .errors import OutboundError, OutboundFailed, OutboundRefused
from .policy import Policy
from .urls import CheckedUrl, check_url

__all__ = [
    "CheckedUrl", "OutboundError", "OutboundFailed", "OutboundRefused", "OutboundResponse", "Policy", "check_url",
    "get", "post_form", "post_json",
]  # fmt: skip
