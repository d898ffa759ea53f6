#!/usr/bin/env python3
"""Django's command line with the embedded database, and `up`, which starts the service."""

import contextlib
import os
import sys

from config import env
from config.runtime import embedded_servers

# These commands do not need a database, so none is started for them.
WITHOUT_DATABASE = {"check", "makemigrations", "help", "--help", "-h", "--version", "version", "spectacular"}


def main(words: list[str]) -> int:
    try:
        environment = env.current()
        if words[:1] == ["up"]:
            from config.runtime import up

            return up.main(words[1:], environment)
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
        needs_database = bool(words) and words[0] not in WITHOUT_DATABASE and environment.database_url is None
        with embedded_servers.database_for_command(environment) if needs_database else contextlib.nullcontext():
            from django.core.management import execute_from_command_line

            execute_from_command_line([sys.argv[0], *words])
    except env.ConfigurationError as error:
        print(f"servicebase: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
