"""Runs a program on untrusted input in a child process that can only compute.

    process   the parent's side: start, deadlines, output, result
    child     the child's side: prepares the program, confines itself, writes the output

Limits inside an engine or parser can be escaped, so the whole process is confined before it reads any input.
"""

from .process import RunFailed, RunLimits, RunResult, RunStatus, run, stream

__all__ = ["RunFailed", "RunLimits", "RunResult", "RunStatus", "run", "stream"]
