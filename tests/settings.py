"""Test settings: the product's settings with servers that start here, because a conftest would be too late."""

import os

from tests import servers

for name in [name for name in os.environ if name.startswith("SVC_") and not name.startswith("SVC_TEST_")] + [
    "DATABASE_URL",
    "DATABASE_REPLICA_URL",
    "REDIS_URL",
    "DEBUG",
    "SECRET_KEY",
]:
    os.environ[name] = ""  # counts as unset, and takes precedence over a .env file
os.environ["SVC_DATA_DIR"] = str(servers.start_servers())
os.environ["SVC_DEMO"] = "0"
os.environ["SVC_ALLOW_HTTP_IDP"] = "0"  # as in production; tests that call a provider on loopback change it

from config.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # speed; one test uses the real one
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1", "[::1]"]
# Each test client loads the middleware again; scanning all static files took half the time of a request.
WHITENOISE_AUTOREFRESH = True
