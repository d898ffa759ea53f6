"""`./run mcp`: MCP on standard input and output, for clients that start their servers.

Usage: SERVICEBASE_KEY=sb_… ./run mcp [URL]

Passes each message to the service at URL, SERVICEBASE_URL or http://127.0.0.1:8000. SERVICEBASE_KEY is an access key.
"""

import json
import os
import re
import sys
import urllib.request
from http.client import HTTPException
from typing import Any

TIMEOUT_S = 120.0
INTERNAL_ERROR = -32603
# Another key cannot be sent in a header, and the error would contain it.
KEY = re.compile("[!-~]+")


class PlainResponses(urllib.request.HTTPErrorProcessor):
    """Returns errors, which are messages too, and redirects, which would send the key to another address."""

    def http_response(self, request: Any, response: Any) -> Any:
        return response

    https_response = http_response


OPENER = urllib.request.build_opener(PlainResponses)


def main(arguments: list[str]) -> int:
    key = os.environ.get("SERVICEBASE_KEY", "").strip()
    if not KEY.fullmatch(key) or len(arguments) > 1 or arguments[:1] == ["--help"]:
        sys.stderr.write(__doc__ or "")
        return 1
    service = arguments[0] if arguments else os.environ.get("SERVICEBASE_URL") or "http://127.0.0.1:8000"
    for line in filter(bytes.strip, sys.stdin.buffer):
        answer = pass_on(f"{service.rstrip('/')}/mcp", key, line)
        if answer is not None:
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()
    return 0


def pass_on(url: str, key: str, line: bytes) -> dict[str, Any] | None:
    """The response of the service, or an error; None to a notification."""
    message = read_object(line)  # the service refuses what is none
    try:
        with OPENER.open(urllib.request.Request(url, line, headers(key, message)), timeout=TIMEOUT_S) as response:
            problem, answer = f"HTTP status {response.status}", read_object(response.read())
    except (OSError, ValueError, HTTPException) as error:
        problem, answer = str(error) or type(error).__name__, {}
    if "jsonrpc" not in answer:
        text = f"There was no response of MCP from {url}: {problem}"
        answer = {"jsonrpc": "2.0", "error": {"code": INTERNAL_ERROR, "message": text}}
    if not message:
        return {**answer, "id": None}
    # An error about the whole HTTP request has no id.
    return {**answer, "id": message["id"]} if "id" in message else None


def read_object(text: bytes) -> dict[str, Any]:
    """The JSON object in the text; empty if it contains something else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def headers(key: str, message: dict[str, Any]) -> dict[str, str]:
    """The headers of the protocol repeat what is in the message."""
    values = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    try:
        params = message["params"]
        values["MCP-Protocol-Version"] = str(params["_meta"]["io.modelcontextprotocol/protocolVersion"])
        values["Mcp-Method"] = str(message["method"])
        values["Mcp-Name"] = str(params["name"])
    except (KeyError, TypeError):
        pass
    return values


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
