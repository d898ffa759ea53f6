"""Runs one parser on one file in the sandbox."""

import json
import sysconfig
from dataclasses import asdict
from pathlib import Path

from system import sandbox

from .parsers.common.failures import DAMAGED
from .results import MEGABYTE, Limits, Unreadable

PROGRAM = Path(__file__).parent / "parsers" / "program.py"
# A character takes at most six bytes in JSON. The rest is for headings and pages, which have their own limits.
BYTES_PER_CHARACTER = 6
OVERHEAD = 16 * MEGABYTE


def run(parser: str, data: bytes, limits: Limits, *, deadline: float) -> bytes:
    """Returns what the parser wrote; raises Unreadable if it wrote nothing usable."""
    bounds = sandbox.RunLimits(
        memory=limits.memory,
        cpu_s=limits.cpu_s,
        run_s=limits.wall_s,
        output=limits.max_characters * BYTES_PER_CHARACTER + OVERHEAD,
    )
    arguments = [parser, json.dumps(asdict(limits)), *package_folders()]
    result = sandbox.run(PROGRAM, arguments, data, bounds, deadline=deadline)
    match result.ending:
        case sandbox.Ending.DONE:
            return result.output
        case sandbox.Ending.TIMED_OUT:
            raise Unreadable("limit_time", "Reading the file takes too long.", may_pass=result.was_starved)
        case sandbox.Ending.OUT_OF_MEMORY:
            raise Unreadable("limit_memory", "Reading the file needs too much memory.")
        case sandbox.Ending.TOO_LARGE:
            raise Unreadable("limit_characters", "The file contains more text than is accepted.")
    raise Unreadable("damaged", DAMAGED)


def package_folders() -> list[str]:
    paths = sysconfig.get_paths()
    return sorted({paths["purelib"], paths["platlib"]})
