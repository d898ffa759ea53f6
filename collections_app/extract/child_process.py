"""Runs one parser on one file in the sandbox."""

import json
import sysconfig
from dataclasses import asdict
from pathlib import Path

from system import sandbox

from .parsers.common.failures import DAMAGED_MESSAGE
from .results import MEGABYTE, ExtractionLimits, UnreadableFile

PARSER_PROGRAM = Path(__file__).parent / "parsers" / "program.py"
# A character takes at most six bytes in JSON. The rest is for headings and pages, which have their own limits.
BYTES_PER_CHARACTER = 6
OVERHEAD_BYTES = 16 * MEGABYTE


def run_parser(parser: str, data: bytes, limits: ExtractionLimits, *, deadline: float) -> bytes:
    """Returns what the parser wrote; raises UnreadableFile if it wrote nothing usable."""
    sandbox_limits = sandbox.RunLimits(
        memory=limits.memory,
        cpu_s=limits.cpu_s,
        run_s=limits.wall_s,
        output=limits.max_characters * BYTES_PER_CHARACTER + OVERHEAD_BYTES,
    )
    arguments = [parser, json.dumps(asdict(limits)), *package_folders()]
    result = sandbox.run(PARSER_PROGRAM, arguments, data, sandbox_limits, deadline=deadline)
    match result.ending:
        case sandbox.Ending.DONE:
            return result.output
        case sandbox.Ending.TIMED_OUT:
            raise UnreadableFile("limit_time", "Reading the file took too long.", is_temporary=result.was_starved)
        case sandbox.Ending.OUT_OF_MEMORY:
            raise UnreadableFile("limit_memory", "Reading the file required too much memory.")
        case sandbox.Ending.TOO_LARGE:
            raise UnreadableFile("limit_characters", "The file contains too much text.")
    raise UnreadableFile("damaged", DAMAGED_MESSAGE)


def package_folders() -> list[str]:
    paths = sysconfig.get_paths()
    return sorted({paths["purelib"], paths["platlib"]})
