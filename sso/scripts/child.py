"""In charge of running one mapping script once: a program of its own, started and, after 1 s, killed by the product.

It is given the folder of the engine as its argument and everything else on standard input; it imports nothing of the
product. Limits inside an engine can be escaped, so the process as a whole is limited before it reads the script.
"""

import importlib
import json
import os
import resource
import signal
import sys
from typing import Any

MEMORY = 256 * 1024 * 1024
ENGINE_MEMORY = 48 * 1024 * 1024
STACK = 512 * 1024
CPU_S = 2
# By itself, should the one who would kill it be gone.
ALONE_S = 10
LONGEST_ANSWER = 64 * 1024
LONGEST_REASON = 300
NOBODY = 65534

# The claims come in as text and the answer goes out as text: no object of the script ever meets Python.
RUN = """(typeof map === "function") ? JSON.stringify(map(JSON.parse(claims_as_text))) : undefined"""


def limit() -> None:
    """From here on no file can be opened or written, nothing started, and the process ends by itself."""
    for which, most in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CPU, CPU_S),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_NOFILE, 3),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(which, (most, most))
    signal.alarm(ALONE_S)
    if os.getuid() == 0:  # root is above most limits
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        except OSError:
            pass  # a container without such a user


def answer(engine: Any, source: str, claims: str) -> dict[str, str]:
    """What the script makes of the claims, or at which step it fails and why."""
    context = engine.Context()
    context.set_memory_limit(ENGINE_MEMORY)
    context.set_max_stack_size(STACK)
    step = "load"
    try:
        context.eval(source)
        step = "map"
        context.set("claims_as_text", claims)
        made = context.eval(RUN)
    except (engine.JSException, MemoryError) as error:
        said = str(error).strip().split("\n", 1)[0][:LONGEST_REASON]
        # Too deep or too large is no matter of these claims.
        is_limit = isinstance(error, (MemoryError, engine.StackOverflow)) or said.startswith("InternalError")
        return {"failed": said or "out of memory", "at": "limit" if is_limit else step}
    if not isinstance(made, str):
        return {"failed": "There is no function map(claims) that returns an object.", "at": "load"}
    if len(made) > LONGEST_ANSWER:
        return {"failed": "What it returns is too large.", "at": "limit"}
    return {"made": made}


def main() -> None:
    sys.path.insert(0, sys.argv[1])
    engine = importlib.import_module("_quickjs")  # inside the package `quickjs`, which itself starts a thread
    limit()
    sys.stdout.write("\n")  # ready: the script's own time begins
    sys.stdout.flush()
    asked = json.loads(sys.stdin.buffer.read())
    sys.stdout.write(json.dumps(answer(engine, asked["source"], asked["claims"])))


if __name__ == "__main__":
    main()
