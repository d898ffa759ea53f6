"""`manage.py grant`, `password` and `key`: access for the operator when no administrator can sign in."""

import io
import re
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from accounts.authentication import access_keys
from accounts.models import AccessKey, Role, User, UserRole
from tests.accounts.callers import ME_PATH, bearer_auth, get_me, only_access_key, sign_in, try_password
from tests.support.users import PASSWORD

NEW_PASSWORD = "another horse 43"


def run_command(*arguments: str) -> str:
    stdout = io.StringIO()
    call_command(*arguments, stdout=stdout)
    return stdout.getvalue()


def command_error(*arguments: str) -> str:
    with pytest.raises(CommandError) as exc_info:
        run_command(*arguments)
    return str(exc_info.value)


def test_grant_adds_a_role(bob: User):
    assert run_command("grant", "bob", "admin") == "bob now has the role admin.\n"
    assert User.objects.get(login="bob").is_superuser
    assert run_command("grant", "bob", "admin") == "bob already had the role admin.\n"
    assert bob.grants.count() == 1


def test_grant_activates_an_inactive_user(bob: User):
    User.objects.update(active=False)

    assert "Activated the account bob." in run_command("grant", "bob", "admin")
    assert bob.refreshed().active


def test_grant_adds_a_manual_grant_next_to_a_provider_grant(bob: User):
    """The next sign-in may remove a grant of the provider, but not one of the operator."""
    UserRole.objects.create(user=bob, role=Role.objects.get(name="admin"), source=UserRole.PROVIDER)
    run_command("grant", "bob", "admin")

    assert bob.grants.filter(source=UserRole.MANUAL).exists()


@pytest.mark.parametrize("arguments", [("grant", "nobody", "admin"), ("password", "nobody"), ("key", "nobody", "x")])
def test_unknown_login_is_reported(db: None, arguments: tuple[str, ...]):
    assert command_error(*arguments) == 'There is no user with the login "nobody".'


def test_unknown_role_error_lists_the_available_roles(bob: User):
    assert command_error("grant", "bob", "king") == (
        'There is no role named "king". Available roles: admin, collection_admin, itil, monitoring, sso_admin.'
    )


def test_password_reads_standard_input_and_ends_sessions(bob: User, monkeypatch: Any):
    browser, login_key = sign_in("bob"), access_keys.create_login_key(bob)
    named_key = access_keys.create_key(bob, "script", expires_at=None)
    monkeypatch.setattr("sys.stdin", io.StringIO(NEW_PASSWORD + "\nnot this line\n"))
    message = run_command("password", "bob")

    assert message == "Changed the password and ended all sessions of bob. Cleared the lockouts of all users.\n"
    assert (try_password("bob", PASSWORD), try_password("bob", NEW_PASSWORD)) == (401, 200)
    assert browser.get(ME_PATH).status_code == 401
    assert [get_me(bearer_auth(key)).status_code for key in (login_key, named_key)] == [401, 200]


def test_password_prints_a_random_password(bob: User):
    match = re.search(r"Password: (\S{16,})\n", run_command("password", "bob", "--random"))

    assert match and try_password("bob", match.group(1)) == 200
    assert match.group(1) not in run_command("password", "bob", "--random")


@pytest.mark.parametrize(
    ("password", "message"),
    [
        ("", "too short"),
        ("short", "too short"),
        ("password123", "too common"),
        ("x1" * 300, "at most 512"),
        ("bobbobbob1", "similar to the login"),
    ],
)
def test_password_applies_the_password_rules(bob: User, monkeypatch: Any, password: str, message: str):
    monkeypatch.setattr("sys.stdin", io.StringIO(password + "\n"))

    assert message in command_error("password", "bob")
    assert try_password("bob", PASSWORD) == 200


@pytest.mark.parametrize(("second_password", "is_changed"), [(NEW_PASSWORD, True), ("a third horse 44", False)])
def test_password_prompts_twice_in_a_terminal(bob: User, monkeypatch: Any, second_password: str, is_changed: bool):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    entered_passwords = [NEW_PASSWORD, second_password]
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("accounts.management.commands.password.getpass", lambda _: entered_passwords.pop(0))

    if is_changed:
        run_command("password", "bob")
    else:
        assert command_error("password", "bob") == "The passwords do not match."
    assert try_password("bob", NEW_PASSWORD) == (200 if is_changed else 401)


def test_key_prints_only_the_key(bob: User):
    secret = run_command("key", "bob", "backup").removesuffix("\n")

    assert get_me(bearer_auth(secret)).json()["login"] == "bob"
    stored_key = only_access_key()
    assert stored_key.name == "backup"
    assert abs(stored_key.expires_at - timezone.now() - timedelta(days=90)) < timedelta(seconds=10)


def test_key_accepts_a_lifetime_and_roles(alice: User):
    secret = run_command("key", "alice", "backup", "--days", "0", "--role", "itil", "--role", "monitoring").strip()

    assert only_access_key().expires_at is None
    assert get_me(bearer_auth(secret)).json()["roles"] == ["itil", "monitoring"]


def test_key_warns_about_a_role_that_the_user_does_not_have(bob: User, alice: User):
    for login, warning in (("bob", "bob does not have the role itil"), ("alice", "")):
        stdout, stderr = io.StringIO(), io.StringIO()
        call_command("key", login, "backup", "--role", "itil", stdout=stdout, stderr=stderr)
        assert warning in stderr.getvalue() and bool(warning) == bool(stderr.getvalue())
        assert get_me(bearer_auth(stdout.getvalue().strip())).json()["roles"] == ([] if warning else ["itil"])
        assert AccessKey.objects.latest("sys_id").name == "backup"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--role", "king", "--role", "admin"), "Unknown roles: king."),
        (("--days", "-1"), "--days must be between 0"),
        (("--days", "999999999"), "--days must be between 0"),
    ],
)
def test_key_refuses_invalid_arguments(alice: User, arguments: tuple[str, ...], message: str):
    assert message in command_error("key", "alice", "backup", *arguments)
    assert message not in command_error("key", "alice", "x" * 101)
    assert not AccessKey.objects.exists()
