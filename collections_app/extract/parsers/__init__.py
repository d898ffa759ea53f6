"""In charge of taking text out of files: what runs in the child process. It imports nothing of the product."""
