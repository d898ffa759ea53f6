"""One parser per file format, run in the sandboxed child process."""
