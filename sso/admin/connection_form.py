"""The connection form, with its help texts and its write-only secret."""

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextareaWidget, UnfoldBooleanWidget

from accounts import roles
from sso.connections.saving import ScriptChecks
from sso.models import OidcSetting
from sso.models.connection_validators import normalize_newlines
from sso.models.oidc_settings import default_script
from sso.models.provider_state import INTERNAL_COLUMNS
from system import encryption, properties

PROTECTED_ROLE_NAMES = [name for name, (_, is_grantable) in roles.SHIPPED_ROLES.items() if not is_grantable]
SECRET_HELP = "A secret is set. Leave empty to keep it. If you change Provider URL or Realm, enter it again."
ENTER_SECRET_AGAIN = "Enter the client secret again. It is never sent back to the browser."
CHANGED_BY_ANOTHER_USER = "Another user changed this field after you opened the page. Reload to see the current value."
HELP_TEXTS = {
    "name": "Shown on the sign-in button.",
    "url_idp": "Address of the provider, such as https://idp.example.com. With the realm, it leads to the endpoints.",
    "realm": "Realm, tenant or application at the provider. Up to 64 letters, digits, dots, hyphens and underscores.",
    "authorization_type": "Both types use PKCE. Only Authorization Code Flow also sends the client secret.",
    "client_id": "The ID under which this service is registered at the provider.",
    "user_field": (
        "The field that identifies a user at the first sign-in. After that, the account is linked to the identity. "
        "Choose Login only if users cannot set their own login at the provider."
    ),
    "redirect_uri": "The callback URL of this service. Register exactly this URL at the provider.",
    "scope": "Must include openid. Most providers send the email address and name only with email and profile.",
    "active": (
        "The start page redirects visitors to the provider of the active connection. Saving an active connection "
        "deactivates any other active connection. If you get locked out, sign in at /login/?local=1."
    ),
    "enable_user_creation": "Create an account at first sign-in if none exists.",
    "ignore_case": f"Requires the property {properties.CASE_SENSITIVE.name} to be false. Otherwise nobody can sign in.",
    "enable_role_mapping": (
        "Grant the roles in the token, and create roles that do not exist. A provider never grants protected roles (by "
        f"default {', '.join(PROTECTED_ROLE_NAMES)})."
    ),
    "update_data_when_login": "Update roles, groups and the fields set by the script at every sign-in.",
    "script": "A JavaScript function map(claims). It returns login, email, first_name, last_name and phone, and "
    "custom columns of users (x_…).",
    "response_type": (
        "With code, the provider returns a code that is exchanged for tokens. With id_token, it returns tokens in the "
        "URL fragment, and Authorization type is ignored."
    ),
    "role_claim": (
        "Path of the claim that contains the roles. Leave empty to use realm_access.roles, "
        "resource_access.{Client ID}.roles, roles and groups."
    ),
    "group_claim": (
        "Path of the claim that contains the groups. The user is added only to groups that are grantable by sign-in. "
        "Leave empty to map no groups."
    ),
}


class SecretField(forms.CharField):
    """An empty field keeps the stored secret, which is never shown."""

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(data)


class ScriptField(forms.CharField):
    widget = UnfoldAdminTextareaWidget(attrs={"rows": 9, "spellcheck": "false", "class": "sb-code"})

    def to_python(self, value: Any) -> Any:
        return normalize_newlines(str(super().to_python(value)))


class ConnectionForm(forms.ModelForm):  # type: ignore[type-arg]
    client_secret = SecretField(
        label="Client secret",
        required=False,
        strip=False,
        max_length=1000,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
    )
    script = ScriptField(strip=False, help_text=HELP_TEXTS["script"], initial=default_script)
    forget_secret = forms.BooleanField(required=False, label="Remove the client secret", widget=UnfoldBooleanWidget)

    class Meta:
        model = OidcSetting
        fields = [name for name in OidcSetting.table_columns if name not in INTERNAL_COLUMNS]
        help_texts = HELP_TEXTS

    # True for buttons that do not save. The form is shown again with the entered values.
    is_read_only = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.script_checks = ScriptChecks()
        has_secret = bool(self.instance.client_secret)
        self.fields["client_secret"].help_text = SECRET_HELP if has_secret else "Not set."
        if not has_secret:
            del self.fields["forget_secret"]
        # Compare with the values that the page showed, so that changes by others do not count as changes by this user.
        if not self.is_bound or any(name.startswith("initial-") for name in self.data):
            for name, field in self.fields.items():
                field.show_hidden_initial = name not in ("client_secret", "forget_secret")

    def clean_client_secret(self) -> str:
        secret = self.cleaned_data["client_secret"]
        return encryption.encrypt(secret) if secret else self.instance.client_secret

    def clean(self) -> dict[str, Any]:
        cleaned_data: dict[str, Any] = super().clean() or self.cleaned_data
        for name in filter(self._is_changed_by_others, self.changed_data):
            self.add_error(name, CHANGED_BY_ANOTHER_USER)
        if cleaned_data.get("forget_secret"):
            cleaned_data["client_secret"] = ""
        return cleaned_data

    def _is_changed_by_others(self, name: str) -> bool:
        """Whether, since the page was opened, another user has stored a value that differs from the entered one."""
        field = self.fields[name]
        if not field.show_hidden_initial or self.instance.is_new:
            return False
        stored_value = self.get_initial_for_field(field, name)
        shown_value = field.hidden_widget().value_from_datadict(self.data, self.files, self.add_initial_prefix(name))
        return field.has_changed(stored_value, shown_value) and field.has_changed(stored_value, self[name].data)

    def _post_clean(self) -> None:
        super()._post_clean()  # type: ignore[misc]  # not in the stubs
        setting: OidcSetting = self.instance
        script_error = self.script_checks.find_error(setting.stored_record(), setting.script, is_active=setting.active)
        if script_error and "script" not in self.errors:
            self.add_error("script", script_error)

    def full_clean(self) -> None:
        super().full_clean()
        is_secret_entered = self.is_bound and bool(self.data.get("client_secret"))
        if is_secret_entered and self.errors and "client_secret" not in self.errors:
            self.add_error("client_secret", ENTER_SECRET_AGAIN)

    def is_valid(self) -> bool:
        return super().is_valid() and not self.is_read_only

    def changed_columns(self) -> list[str]:
        """The columns to save; changes by other users to the other columns are kept."""
        return sorted({"client_secret" if name == "forget_secret" else name for name in self.changed_data})
