"""The one door through which calls go to addresses that an administrator typed (identity providers).

    check_url ──▶ names ──▶ addresses ──▶ channel ──▶ calls ──▶ answer
    what may      which      which of      TCP and     one        status,
    be typed      addresses  them may      TLS to the  request    headers,
                  it has     be called     judged one  and reply  body, JSON

`calls` alone knows the order. `Policy` carries what the operator allows and every limit; `errors` draws what can go
wrong. Nothing here reads settings, the environment's proxies or a database.
"""

from .addresses import is_forbidden
from .answer import Answer
from .calls import get, post_form
from .errors import OutboundError, OutboundFailed, OutboundRefused
from .policy import Policy
from .strict_json import parse_json
from .urls import CheckedUrl, check_url

__all__ = [
    "Answer",
    "CheckedUrl",
    "OutboundError",
    "OutboundFailed",
    "OutboundRefused",
    "Policy",
    "check_url",
    "get",
    "is_forbidden",
    "parse_json",
    "post_form",
]
