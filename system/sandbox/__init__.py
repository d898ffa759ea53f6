"""Runs a program on untrusted input in a child process that can only compute.

    process   the parent's side: start, deadlines, output, how it ended
    child     the child's side: prepares the program, confines itself, writes the output

Limits inside an engine or a parser can be escaped, so the process as a whole is limited before it reads any input.
"""

from .process import RunLimits, RunResult, RunStatus, run

__all__ = ["RunLimits", "RunResult", "RunStatus", "run"]
