"""The Script of a connection: JavaScript that maps the provider's claims to columns of a user.

Each run uses a sandboxed child process, which is killed when the script has run for 1 s or its caller has no time left.
The engine's own limits are not enough: `new Array(1e9) + ""` exceeded its time limit by 46 s.
"""

import importlib.util
import json
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from system import sandbox
from system.outbound.deadline import Deadline
from system.strict_json import InvalidJson, has_lone_surrogate, parse_json

DEFAULT_SCRIPT = """function map(claims) {
  return {
    email: claims.email,
    login: claims.preferred_username || claims.email
  }
}
"""
# Allowed columns: "user fields between the provider and the service". Never password, roles, active, flags or ids.
SCRIPT_COLUMNS = ("login", "email", "first_name", "last_name", "phone")

MAX_SOURCE_LENGTH = 32 * 1024
MAX_CLAIMS_LENGTH = 256 * 1024
MAX_OUTPUT_LENGTH = 256 * 1024
MAX_RUN_S = 1.0
# For starting the interpreter, which takes longer than any script on a busy machine.
MAX_START_S = 5.0
MAX_MEMORY_BYTES = 256 * 1024 * 1024
MAX_CPU_S = 2
PROGRAM_PATH = Path(__file__).with_name("program.py")
SANDBOX_LIMITS = sandbox.RunLimits(
    memory_bytes=MAX_MEMORY_BYTES, cpu_s=MAX_CPU_S, run_s=MAX_RUN_S, output_bytes=MAX_OUTPUT_LENGTH
)

# Typical claims, used to check a script when it is saved.
SAMPLE_CLAIMS = {
    "sub": "248289761001",
    "email": "jane.doe@example.com",
    "email_verified": True,
    "preferred_username": "jane.doe",
    "name": "Jane Doe",
    "given_name": "Jane",
    "family_name": "Doe",
    "phone_number": "+1 555 0100",
    "locale": "en",
    "roles": ["itil"],
    "groups": ["itil"],
    "realm_access": {"roles": ["itil"]},
}


class ScriptRefused(ValueError):
    """The script cannot be saved; the text is a sentence for the administrator."""


class ScriptFailed(Exception):
    """A run failed; the text is the reason, for the administrator.

    `step` is "load" (it does not parse or has no `map`), "map" (it throws), "result" (it is invalid) or "limit".
    """

    def __init__(self, reason: str, step: str = "limit") -> None:
        super().__init__(reason)
        self.step = step


class EngineBusy(ScriptFailed):
    """The engine had no process, CPU time or time left for the script. A later run may succeed."""


def check_script(source: str, custom_columns: Iterable[str] = ()) -> None:
    """Refuse a script that is too long, does not parse, has no `map` or sets a column that scripts must not set.

    A script that throws on our sample claims is accepted, because this provider may send other claims.
    """
    if has_lone_surrogate(source) or "\0" in source:
        raise ScriptRefused("The script contains a character that cannot be stored.")
    if len(source.encode()) > MAX_SOURCE_LENGTH:
        raise ScriptRefused(f"The script is longer than {MAX_SOURCE_LENGTH // 1024} KB.")
    try:
        values = call_script(source, SAMPLE_CLAIMS)
    except ScriptFailed as error:
        if error.step == "map":
            return
        raise ScriptRefused(f"The script check failed. {error}") from None
    columns = (*SCRIPT_COLUMNS, *sorted(custom_columns))
    if other_columns := sorted(values.keys() - set(columns)):
        raise ScriptRefused(f"A script can set only {', '.join(columns)}, not {', '.join(other_columns)[:100]}.")


def map_claims(
    source: str, claims: Mapping[str, Any], deadline: Deadline | None = None, custom_columns: Iterable[str] = ()
) -> dict[str, Any]:
    """Run the script and return the columns that it may set, without checking their values."""
    values = call_script(source, claims, deadline)
    return {name: values[name] for name in (*SCRIPT_COLUMNS, *custom_columns) if name in values}


def call_script(source: str, claims: Mapping[str, Any], deadline: Deadline | None = None) -> dict[str, Any]:
    text = json.dumps(dict(claims))
    if len(text) > MAX_CLAIMS_LENGTH:
        raise ScriptFailed("The claims are too large.")
    request = json.dumps({"source": source, "claims": text}).encode()
    outcome = parse_output(run_in_sandbox(request, deadline or Deadline.after(MAX_START_S + MAX_RUN_S)))
    if not isinstance(outcome.get("result"), str):
        raise ScriptFailed(str(outcome.get("error", "The script failed.")), str(outcome.get("step", "limit")))
    return parse_output(outcome["result"].encode(errors="surrogatepass"))


def parse_output(output: bytes) -> dict[str, Any]:
    """Parses the child's output strictly, because nothing in it is trusted."""
    try:
        result = parse_json(output, keeps_digits=False)
    except InvalidJson as error:
        raise ScriptFailed(f"The script's result cannot be parsed. {error.message}", "result") from None
    if not isinstance(result, dict):
        raise ScriptFailed("The script has no function map(claims) that returns an object.", "load")
    return result


def run_in_sandbox(request: bytes, deadline: Deadline) -> bytes:
    engine = importlib.util.find_spec("_quickjs")
    assert engine is not None and engine.origin is not None
    try:
        available_s = min(MAX_START_S + MAX_RUN_S, deadline.remaining_s())
    except TimeoutError:
        raise EngineBusy(f"The sign-in took {deadline.seconds:g} s, so no time was left for the script.") from None
    try:
        result = sandbox.run(
            PROGRAM_PATH,
            [str(Path(engine.origin).parent)],
            request,
            SANDBOX_LIMITS,
            deadline=time.monotonic() + available_s,
        )
    except OSError:  # out of processes or memory
        raise EngineBusy("The script engine could not be started.") from None
    if result.status is sandbox.RunStatus.DONE:
        return result.output
    if not result.was_ready:
        raise EngineBusy("The script engine did not start.")
    if result.was_starved or (result.was_killed and result.run_s < MAX_RUN_S):
        raise EngineBusy(f"The script was stopped after {result.run_s:.2f} s ({result.cpu_s:.2f} s of CPU time).")
    if result.was_killed:
        raise ScriptFailed(f"The script was stopped after {MAX_RUN_S:g} s.")
    raise ScriptFailed("The script needs too much memory or time.")
