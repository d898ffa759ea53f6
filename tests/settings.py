"""Settings of the tests: the product's settings, with servers that are started here. A conftest would be too late."""

import os

from tests import servers

for name in [name for name in os.environ if name.startswith("SVC_") and not name.startswith("SVC_TEST_")] + [
    "DATABASE_URL",
    "DATABASE_REPLICA_URL",
    "REDIS_URL",
    "DEBUG",
    "SECRET_KEY",
]:
    os.environ[name] = ""  # counts as not set, and wins over a .env file
os.environ["SVC_DATA_DIR"] = str(servers.start_servers())
os.environ["SVC_DEMO"] = "0"
os.environ["SVC_ALLOW_HTTP_IDP"] = "0"  # as in production; tests that call a provider on loopback say so

from config.settings import *  # noqa: E402, F403

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]  # speed; one test uses the real one
ALLOWED_HOSTS = ["testserver", "localhost", "127.0.0.1", "[::1]"]
# Every client of a test loads the middleware anew; looking through all static files each time took half of a request.
WHITENOISE_AUTOREFRESH = True
