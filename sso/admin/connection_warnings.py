"""What an administrator should know about a connection as it stands; one sentence each."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from django.db.models import Q

from accounts import roles
from accounts.models import User
from accounts.privileges import privilege_guard
from sso.models import CertificatePair, OidcSetting
from sso.provider.discovery import SIGNING_ALGORITHMS
from system import encryption, properties
from system.admin_site.name_lists import first_of

APPROVAL = (
    "This connection was changed by somebody without the role admin. Holders of roles that no sign-in may grant, admin "
    "among them, cannot sign in through it until an administrator approves it; everybody else can."
)
ONCE_SAVED = (
    "Saved by you as it stands in the form, the connection waits for an administrator's approval. Until then nobody "
    "who holds a role that no sign-in may grant can sign in through it; this trial goes by that."
)
# Rule 2: "When Ignore case sensitivity is selected and the property is true, no user is authorized."
NOBODY = (
    f"Nobody can sign in: Ignore case sensitivity is selected while the property {properties.CASE_SENSITIVE.name} is "
    "true. Clear the one or set the other to false."
)

OWN_MACHINE = ("localhost", "127.0.0.1", "::1")

MOST_NAMED = 5
OPEN_LOGINS = (
    "People are found by Login, and these accounts with guarded roles are not tied to this provider yet: {names}. "
    "Whoever can choose such a name at the provider comes into the account: make sure that nobody can, or choose Email."
)
SECRET_IS_GONE = "Enter the client secret again before you save: what was typed is never sent back to the browser."
SECRET_REMOVED = "The client secret was removed, because URL IdP or Realm changed: enter the one of this provider."

DELETES_ACTIVE = (
    "This connection is active. Without it nobody is led to the provider any more: people sign in with passwords, and "
    "who has none cannot come in."
)
SAME_NAME = "Another connection is called “{name}” too. Give one of them another name, so that nobody mixes them up."
SAME_CLIENT = (
    "Another connection leads to the same provider with the same Client ID: {names}. Delete the one that nobody needs."
)
UNSAVED = "Tested was what stands on this page; it is not saved yet."
UNSAVED_IN_USE = f"{UNSAVED.removesuffix('.')}, sign-ins still use the stored settings."
UNTRIED = "Whether the provider takes this service as it is set now, Test connection says."


def about(setting: OidcSetting, callback: str) -> list[str]:
    """`callback`: where sign-ins arrive, as the administrator's browser knows this service."""
    return list(_about(setting, callback))


def _about(setting: OidcSetting, callback: str) -> Iterator[str]:
    if setting.needs_approval:
        yield APPROVAL
    if lets_nobody_in(setting):
        yield NOBODY
    if setting.endpoints is None:
        yield f"The provider has not been found, so nobody can sign in. {setting.resolve_error}".strip()
    elif setting.resolve_error:
        yield f"The last look at the provider: {setting.resolve_error}"
    advertised = setting.algorithms
    if advertised and not set(advertised) & set(SIGNING_ALGORITHMS):
        yield f"The provider signs with none of {', '.join(SIGNING_ALGORITHMS)}, so nobody can sign in."
    yield from about_redirect_uri(setting, callback)
    yield from _about_url_idp(setting)
    yield from _about_logins(setting)
    yield from _about_secret(setting)
    yield from _about_twins(setting)
    yield from _about_certificates(setting)


def lets_nobody_in(setting: OidcSetting) -> bool:
    return setting.ignore_case and bool(properties.CASE_SENSITIVE.read(properties.stored(properties.CASE_SENSITIVE)))


def leads_to(setting: OidcSetting, callback: str) -> bool:
    """Whether sign-ins arrive at its Redirect URI, under whichever name of this service."""
    return urlsplit(setting.redirect_uri).path == urlsplit(callback).path


def about_redirect_uri(setting: OidcSetting, callback: str) -> Iterator[str]:
    ends_at, arrive_at = urlsplit(setting.redirect_uri), urlsplit(callback)
    if not leads_to(setting, callback):
        yield f"The Redirect URI does not lead to {arrive_at.path}, where sign-ins arrive: correct it here."
    elif ends_at[:2] != arrive_at[:2]:
        yield (
            f"You are using this service at {arrive_at.scheme}://{arrive_at.netloc}, and the Redirect URI leads to "
            f"{ends_at.scheme}://{ends_at.netloc}: a sign-in that begins at the one does not end at the other."
        )


def _about_url_idp(setting: OidcSetting) -> Iterator[str]:
    idp = urlsplit(setting.url_idp)
    if idp.scheme == "http" and idp.hostname not in OWN_MACHINE:
        yield "URL IdP begins with http: whoever is on the way can read and change what the provider says."


def _about_logins(setting: OidcSetting) -> Iterator[str]:
    """A login is no secret, and at many providers people choose or change it themselves."""
    if setting.user_field != setting.UserField.LOGIN:
        return
    giving = {sys_id for role in privilege_guard.guarded_roles() for sys_id in roles.ids_that_give(role.pk)}
    holders = User.objects.filter(active=True, grants__role__in=giving)
    untied = holders.exclude(identity_links__issuer=setting.issuer).distinct().order_by("login")
    if names := [user.login for user in untied[: MOST_NAMED + 1]]:
        yield OPEN_LOGINS.format(names=first_of(names, MOST_NAMED))


def _about_secret(setting: OidcSetting) -> Iterator[str]:
    is_exchanged = setting.response_type == setting.ResponseType.CODE
    if is_exchanged and setting.authorization_type == setting.AuthorizationType.CODE and not setting.client_secret:
        yield "The Authorization Code Flow without a client secret works with few providers. Set it, or choose PKCE."
    try:
        _ = setting.secret
    except encryption.Undecipherable:
        yield "The client secret cannot be read with the keys of SVC_SECRET_KEYS. Enter it again."


def _about_twins(setting: OidcSetting) -> Iterator[str]:
    """Two alike are allowed; mostly somebody added one that was there."""
    others = OidcSetting.objects.exclude(pk=setting.pk)
    if others.filter(name__iexact=setting.name).exists():
        yield SAME_NAME.format(name=setting.name)
    is_same_provider = Q(url_idp=setting.url_idp, realm=setting.realm)
    if setting.issuer:
        is_same_provider |= Q(issuer=setting.issuer)
    alike = others.filter(is_same_provider, client_id=setting.client_id)
    if names := [other.name for other in alike[: MOST_NAMED + 1]]:
        yield SAME_CLIENT.format(names=first_of(names, MOST_NAMED))


def _about_certificates(setting: OidcSetting) -> Iterator[str]:
    pair = CertificatePair.objects.filter(url_idp=setting.url_idp, realm=setting.realm).first()
    if pair is not None and pair.failure:
        yield f"The last certificate update failed. {pair.failure}"
    if pair is not None and pair.warning:
        yield pair.warning
