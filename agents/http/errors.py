"""Errors as JSON-RPC reports them. Does not import the SDK's types, because anonymous callers get errors too."""

from typing import Any

from system.errors import ServiceError
from system.strict_json import InvalidJson

PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR = -32700, -32600, -32603


class ProtocolError(ServiceError):
    """An error in a message. What goes wrong in a tool is part of its result instead."""

    def __init__(self, number: int, message: str, *, status: int = 400, data: Any = None) -> None:
        super().__init__(message)
        self.number, self.data = number, data
        self.request_id: Any = None
        self.status = status  # type: ignore[misc]


def error_body(error: ServiceError) -> dict[str, Any]:
    if isinstance(error, ProtocolError):
        request_id, number, data = error.request_id, error.number, error.data
    else:
        number = PARSE_ERROR if isinstance(error, InvalidJson) else INVALID_REQUEST
        number = INTERNAL_ERROR if error.status >= 500 else number
        request_id, data = None, {"errors": error.as_items()}
    details = {} if data is None else {"data": data}
    return {"jsonrpc": "2.0", "id": request_id, "error": {"code": number, "message": error.message, **details}}
