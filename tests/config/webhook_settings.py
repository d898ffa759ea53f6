"""The product's settings with webhooks that reach a receiver on loopback."""

from config import settings
from config.settings import *  # noqa: F403

WEBHOOK_POLICY = {**settings.WEBHOOK_POLICY, "allow_http": True, "resolve": lambda host: ["127.0.0.1"]}
