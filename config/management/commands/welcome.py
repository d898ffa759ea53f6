"""`manage.py welcome`: the text that `up` prints once all processes are running."""

import shlex
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management.base import BaseCommand, CommandParser
from django.http.request import split_domain_port, validate_host

from accounts import roles
from accounts.demo import DEMO_PREFIX
from accounts.models import User, UserRole
from config.runtime.data_folder import ADMIN_PASSWORD, DEMO_PASSWORD


def current_password(name: str, login: str) -> str | None:
    """The password in the data folder, if it is still the user's password."""
    path = settings.DATA_FOLDER.secrets / name
    user = User.objects.filter(login=login, active=True).first()
    if user is None or not path.is_file():
        return None
    password = path.read_text(encoding="utf-8").strip()
    return password if user.check_password(password) else None


class Command(BaseCommand):
    help = "Print the URL of the service and how to sign in."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("local_url")

    def handle(self, *_: Any, local_url: str, **__: Any) -> None:
        public_url = settings.BASE_URL or local_url
        accepts_local_url = validate_host(split_domain_port(urlsplit(local_url).netloc)[0], settings.ALLOWED_HOSTS)
        lines = ["", "  Servicebase is running.", "", f"    Open       {public_url}/"]
        login = settings.ENVIRONMENT.admin_login
        is_admin = UserRole.objects.filter(role__name=roles.ADMIN, user__login=login).exists()
        password = current_password(ADMIN_PASSWORD, login) if is_admin else None
        lines += self.sign_in_lines(login, password)
        lines += [
            f"    Admin      {public_url}/admin/",
            f"    API        {public_url}/api/docs",
            "",
            "    First API call:",
            f"    {curl(login, password, local_url if accepts_local_url else public_url)}",
            "",
            "    Stop with Ctrl-C.",
            "",
        ]
        self.stdout.write("\n".join(lines))

    def sign_in_lines(self, login: str, password: str | None) -> list[str]:
        """The generated password on the first start, later only the file that contains it."""
        if password is None:
            lines = [f"    Sign in    {login}, with its password"]
        elif settings.DATA_FOLDER.password_shown_file.exists():
            lines = [f"    Sign in    {login}, password in {secret_path(ADMIN_PASSWORD)}"]
        else:
            lines = [
                f"    Sign in    {login}  password  {password}",
                f"               (shown once; stored in {secret_path(ADMIN_PASSWORD)})",
            ]
        if current_password(DEMO_PASSWORD, f"{DEMO_PREFIX}agent"):
            lines.append(
                f"    Demo       {DEMO_PREFIX}agent or {DEMO_PREFIX}user, password in {secret_path(DEMO_PASSWORD)}"
            )
        return lines


def secret_path(name: str) -> str:
    """The absolute path of a stored secret, quoted for a shell."""
    return shlex.quote(str(settings.DATA_FOLDER.secrets / name))


def curl(login: str, password: str | None, local_url: str) -> str:
    insecure_option = "-k " if settings.ENVIRONMENT.tls_cert else ""
    password_part = f':"$(cat {secret_path(ADMIN_PASSWORD)})"' if password else ""
    return f"curl {insecure_option}-u {login}{password_part} {local_url}/api/me"
