"""One caller of each kind: programs with credentials, and signed-in browsers."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from http.cookies import SimpleCookie
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import transaction
from django.test import Client
from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart

from accounts.authentication import access_keys
from accounts.models import User
from system.records import acting_user
from tests.accounts.callers import bearer_auth
from tests.support.users import make_user

UPLOAD_BODY = encode_multipart(BOUNDARY, {"file": SimpleUploadedFile("note.txt", b"A note on paper.")}).decode()


@dataclass(frozen=True)
class MatrixCaller:
    name: str
    headers: dict[str, str] = field(default_factory=dict)
    cookies: SimpleCookie = field(default_factory=SimpleCookie)
    client: Client = field(default_factory=lambda: Client(raise_request_exception=False))

    @property
    def is_browser(self) -> bool:
        return bool(self.cookies)

    def request(self, method: str, path: str) -> Any:
        """Sends a request, rolls back its changes, and returns the response."""
        self.client.cookies = SimpleCookie(self.cookies.output(header="", sep=";"))
        body, content_type = (
            ("", "application/x-www-form-urlencoded") if self.is_browser else ("{}", "application/json")
        )
        if method == "POST" and path.startswith("/load_document_to_collection"):
            body, content_type = UPLOAD_BODY, MULTIPART_CONTENT
        with transaction.atomic():
            response = self.client.generic(method, path, body, content_type=content_type, headers=self.headers)
            transaction.set_rollback(True)
        acting_user.set_current(None)
        return response


def create_program_caller(name: str, user: User, scope: Iterable[str] = ()) -> MatrixCaller:
    secret = access_keys.create_key(user, name, expires_at=None, scope=list(scope))
    return MatrixCaller(name, bearer_auth(secret))


def create_browser_caller(name: str, user: User) -> MatrixCaller:
    client = Client()
    client.force_login(user)
    return MatrixCaller(f"{name}@", cookies=client.cookies)


def create_callers() -> list[MatrixCaller]:
    """Ordered from few permissions to many. A name with @ is a signed-in browser."""
    users_by_name = {
        "person": make_user("person"),
        "itil": make_user("itil-person", "itil"),
        "monitor": make_user("monitor", "monitoring"),
        "sso": make_user("sso-person", "sso_admin"),
        "coll": make_user("coll-person", "collection_admin"),
        "admin": make_user("the-admin", "admin"),
    }
    scoped_program = create_program_caller(
        "narrow", users_by_name["admin"], ["monitoring"]
    )  # a key of an administrator that is limited to one role
    inactive_program = create_program_caller("gone", make_user("gone", "admin", active=False))
    return [
        MatrixCaller("nobody"),
        inactive_program,
        *(create_program_caller(name, user) for name, user in users_by_name.items() if name != "admin"),
        scoped_program,
        create_program_caller("admin", users_by_name["admin"]),
        *(create_browser_caller(name, users_by_name[name]) for name in ("person", "sso", "coll", "admin")),
    ]
