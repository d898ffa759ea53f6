"""The errors of the dialect. Clients compare some of the texts."""

from collections.abc import Mapping
from typing import Any

from system import errors
from system.errors import NotFound, ServiceError

PATH_PREFIX = "/api/now/"
# The message and the detail by status. Others have the message of this service.
TEXTS: Mapping[int, tuple[str, str]] = {
    401: ("User Not Authenticated", "Required to provide Auth Information"),
    404: ("No Record found", "Record doesn't exist or ACL restricts the record retrieval"),
}
# ServiceNow's server answers before its API does.
TOO_LONG_PAGE = "<html><head><title>414 Request-URI Too Long</title></head><body>Request-URI Too Long</body></html>"
ACCESS_DENIED = "Operation Failed"


class InvalidTable(errors.BadRequest):
    """The table does not exist, or the caller can read none of it."""

    code = "table_not_found"

    def __init__(self, name: str) -> None:
        super().__init__(f"Invalid table {name[:80]}")


def error_body(error: ServiceError) -> dict[str, Any] | str:
    if error.status == 414:
        return TOO_LONG_PAGE
    message, detail = TEXTS.get(error.status, (error.message, ""))
    if error.status == 403:
        message, detail = ACCESS_DENIED, f"ACL Exception: {error.message}"
    elif error.status == 404 and not isinstance(error, NotFound):
        message, detail = error.message, ""
    elif error.status == 400 and error.other_errors:
        detail = " ".join(other.message for other in (error, *error.other_errors))
    return {"error": {"message": message, "detail": detail}, "status": "failure"}
