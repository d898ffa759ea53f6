#!/usr/bin/env python3
"""Django's command line with the embedded database, and `up`, which starts the service."""

import contextlib
import os
import sys

from config import env
from config.runtime import embedded_servers

# These commands do not need a database, so none is started for them.
COMMANDS_WITHOUT_DATABASE = {"check", "makemigrations", "help", "--help", "-h", "--version", "version", "spectacular"}


def main(arguments: list[str]) -> int:
    try:
        environment = env.current()
        if arguments[:1] == ["up"]:
            from config.runtime import up

            return up.main(arguments[1:], environment)
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
        command = arguments[0] if arguments else "help"
        needs_database = command not in COMMANDS_WITHOUT_DATABASE and environment.database_url is None
        with embedded_servers.database_for_command(environment) if needs_database else contextlib.nullcontext():
            from django.core.management import execute_from_command_line

            execute_from_command_line([sys.argv[0], *arguments])
    except env.ConfigurationError as error:
        print(f"servicebase: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
