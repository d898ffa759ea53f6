"""Admin pages of connections: the form with its buttons, and what was found out about the provider."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from sso.admin import connection_test, connection_warnings
from sso.admin.connection_form import ConnectionForm
from sso.connections import certificate_updates
from sso.models import CertificatePair, IdpCertificate, OidcSetting
from sso.models.provider_state import OWN_COLUMNS
from sso.provider import discovery, request_slots
from system.admin_site.site import TrackedAdmin
from system.errors import Conflict
from system.http import error_responses
from system.outbound.deadline import Deadline

NOT_ACTIVE = "Certificates are updated for the active connection only."
NOT_FOUND = "The provider has not been found yet."


def update_certificates(request: HttpRequest, setting: OidcSetting) -> None:
    """ "Updating certificates is allowed only for an active OIDC setup." """
    if not setting.active:
        messages.error(request, f"{certificate_updates.FAILED} {NOT_ACTIVE}")
        return
    deadline = Deadline.after(discovery.ALTOGETHER_S)
    with request_slots.request_slot():
        if setting.endpoints is None:
            discovery.look_again(setting, deadline=deadline)
        known = setting.endpoints
        if known is None:
            messages.error(request, f"{certificate_updates.FAILED} {setting.resolve_error or NOT_FOUND}")
            return
        try:
            outcome = certificate_updates.refresh(
                *setting.pair, known.jwks, reason=certificate_updates.FORM, deadline=deadline
            )
        except certificate_updates.CertificateUpdateFailed as error:
            messages.error(request, str(error))
        else:
            messages.success(request, f"The certificates are up to date: {outcome}")


def approve(request: HttpRequest, setting: OidcSetting) -> None:
    try:
        setting.approve(as_seen=request.POST.get("seen_version", ""))
    except Conflict as error:
        messages.error(request, error.message)
    else:
        messages.success(request, f"“{setting.name}” is approved.")


def adopt(request: HttpRequest, setting: OidcSetting) -> None:
    """ "A changed issuer or host never applies by itself": here somebody says that it shall, and reads what it was."""
    before = setting.endpoints
    with request_slots.request_slot():
        problem = discovery.look_again(setting, may_move=True)
    if problem or setting.endpoints is None:
        messages.error(request, f"Nothing was changed. {problem}")
        return
    changed = setting.endpoints.told_since(before)
    told = f" Changed: {changed}." if changed else ""
    messages.success(request, f"The endpoints that the provider names now are in force.{told}")


def callback_of(request: HttpRequest) -> str:
    """Where sign-ins arrive, as this browser knows the service."""
    return error_responses.own_url(request, reverse("sso:callback"))


# Buttons that act on the record as it is stored; what is typed in the form stays there, unsaved.
ACTS: dict[str, Callable[[HttpRequest, OidcSetting], None]] = {
    "_update_certificates": update_certificates,
    "_approve": approve,
    "_adopt": adopt,
}
# Buttons that look at what is typed and change no setting.
LOOKS: dict[str, Callable[[HttpRequest, OidcSetting], connection_test.TestReport]] = {
    "_test": lambda request, setting: connection_test.connection(setting, callback_of(request)),
    "_try": lambda request, setting: connection_test.script(setting, request.POST.get("try_claims", "")),
}


# What a provider judges this service by.
ASKED_WITH = frozenset(
    {"url_idp", "realm", "authorization_type", "client_id", "client_secret", "redirect_uri", "scope", "response_type"}
)


@admin.register(OidcSetting)
class ConnectionAdmin(TrackedAdmin):
    refuses_later_changes = False  # its form keeps what others changed in other fields
    holds = "Each is a connection to an identity provider; people sign in through the active one."
    form = ConnectionForm

    class Media:
        js = ("servicebase/connection.js", "servicebase/copy.js")

    list_display = ("name", "url_idp", "realm", "active", "state", "sys_updated_at")
    list_filter: ClassVar[list[Any]] = ["active"]
    search_fields = ("name", "url_idp", "realm", "client_id")
    readonly_fields = (
        "issuer", "authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri", "end_session_endpoint",
        "advertised", "resolved_at",
    )  # fmt: skip
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "name", "url_idp", "realm", "authorization_type", "client_id", "user_field", "client_secret",
                    "redirect_uri", "scope", "active",
                )
            },
        ),
        (
            "Who may come in",
            {
                "fields": (
                    "enable_user_creation", "ignore_case", "enable_role_mapping", "update_data_when_login", "script",
                )
            },
        ),
        ("Seldom needed", {"fields": ("response_type", "role_claim"), "classes": ["collapse"]}),
    )  # fmt: skip
    FOUND = ("What was found at the provider", {"fields": readonly_fields, "classes": ["collapse"]})

    @admin.display(description="State")
    def state(self, setting: OidcSetting) -> str:
        if setting.needs_approval:
            return "waits for an approval"
        return "provider found" if setting.issuer and not setting.resolve_error else "provider needs a look"

    @admin.display(description="Algorithms")
    def advertised(self, setting: OidcSetting) -> str:
        return ", ".join(setting.algorithms)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        found = super().get_fieldsets(request, obj)
        if obj is None:
            return found
        (title, options), *others, record = found
        fields = list(options["fields"])
        if obj.client_secret:
            fields.insert(fields.index("client_secret") + 1, "forget_secret")
        return [(title, {**options, "fields": tuple(fields)}), *others, self.FOUND, record]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "redirect_uri": callback_of(request),
            **super().get_changeform_initial_data(request),
        }

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        form = super().get_form(request, obj, change, **options)
        form.only_looks = any(button in request.POST for button in (*ACTS, *LOOKS))
        return form

    def delete_view(self, request: HttpRequest, object_id: str, *positional: Any, **named: Any) -> HttpResponse:
        setting = self.get_object(request, object_id) if request.method == "GET" else None
        if setting is not None and setting.active and self.has_delete_permission(request, setting):
            messages.warning(request, connection_warnings.DELETES_ACTIVE)
        return super().delete_view(request, object_id, *positional, **named)

    def save_model(self, request: HttpRequest, obj: OidcSetting, form: Any, change: bool) -> None:
        active_before = OidcSetting.active_one()
        had_secret = change and bool(form.initial.get("client_secret"))
        obj.save(update_fields=form.changed_columns() if change else None)
        request.saved_connection = obj  # type: ignore[attr-defined]  # for what is said after the commit
        if obj.active and active_before is not None and active_before.pk != obj.pk:
            messages.info(request, f"“{active_before.name}” is not active any more: there is one active connection.")
        if obj.active and ASKED_WITH & set(form.changed_data):
            messages.info(request, connection_warnings.UNTRIED)
        if had_secret and not obj.client_secret and "forget_secret" not in form.changed_data:
            messages.warning(request, connection_warnings.SECRET_REMOVED)

    def changeform_view(
        self, request: HttpRequest, object_id: Any = None, *positional: Any, **named: Any
    ) -> HttpResponse:
        if request.method == "POST" and object_id is not None:
            self._act(request, object_id)
        response = super().changeform_view(request, object_id, *positional, **named)
        # The transaction is over: from here on calls may go out, and what was found at the save is there.
        if isinstance(response, TemplateResponse):
            self._complete(request, response)
        elif isinstance(response, HttpResponseRedirect) and "_continue" not in request.POST:
            self._warn(request)
        return response

    def _act(self, request: HttpRequest, object_id: str) -> None:
        for button, act in ACTS.items():
            if button in request.POST:
                setting = self.get_object(request, object_id)
                if setting is None or not self.has_change_permission(request, setting):
                    raise PermissionDenied
                read = str(setting.sys_version)
                try:
                    act(request, setting)
                except request_slots.NoSlotFree:
                    messages.error(request, f"Nothing was changed. {request_slots.NONE_FREE}")
                self._shows(request, read, str(setting.sys_version))

    def _shows(self, request: HttpRequest, read: str, made: str) -> None:
        """What a button made of the very version that the page showed, it shows on the page that comes now."""
        if request.POST.get("seen_version") == read:
            request.seen_version = made  # type: ignore[attr-defined]

    def _complete(self, request: HttpRequest, response: TemplateResponse) -> None:
        """The boxes around the form."""
        seen: dict[str, Any] = response.context_data or {}
        if "adminform" not in seen:
            return  # a list of what would be deleted
        form = seen["adminform"].form
        setting = seen.get("original")
        callback = seen["to_register"] = callback_of(request)
        seen["try_claims"] = request.POST.get("try_claims", "")
        if request.method == "POST" and not form.errors:
            for button, look in LOOKS.items():
                if button in request.POST:
                    seen["report"] = report = look(request, form.instance)
                    self._shows(request, *report.versions)
        stored = OidcSetting.objects.filter(pk=setting.pk).first() if setting is not None else None
        if stored is not None:
            seen["notes"] = connection_warnings.about(stored, callback)
            if connection_warnings.leads_to(stored, callback):
                seen["to_register"] = stored.redirect_uri
            seen["stored"] = stored
            # A look may have brought them up to date since they were read.
            for name in {*OWN_COLUMNS, *self.BOOKKEEPING}:
                setattr(form.instance, name, getattr(stored, name))
            seen["delete_address"] = reverse("admin:sso_oidcsetting_delete", args=[stored.pk])
            seen["may_approve"] = stored.needs_approval and request.user.is_superuser
            # A page that comes again shows what was posted: it approves what was looked at, not what stands by now.
            looked_at = getattr(request, "seen_version", request.POST.get("seen_version", ""))
            seen["seen_version"] = looked_at if request.method == "POST" else stored.sys_version
            seen["certificates"] = IdpCertificate.of_pair(*stored.pair)
            seen["pair"] = CertificatePair.objects.filter(url_idp=stored.url_idp, realm=stored.realm).first()
        if request.POST.get("client_secret") and not form.errors:  # with errors the field itself says it
            seen["secret_is_gone"] = connection_warnings.SECRET_IS_GONE

    def _warn(self, request: HttpRequest) -> None:
        """Whoever leaves the form at the save reads on the next page what they would have read there."""
        saved = getattr(request, "saved_connection", None)
        stored = OidcSetting.objects.filter(pk=saved.pk).first() if saved is not None else None
        for note in connection_warnings.about(stored, callback_of(request)) if stored is not None else ():
            messages.warning(request, note)
