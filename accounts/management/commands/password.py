"""`manage.py password LOGIN`: sets a user's password and ends the user's sessions."""

import secrets
import sys
from getpass import getpass
from typing import Any

from django.conf import settings
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError, CommandParser

from accounts.models import FailedAttempts, User


class Command(BaseCommand):
    help = "Set a user's password. Enter it at the prompt, pipe it to standard input or generate one with --random."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("login")
        parser.add_argument("--random", action="store_true", help="generate a random password and print it")

    def handle(self, *_: Any, login: str, random: bool, **__: Any) -> None:
        user = User.objects.find_by_exact_login(login)
        if user is None:
            raise CommandError(f'There is no user with the login "{login}".')
        password = secrets.token_urlsafe(12) if random else prompt_for_password()
        try:
            validate_password(password, user)
        except ValidationError as error:
            raise CommandError(" ".join(error.messages)) from None
        user.change_password(password)
        FailedAttempts.objects.all().delete()  # keys are hashes, so the user's counters cannot be identified
        if login == settings.ENVIRONMENT.admin_login:  # the password of the first start is no longer valid
            (settings.DATA_FOLDER.secrets / "admin-password").unlink(missing_ok=True)
        self.stdout.write(f"Changed the password and ended all sessions of {login}. Cleared the lockouts of all users.")
        if random:
            self.stdout.write(f"Password: {password}")


def prompt_for_password() -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    password = getpass("New password: ")
    if getpass("Repeat new password: ") != password:
        raise CommandError("The passwords do not match.")
    return password
