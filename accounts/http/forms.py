"""The forms of the account pages."""

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm
from django.core.exceptions import ValidationError
from django.utils import timezone

from accounts.authentication import passwords
from accounts.authentication.access_keys import DEFAULT_LIFETIME
from accounts.models import NotificationChoice, Role, User, time_zones
from accounts.models.notification_choices import Reason
from system.errors import Unauthenticated

LIFETIMES = [("30", "30 days"), ("90", "90 days"), ("365", "one year"), ("", "no expiry")]


class SignInForm(forms.Form):
    login = forms.CharField(
        max_length=1024, widget=forms.TextInput(attrs={"autocomplete": "username", "autofocus": True})
    )
    password = forms.CharField(
        max_length=1024, strip=False, widget=forms.PasswordInput(attrs={"autocomplete": "current-password"})
    )


class ProfileForm(forms.ModelForm):  # type: ignore[type-arg]
    """Has no email field, because a first sign-in through a provider matches accounts by email."""

    class Meta:
        model = User
        fields = ("first_name", "last_name", "phone", "time_zone")
        help_texts = {"time_zone": "Pages show times in this time zone, and days begin by it."}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["time_zone"].widget = forms.Select(choices=time_zones.choices(self.instance.time_zone))


class NotificationForm(forms.Form):
    """One select per reason: off, in the list, or in the list and by email."""

    OFF, LIST, EMAIL = "off", "list", "email"
    CHANNELS = ((EMAIL, "In the list and by email"), (LIST, "In the list"), (OFF, "Off"))

    def __init__(self, choice: NotificationChoice, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.choice = choice
        for reason in Reason:
            shown_channel = self.EMAIL if reason in choice.email_reasons else self.LIST
            initial = shown_channel if reason in choice.reasons else self.OFF
            self.fields[reason] = forms.ChoiceField(choices=self.CHANNELS, label=reason.label, initial=initial)

    def save(self) -> None:
        channels = self.cleaned_data
        self.choice.reasons = [reason for reason in Reason.values if channels[reason] != self.OFF]
        self.choice.email_reasons = [reason for reason in Reason.values if channels[reason] == self.EMAIL]
        self.choice.save()


class KeyForm(forms.Form):
    name = forms.CharField(max_length=100, help_text="What the key is for, for example “backup script”.")
    days = forms.ChoiceField(choices=LIFETIMES, required=False, initial=str(DEFAULT_LIFETIME.days), label="Expiry")
    scope = forms.ModelMultipleChoiceField(
        queryset=Role.objects.none(),
        required=False,
        label="Limit to roles",
        widget=forms.CheckboxSelectMultiple,
        help_text="Leave empty to use all your roles.",
    )
    read_only = forms.BooleanField(
        required=False, label="Read-only", help_text="The key can read, but not change anything."
    )
    mcp_writes = forms.BooleanField(
        required=False,
        label="May write through MCP",
        help_text="An agent that connects to /mcp with the key can create, update and comment, unless the key is "
        "read-only.",
    )

    def __init__(self, user: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        own_roles = Role.objects.all() if user.is_superuser else Role.objects.filter(name__in=user.role_names)
        self.fields["scope"].queryset = own_roles  # type: ignore[attr-defined]  # a ModelMultipleChoiceField
        if not own_roles:
            del self.fields["scope"]

    def expires_at(self) -> Any:
        days = self.cleaned_data["days"]
        return timezone.now() + timedelta(days=int(days)) if days else None


class OwnPasswordForm(PasswordChangeForm):
    """Django's form with our labels and the lockout after failed passwords."""

    def __init__(self, *args: Any, address: str = "", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.address = address
        self.fields["old_password"].label = "Current password"
        self.fields["new_password2"].label = "Repeat new password"
        self.fields["old_password"].widget.attrs.pop("autofocus", None)

    def clean_old_password(self) -> str:
        """Counts like a sign-in attempt, so that a stolen session cannot be used to guess the password."""
        old_password: str = self.cleaned_data["old_password"]
        try:
            passwords.verify_password(self.user.get_username(), old_password, self.address)
        except Unauthenticated:
            raise ValidationError("The current password is incorrect.", code="password_incorrect") from None
        return old_password
