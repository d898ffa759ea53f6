"""Changes that somebody else makes while a form is validated are kept."""

from typing import Any

import pytest
from django.test import Client

from accounts.admin.users import PasswordForm
from accounts.http.forms import OwnPasswordForm, ProfileForm
from accounts.models import User
from tests.support.users import PASSWORD

NEW = "another long word 7"


@pytest.fixture
def deactivated_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each form takes long enough for the account to be deactivated by somebody else."""
    for form in (ProfileForm, OwnPasswordForm, PasswordForm):
        judge = form.is_valid

        def slowly(self: Any, judge: Any = judge) -> bool:
            is_valid = bool(judge(self))
            User.objects.filter(login="bob").update(active=False)
            return is_valid

        monkeypatch.setattr(form, "is_valid", slowly)


@pytest.mark.usefixtures("deactivated_meanwhile")
def test_saving_the_profile_does_not_reactivate_an_account(as_bob: Client, bob: User):
    as_bob.post("/account/", {"first_name": "Robert", "last_name": "", "email": "", "phone": ""})

    assert (bob.refreshed().first_name, bob.active) == ("Robert", False)


@pytest.mark.usefixtures("deactivated_meanwhile")
def test_changing_the_password_does_not_reactivate_an_account(as_bob: Client, bob: User):
    as_bob.post("/account/password/", {"old_password": PASSWORD, "new_password1": NEW, "new_password2": NEW})

    assert (bob.refreshed().check_password(NEW), bob.active) == (True, False)


@pytest.mark.usefixtures("deactivated_meanwhile")
def test_password_set_by_an_administrator_does_not_reactivate_an_account(as_alice: Client, bob: User):
    sent = {"usable_password": "true", "password1": NEW, "password2": NEW, "set-password": "1"}
    as_alice.post(f"/admin/accounts/user/{bob.pk}/password/", sent)

    assert (bob.refreshed().check_password(NEW), bob.active) == (True, False)
