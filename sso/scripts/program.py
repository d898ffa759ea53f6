"""Runs one script in the sandbox (`system.sandbox.child`). It imports no other module of the product.

Its argument is the folder of the JavaScript engine. Input and output are JSON.
"""

import importlib
import json
import sys
from collections.abc import Callable
from typing import Any

ENGINE_MEMORY_BYTES = 48 * 1024 * 1024
STACK_BYTES = 512 * 1024
MAX_RESULT_LENGTH = 64 * 1024
MAX_REASON_LENGTH = 300

# Claims and result are passed as text, so that Python never handles an object of the script.
MAP_CALL_JS = """(typeof map === "function") ? JSON.stringify(map(JSON.parse(claims_as_text))) : undefined"""


def call_map(engine: Any, source: str, claims: str) -> dict[str, str]:
    """Return the script's result for the claims, or the step at which it fails and the error."""
    context = engine.Context()
    context.set_memory_limit(ENGINE_MEMORY_BYTES)
    context.set_max_stack_size(STACK_BYTES)
    step = "load"
    try:
        context.eval(source)
        step = "map"
        context.set("claims_as_text", claims)
        result = context.eval(MAP_CALL_JS)
    except (engine.JSException, MemoryError) as error:
        reason = str(error).strip().split("\n", 1)[0][:MAX_REASON_LENGTH]
        # Excessive recursion or memory use does not depend on these claims.
        is_limit_reached = isinstance(error, (MemoryError, engine.StackOverflow)) or reason.startswith("InternalError")
        return {"error": reason or "out of memory", "step": "limit" if is_limit_reached else step}
    if not isinstance(result, str):
        return {"error": "The script has no function map(claims) that returns an object.", "step": "load"}
    if len(result) > MAX_RESULT_LENGTH:
        return {"error": "The result is too large.", "step": "limit"}
    return {"result": result}


def prepare(arguments: list[str]) -> Callable[[bytes], bytes]:
    sys.path.insert(0, arguments[0])
    engine = importlib.import_module("_quickjs")  # not `quickjs`, which starts a thread when imported

    def run(data: bytes) -> bytes:
        request = json.loads(data)
        return json.dumps(call_map(engine, request["source"], request["claims"])).encode()

    return run
