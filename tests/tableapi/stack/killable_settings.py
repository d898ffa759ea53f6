"""The product's settings, with a way to end a process in the middle of a request."""

from config.settings import *  # noqa: F403
from config.settings import MIDDLEWARE

MIDDLEWARE = ["tests.tableapi.stack.kill_middleware.KillAfterResponseMiddleware", *MIDDLEWARE]
