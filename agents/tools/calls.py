"""Calls a tool, and turns errors into answers from which an agent can learn."""

import re
from typing import Any

import structlog
from pydantic import ValidationError

from agents.tools import tables
from agents.tools.records import QUERY_LANGUAGE
from agents.tools.registry import Agent, Tool
from system.errors import AccessDenied, InvalidParameter, ServiceError, combine_errors
from system.http.error_responses import to_service_error

logger = structlog.get_logger(__name__)

MAY_NOT_WRITE = "This access key may not write through MCP. Its owner can create one that may, on the account page."
# What the errors of the endpoints name, and its name in tools.
NAMES = (
    (r"To send display values(?: instead)?, set sysparm_input_display_value=1\.", "query_records finds it."),
    (r"sysparm_(?:(sum|avg|min|max|count_distinct)_fields)?", r"\1"),
    ("Idempotency-Key", "idempotency_key"),
    ("collection_names", "collections"),
)
HINTS = {
    "table_not_found": "list_tables shows the tables that you can use.",
    "record_not_found": "query_records finds the sys_id of the records that you can read.",
    "stale": "read_record shows the current values and sys_version.",
    "invalid_query": QUERY_LANGUAGE,
}


def call(agent: Agent, tool: Tool, arguments: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The answer of the tool, and whether it is an error."""
    answer, error = _try_call(agent, tool, arguments)
    code = error.code if error else None
    logger.info("tool_called", tool=tool.listing.name, user_id=agent.user.pk, key_id=agent.key.pk, error=code)
    answer = answer if error is None else _error_answer(agent, error, arguments.get("table"))
    return {name: value for name, value in answer.items() if value is not None}, error is not None


def _try_call(agent: Agent, tool: Tool, arguments: dict[str, Any]) -> tuple[dict[str, Any], ServiceError | None]:
    try:
        if tool.writes and not agent.may_write:
            raise AccessDenied(MAY_NOT_WRITE, code="mcp_writes_off")
        values = tool.arguments.model_validate(arguments)
        return tool.function(agent, **{name: getattr(values, name) for name in tool.arguments.model_fields}), None
    except ValidationError as invalid:
        return {}, combine_errors([_argument_error(problem) for problem in invalid.errors()])
    except Exception as exception:
        error = to_service_error(exception, agent.user)
        if error is None:
            raise
        return {}, error


def _argument_error(problem: Any) -> InvalidParameter:
    name = ".".join(map(str, problem["loc"]))[:80]
    return InvalidParameter(f"The argument {name} is invalid: {problem['msg']}.", field=name)


def _error_answer(agent: Agent, error: ServiceError, table: Any) -> dict[str, Any]:
    items = error.as_items()
    for item in items:
        item |= {name: _with_tool_names(str(item[name])) for name in ("message", "field") if name in item}
    hints = [HINTS.get(error.code, "")]
    if error.code in ("invalid_query", "unknown_field", "no_fields"):
        hints.append(tables.columns_hint(agent, table))
    return {"errors": items, "hint": "\n".join(filter(None, hints)) or None}


def _with_tool_names(text: str) -> str:
    for pattern, name in NAMES:
        text = re.sub(pattern, name, text)
    return text
