"""The product's settings with a middleware that kills the process during a request."""

from config.settings import *  # noqa: F403
from config.settings import MIDDLEWARE

MIDDLEWARE = ["tests.tableapi.stack.kill_middleware.KillAfterResponseMiddleware", *MIDDLEWARE]
