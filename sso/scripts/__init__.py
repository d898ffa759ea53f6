"""Mapping scripts, run in a sandboxed child process."""
