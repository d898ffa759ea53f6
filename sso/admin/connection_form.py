"""The form of a connection: its hints, and the secret that is only ever written."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextareaWidget, UnfoldBooleanWidget

from accounts import roles
from sso.models import OidcSetting
from sso.models.oidc_settings import default_script
from system import encryption, properties

GUARDED = [name for name, (_, is_grantable) in roles.SHIPPED.items() if not is_grantable]
KEEP = "Set. Leave it empty to keep it. It goes when URL IdP or Realm changes, unless it is entered again."
AGAIN = "Type it again: what was typed is never sent back to the browser."
CHANGED_TOO = "Somebody else changed this too since you opened the page. Open it anew to see what it is now."
HINTS = {
    "name": "What people read on the button of the sign-in page; the start page leads to the provider at once.",
    "url_idp": "Where the provider is, such as https://idp.example.com. Its endpoints are found from this and Realm.",
    "realm": "Its realm, tenant or application: up to 64 letters, digits, dots, dashes and underscores.",
    "authorization_type": "Both use PKCE. The Authorization Code Flow sends the client secret too; PKCE needs none.",
    "client_id": "The name under which this service is registered at the provider.",
    "user_field": (
        "The field of a user that is compared at the first sign-in. From then on the link decides. Choose Login only "
        "where people cannot choose or change their name at the provider."
    ),
    "redirect_uri": "An address of this service; register the same text at the provider.",
    "scope": "openid is needed. Most providers send email and name only if email and profile stand here too.",
    "active": "Saving this one as active turns off the one that was. Whoever is locked out opens /login/?local=1.",
    "enable_user_creation": "Who has no account gets one at the first sign-in.",
    "ignore_case": f"Works only while the property {properties.CASE_SENSITIVE.name} is false.",
    "enable_role_mapping": (
        "Roles of the token are given here; missing ones are made. A role that is marked as not grantable by sign-in "
        f"(as shipped: {', '.join(GUARDED)}) is never given from outside."
    ),
    "update_data_when_login": "What the script names is updated at each sign-in, roles too.",
    "script": "JavaScript: a function map(claims) that returns login, email, first_name, last_name, phone.",
    "response_type": (
        "code, or the fragment return: with id_token no code is exchanged, and the authorization type has no effect."
    ),
    "role_claim": (
        "The path of the claim with the roles. "
        "Empty: realm_access.roles, resource_access.{Client ID}.roles, roles and groups."
    ),
}


class SecretField(forms.CharField):
    """Empty means unchanged, and what is stored is never shown."""

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(data)


class ScriptField(forms.CharField):
    """Browsers send other line ends than they were given: that is no change of the script."""

    widget = UnfoldAdminTextareaWidget(attrs={"rows": 9, "spellcheck": "false", "class": "sb-code"})

    def to_python(self, value: Any) -> Any:
        return str(super().to_python(value)).replace("\r\n", "\n")


class ConnectionForm(forms.ModelForm):  # type: ignore[type-arg]
    client_secret = SecretField(
        label="Client secret",
        required=False,
        strip=False,
        max_length=1000,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
    )
    script = ScriptField(strip=False, help_text=HINTS["script"], initial=default_script)
    forget_secret = forms.BooleanField(required=False, label="Remove the client secret", widget=UnfoldBooleanWidget)

    class Meta:
        model = OidcSetting
        fields = (
            "name", "url_idp", "realm", "authorization_type", "client_id", "user_field", "client_secret",
            "redirect_uri", "scope", "active", "enable_user_creation", "ignore_case", "enable_role_mapping",
            "update_data_when_login", "script", "response_type", "role_claim",
        )  # fmt: skip
        help_texts: ClassVar[dict[str, Any]] = HINTS

    # A button that only looks: the form is shown again with what was typed, and nothing is saved.
    only_looks = False

    def __init__(self, *positional: Any, **named: Any) -> None:
        super().__init__(*positional, **named)
        is_set = bool(self.instance.client_secret)
        self.fields["client_secret"].help_text = KEEP if is_set else "None is stored."
        if not is_set:
            del self.fields["forget_secret"]
        # Compared with what the page showed: what somebody else changed since is no change of whoever saves it.
        if not self.is_bound or any(name.startswith("initial-") for name in self.data):
            for name, field in self.fields.items():
                field.show_hidden_initial = name not in ("client_secret", "forget_secret")

    def clean_client_secret(self) -> str:
        """What is to be stored."""
        typed = self.cleaned_data["client_secret"]
        return encryption.encrypt(typed) if typed else self.instance.client_secret

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        for name in filter(self._is_changed_by_others_too, self.changed_data):
            self.add_error(name, CHANGED_TOO)
        if cleaned.get("forget_secret"):
            cleaned["client_secret"] = ""
        return cleaned

    def _is_changed_by_others_too(self, name: str) -> bool:
        """Since the page was opened, to something else than what is typed here."""
        field = self.fields[name]
        if not field.show_hidden_initial or self.instance.is_new:
            return False
        stored = self.get_initial_for_field(field, name)
        shown = field.hidden_widget().value_from_datadict(self.data, self.files, self.add_initial_prefix(name))
        return field.has_changed(stored, shown) and field.has_changed(stored, self[name].data)

    def full_clean(self) -> None:
        super().full_clean()
        is_typed = self.is_bound and bool(self.data.get("client_secret"))
        if is_typed and self.errors and "client_secret" not in self.errors:
            self.add_error("client_secret", AGAIN)

    def is_valid(self) -> bool:
        return super().is_valid() and not self.only_looks

    def changed_columns(self) -> list[str]:
        """So that what somebody else changed meanwhile stays."""
        changed = {"client_secret" if name == "forget_secret" else name for name in self.changed_data}
        return sorted(changed)
