"""The warnings about a connection, on its form and on the admin pages of users and properties."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from urllib.parse import urlsplit

from django.db.models import Q
from django.db.models.functions import Lower

from accounts import privileges, roles
from accounts.admin import users as user_pages
from accounts.models import User
from sso.models import CertificatePair, IdentityLink, OidcSetting
from sso.provider.discovery import SIGNING_ALGORITHMS
from system import admin, encryption, properties
from system.admin_site.name_lists import summarize_names
from system.models import Property

APPROVAL_AFTER_SAVE = (
    "If you save this form, an administrator must approve the connection. Until then, users with protected roles "
    "cannot sign in through it. This test takes that into account."
)
# Rule 2: "When Ignore case sensitivity is selected and the property is true, no user is authorized."
NOBODY_CAN_SIGN_IN = (
    f"Nobody can sign in because Ignore case sensitivity is selected and the property {properties.CASE_SENSITIVE.name} "
    "is true. Clear the option, or have an administrator set the property to false."
)

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")

MAX_NAMES = 5
# Certificates are refreshed daily.
MAX_CERTIFICATE_AGE = timedelta(days=2)
SECRET_NOT_KEPT = "Enter the client secret again before you save. It is never sent back to the browser."
SECRET_REMOVED = "The client secret was removed because Provider URL or Realm changed. Enter the one for this provider."

ACTIVE_DELETION_WARNING = (
    "This connection is active. If you delete it, users can sign in only with a password. Users without a password "
    "cannot sign in."
)
UNSAVED_VALUES = "The test used the values on this page, which have not been saved."
UNSAVED_VALUES_IN_USE = f"{UNSAVED_VALUES} Sign-ins still use the saved settings."
TEST_RECOMMENDED = "These values have not been tested. Use “Test connection”."


def find_warnings(setting: OidcSetting, callback_url: str) -> Iterator[str]:
    """Yield all warnings. `callback_url` is the URL of our callback view at the host that the browser uses."""
    if setting.needs_approval:
        yield (
            "This connection was changed by a user without the role admin. Until an administrator approves it, users "
            "with protected roles such as admin cannot sign in through it. All other users can."
        )
    if blocks_all_sign_ins(setting):
        yield NOBODY_CAN_SIGN_IN
    if setting.endpoints is None:
        yield f"Nobody can sign in until the provider is found. {setting.resolve_error}".strip()
    elif setting.resolve_error:
        yield f"Last check of the provider: {setting.resolve_error}"
    algorithms = setting.algorithms
    if algorithms and not set(algorithms) & set(SIGNING_ALGORITHMS):
        yield f"Nobody can sign in. The provider supports none of the algorithms {', '.join(SIGNING_ALGORITHMS)}."
    yield from redirect_uri_warnings(setting, callback_url)
    url = urlsplit(setting.url_idp)
    if url.scheme == "http" and url.hostname not in LOCAL_HOSTS:
        yield "Provider URL uses http. Others on the network can read and change the provider's responses."
    yield from _login_warnings(setting)
    yield from _mixed_case_warnings(setting)
    yield from _secret_warnings(setting)
    yield from _duplicate_warnings(setting)
    pair = CertificatePair.objects.filter(url_idp=setting.url_idp, realm=setting.realm).first()
    if pair is not None and pair.failure:
        yield f"The last certificate update failed. {pair.failure}"
    if pair is not None and pair.warning:
        yield pair.warning


def blocks_all_sign_ins(setting: OidcSetting) -> bool:
    return setting.ignore_case and bool(properties.CASE_SENSITIVE.read(properties.fetch(properties.CASE_SENSITIVE)))


def has_callback_path(setting: OidcSetting, callback_url: str) -> bool:
    """Whether the Redirect URI is the path of our callback view, at any host."""
    return urlsplit(setting.redirect_uri).path == urlsplit(callback_url).path


def redirect_uri_warnings(setting: OidcSetting, callback_url: str) -> Iterator[str]:
    redirect_uri, expected_uri = urlsplit(setting.redirect_uri), urlsplit(callback_url)
    if not has_callback_path(setting, callback_url):
        yield f"The path of the Redirect URI must be {expected_uri.path}."
    elif redirect_uri[:2] != expected_uri[:2]:
        yield (
            f"You are using this service at {expected_uri.scheme}://{expected_uri.netloc}, but the Redirect URI is at "
            f"{redirect_uri.scheme}://{redirect_uri.netloc}. Use the same scheme, host and port for both."
        )


def _login_warnings(setting: OidcSetting) -> Iterator[str]:
    """At many providers, users choose their own login, so somebody else could take over an unlinked account."""
    if setting.user_field != setting.UserField.LOGIN:
        return
    protected_role_ids = {sys_id for role in privileges.protected_roles() for sys_id in roles.containing_ids(role.pk)}
    privileged_users = User.objects.filter(active=True, grants__role__in=protected_role_ids)
    unlinked_users = privileged_users.exclude(identity_links__issuer=setting.issuer).distinct().order_by("login")
    if names := [user.login for user in unlinked_users[: MAX_NAMES + 1]]:
        yield (
            "Users are matched by Login. These accounts with protected roles are not linked to this provider yet: "
            f"{summarize_names(names, MAX_NAMES)}. Anyone who can choose one of these logins at the provider can sign "
            "in as that user. Let these users sign in first, or set User field to Email."
        )


def _mixed_case_warnings(setting: OidcSetting) -> Iterator[str]:
    """Most providers send emails in lowercase."""
    if setting.user_field != setting.UserField.EMAIL or not properties.get(properties.CASE_SENSITIVE):
        return
    mixed_case_users = User.objects.filter(active=True).exclude(email=Lower("email"))
    unlinked_users = mixed_case_users.exclude(identity_links__issuer=setting.issuer).order_by("login")
    if names := [user.login for user in unlinked_users[: MAX_NAMES + 1]]:
        creates_account = setting.enable_user_creation
        consequence = "creates a second account" if creates_account else "refuses the sign-in"
        yield (
            f"The emails of these accounts have capital letters: {summarize_names(names, MAX_NAMES)}. Emails are "
            f"case-sensitive here. If the provider sends them in lowercase, this service {consequence}. Have an "
            f"administrator store the emails in lowercase, or set {properties.CASE_SENSITIVE.name} to false."
        )


def _secret_warnings(setting: OidcSetting) -> Iterator[str]:
    is_code_flow = setting.response_type == setting.ResponseType.CODE
    if is_code_flow and setting.authorization_type == setting.AuthorizationType.CODE and not setting.client_secret:
        yield "Most providers require a client secret for the Authorization Code Flow. Enter one, or choose PKCE."
    try:
        _ = setting.decrypted_client_secret
    except encryption.DecryptionFailed:
        yield "The client secret cannot be decrypted with the keys in SVC_SECRET_KEYS. Enter it again."


def _duplicate_warnings(setting: OidcSetting) -> Iterator[str]:
    """Duplicates are allowed, but are usually a mistake."""
    others = OidcSetting.objects.exclude(pk=setting.pk)
    if others.filter(name__iexact=setting.name).exists():
        yield f"Another connection is also called “{setting.name}”. Rename one of them to tell them apart."
    is_same_provider = Q(url_idp=setting.url_idp, realm=setting.realm)
    if setting.issuer:
        is_same_provider |= Q(issuer=setting.issuer)
    duplicates = others.filter(is_same_provider, client_id=setting.client_id)
    if names := [other.name for other in duplicates[: MAX_NAMES + 1]]:
        name_list = summarize_names(names, MAX_NAMES)
        yield f"Other connections use the same provider and client ID: {name_list}. Delete the ones you do not need."


@user_pages.DELETION_WARNINGS.register
def warn_about_recreation(users: Iterable[User]) -> Iterable[str]:
    setting = OidcSetting.get_active()
    if setting is None or not setting.enable_user_creation:
        return
    links = IdentityLink.objects.filter(user__in=[user.pk for user in users], issuer=setting.issuer)
    logins = list(links.order_by("user__login").values_list("user__login", flat=True)[: user_pages.MAX_NAMES + 1])
    if logins:
        yield (
            f"The connection “{setting.name}” creates missing accounts (Enable user creation). The next sign-in of "
            f"{summarize_names(logins, user_pages.MAX_NAMES)} would create a new account. To block a user, clear "
            "Active instead of deleting the user."
        )


@admin.PROPERTY_WARNINGS.register
def warn_about_welcome_page(saved_property: Property) -> Iterable[str]:
    setting = OidcSetting.get_active() if saved_property.name == properties.WELCOME_PAGE.name else None
    if setting is not None and saved_property.value != setting.redirect_uri:
        yield (
            f"The active connection “{setting.name}” set this property to its Redirect URI, {setting.redirect_uri}. "
            "Visitors to / no longer go to the provider. Saving the connection sets the property again."
        )
