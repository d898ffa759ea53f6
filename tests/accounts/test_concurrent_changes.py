"""Changes that another user makes while a form is validated are not overwritten."""

from typing import Any

import pytest
from django.test import Client

from accounts.admin.users import PasswordForm
from accounts.http.forms import OwnPasswordForm, ProfileForm
from accounts.models import User
from tests.support.users import PASSWORD

NEW_PASSWORD = "another long word 7"


@pytest.fixture
def deactivation_during_validation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another user deactivates the account while a form is validated."""
    for form_class in (ProfileForm, OwnPasswordForm, PasswordForm):
        original_is_valid = form_class.is_valid

        def deactivate_and_validate(self: Any, original_is_valid: Any = original_is_valid) -> bool:
            is_valid = bool(original_is_valid(self))
            User.objects.filter(login="bob").update(active=False)
            return is_valid

        monkeypatch.setattr(form_class, "is_valid", deactivate_and_validate)


@pytest.mark.usefixtures("deactivation_during_validation")
def test_saving_the_profile_does_not_reactivate_an_account(as_bob: Client, bob: User):
    as_bob.post("/account/", {"first_name": "Robert", "last_name": "", "email": "", "phone": ""})

    assert (bob.refreshed().first_name, bob.active) == ("Robert", False)


@pytest.mark.usefixtures("deactivation_during_validation")
def test_changing_the_password_does_not_reactivate_an_account(as_bob: Client, bob: User):
    as_bob.post(
        "/account/password/", {"old_password": PASSWORD, "new_password1": NEW_PASSWORD, "new_password2": NEW_PASSWORD}
    )

    assert (bob.refreshed().check_password(NEW_PASSWORD), bob.active) == (True, False)


@pytest.mark.usefixtures("deactivation_during_validation")
def test_password_set_by_an_administrator_does_not_reactivate_an_account(as_alice: Client, bob: User):
    form = {"usable_password": "true", "password1": NEW_PASSWORD, "password2": NEW_PASSWORD, "set-password": "1"}
    as_alice.post(f"/admin/accounts/user/{bob.pk}/password/", form)

    assert (bob.refreshed().check_password(NEW_PASSWORD), bob.active) == (True, False)
