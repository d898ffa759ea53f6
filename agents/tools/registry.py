"""A tool: a function with typed arguments that an agent calls by name."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import mcp_types as mcp
from django.http import HttpRequest
from pydantic import BaseModel, ConfigDict, create_model

from accounts.models import AccessKey, User
from tableapi.read.context import Caller

Function = Callable[..., dict[str, Any]]


class Agent:
    """The caller of a tool: the owner of an access key, with its limits."""

    def __init__(self, user: User, request: HttpRequest) -> None:
        assert user.access_key is not None  # no other credentials are accepted
        self.user, self.request = user, request
        self.key: AccessKey = user.access_key
        self.may_write = self.key.mcp_writes and not self.key.read_only
        self.caller = Caller.of(user)


@dataclass(frozen=True)
class Tool:
    listing: mcp.Tool
    function: Function
    arguments: type[BaseModel]
    writes: bool


TOOLS: dict[str, Tool] = {}
# The default of arguments that are lists of names.
NO_NAMES: list[str] = []


def tool(*, writes: bool = False, description: str = "") -> Callable[[Function], Function]:
    """Registers a function. Its name, docstring (or `description`) and annotated parameters are what an agent sees."""

    def register(function: Function) -> Function:
        fields: dict[str, Any] = {
            name: (parameter.annotation, ... if parameter.default is parameter.empty else parameter.default)
            for name, parameter in inspect.signature(function).parameters.items()
            if name != "agent"
        }
        name = function.__name__
        arguments = create_model(name, __config__=ConfigDict(extra="forbid", strict=True), **fields)
        listing = mcp.Tool(
            name=name,
            description=description or inspect.cleandoc(function.__doc__ or ""),
            input_schema=arguments.model_json_schema(),
            annotations=mcp.ToolAnnotations(read_only_hint=not writes, open_world_hint=False),
        )
        TOOLS[name] = Tool(listing, function, arguments, writes)
        return function

    return register
