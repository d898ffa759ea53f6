"""Admin pages of connections: the form, its buttons and the discovered endpoints."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse

from sso.admin import connection_test, connection_warnings
from sso.admin.connection_form import ConnectionForm
from sso.connections import certificate_updates, saving
from sso.models import CertificatePair, IdpCertificate, OidcSetting
from sso.models.provider_state import INTERNAL_COLUMNS
from sso.provider import discovery, request_slots
from system.admin_site.site import HistoryAdmin
from system.errors import Conflict
from system.http import error_responses
from system.outbound.deadline import Deadline

CONNECTION_INACTIVE = "Only the active connection's certificates can be updated."
NOT_FOUND = "The provider was not found."


def update_certificates(request: HttpRequest, setting: OidcSetting) -> None:
    """ "Updating certificates is allowed only for an active OIDC setup." """
    if not setting.active:
        messages.error(request, f"{certificate_updates.UPDATE_FAILED} {CONNECTION_INACTIVE}")
        return
    deadline = Deadline.after(discovery.MAX_DISCOVERY_S)
    with request_slots.request_slot():
        if setting.endpoints is None:
            discovery.rediscover(setting, deadline=deadline)
        if setting.endpoints is None:
            messages.error(request, f"{certificate_updates.UPDATE_FAILED} {setting.resolve_error or NOT_FOUND}")
            return
        try:
            outcome = certificate_updates.refresh_certificates(
                setting, trigger=certificate_updates.TRIGGER_FORM, deadline=deadline
            )
        except certificate_updates.CertificateUpdateFailed as error:
            messages.error(request, str(error))
        else:
            messages.success(request, f"The certificates are up to date: {outcome}")


def approve(request: HttpRequest, setting: OidcSetting) -> None:
    try:
        setting.approve(reviewed_version=request.POST.get("seen_version", ""))
    except Conflict as error:
        messages.error(request, error.message)
    else:
        messages.success(request, f"“{setting.name}” was approved.")


def adopt_endpoints(request: HttpRequest, setting: OidcSetting) -> None:
    """ "A changed issuer or host never applies by itself": here an administrator confirms it."""
    previous_endpoints = setting.endpoints
    with request_slots.request_slot():
        problem = discovery.rediscover(setting, accepts_risky_change=True)
    if problem or setting.endpoints is None:
        messages.error(request, f"Nothing was changed. {problem}")
        return
    changes = setting.endpoints.describe_changes(previous_endpoints)
    detail = f" Changed: {changes}." if changes else ""
    messages.success(request, f"The discovered endpoints were adopted.{detail}")


def build_callback_url(request: HttpRequest) -> str:
    """The URL of the callback view at the host that this browser uses."""
    return error_responses.own_url(request, reverse("sso:callback"))


# Buttons that change the stored record; the values in the form are neither used nor saved.
ACTIONS: dict[str, Callable[[HttpRequest, OidcSetting], None]] = {
    "_update_certificates": update_certificates,
    "_approve": approve,
    "_adopt": adopt_endpoints,
}
# Buttons that use the values in the form and change no setting.
TESTS: dict[str, Callable[[HttpRequest, OidcSetting], connection_test.TestReport]] = {
    "_test": lambda request, setting: connection_test.run_connection_test(setting, build_callback_url(request)),
    "_try": lambda request, setting: connection_test.try_script(setting, request.POST.get("try_claims", "")),
}


# The columns that decide whether a provider accepts this service.
CLIENT_COLUMNS = frozenset(
    {"url_idp", "realm", "authorization_type", "client_id", "client_secret", "redirect_uri", "scope", "response_type"}
)


@admin.register(OidcSetting)
class ConnectionAdmin(HistoryAdmin):
    checks_edit_conflicts = False  # the form keeps other users' changes to other fields
    empty_list_text = "Connections to identity providers. Users sign in through the active connection."
    form = ConnectionForm

    class Media:
        js = ("servicebase/connection-form.js", "servicebase/copy-buttons.js")

    list_display = ("name", "url_idp", "realm", "active", "state", "sys_updated_at")
    list_filter = ["active"]
    search_fields = ("name", "url_idp", "realm", "client_id")
    readonly_fields = (
        "issuer", "authorization_endpoint", "token_endpoint", "userinfo_endpoint", "jwks_uri", "end_session_endpoint",
        "advertised_algorithms", "resolved_at",
    )  # fmt: skip
    CLIENT_ROW = "client_id", "client_secret"
    fieldsets = (
        (None, {"fields": (
            ("name", "authorization_type"), ("url_idp", "realm"), CLIENT_ROW, ("redirect_uri", "scope"), "active",
        )}),
        ("Access", {"fields": (
            "user_field", ("enable_user_creation", "ignore_case"),
            ("enable_role_mapping", "update_data_when_login"), "script",
        )}),
        ("Advanced", {"fields": ("response_type", ("role_claim", "group_claim")), "classes": ["collapse"]}),
    )  # fmt: skip
    DISCOVERED_FIELDSET = ("Discovered endpoints", {"fields": readonly_fields, "classes": ["collapse"]})

    @admin.display(description="State")
    def state(self, setting: OidcSetting) -> str:
        if setting.needs_approval:
            return "approval required"
        return "provider found" if setting.issuer and not setting.resolve_error else "check the provider"

    @admin.display(description="Algorithms")
    def advertised_algorithms(self, setting: OidcSetting) -> str:
        return ", ".join(setting.algorithms)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        fieldsets = super().get_fieldsets(request, obj)
        if obj is None:
            return fieldsets
        (title, options), *others, record_fieldset = fieldsets
        fields = list(options["fields"])
        if obj.client_secret:
            fields.insert(fields.index(self.CLIENT_ROW) + 1, "forget_secret")
        return [(title, {**options, "fields": tuple(fields)}), *others, self.DISCOVERED_FIELDSET, record_fieldset]

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {"redirect_uri": build_callback_url(request), **super().get_changeform_initial_data(request)}

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any) -> Any:
        form = super().get_form(request, obj, change, **options)
        form.is_read_only = any(button in request.POST for button in (*ACTIONS, *TESTS))
        return form

    def delete_view(self, request: HttpRequest, object_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        setting = self.get_object(request, object_id) if request.method == "GET" else None
        if setting is not None and setting.active and self.has_delete_permission(request, setting):
            messages.warning(request, connection_warnings.ACTIVE_DELETION_WARNING)
        return super().delete_view(request, object_id, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: OidcSetting, form: Any, change: bool) -> None:
        previously_active = OidcSetting.get_active()
        had_secret = change and bool(form.initial.get("client_secret"))
        columns = form.changed_columns() if change else None
        saving.save_connection(obj, update_fields=columns, script_checks=form.script_checks)
        request.saved_connection = obj  # type: ignore[attr-defined]  # for the warnings after the commit
        if obj.active and previously_active is not None and previously_active.pk != obj.pk:
            messages.info(request, f"“{previously_active.name}” was deactivated. Only one connection can be active.")
        if obj.active and CLIENT_COLUMNS & set(form.changed_data) and "tested" not in request.POST:
            messages.info(request, connection_warnings.TEST_RECOMMENDED)
        if had_secret and not obj.client_secret and "forget_secret" not in form.changed_data:
            messages.warning(request, connection_warnings.SECRET_REMOVED)

    def changeform_view(self, request: HttpRequest, object_id: Any = None, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method == "POST" and object_id is not None:
            self._run_action(request, object_id)
        response = super().changeform_view(request, object_id, *args, **kwargs)
        # The transaction has ended: network calls are allowed, and endpoints found after the save are stored.
        if isinstance(response, TemplateResponse):
            self._add_context(request, response)
        elif isinstance(response, HttpResponseRedirect) and "_continue" not in request.POST:
            self._show_warnings(request)
        return response

    def _run_action(self, request: HttpRequest, object_id: str) -> None:
        for button, action in ACTIONS.items():
            if button in request.POST:
                setting = self.get_object(request, object_id)
                if setting is None or not self.has_change_permission(request, setting):
                    raise PermissionDenied
                version = str(setting.sys_version)
                try:
                    action(request, setting)
                except request_slots.NoSlotFree:
                    messages.error(request, f"Nothing was changed. {request_slots.NO_SLOT_FREE}")
                self._update_seen_version(request, version, str(setting.sys_version))

    def _update_seen_version(self, request: HttpRequest, old_version: str, new_version: str) -> None:
        """Count the new version as seen if the administrator saw the old one: the next page shows the difference."""
        if request.POST.get("seen_version") == old_version:
            request.seen_version = new_version  # type: ignore[attr-defined]

    def _add_context(self, request: HttpRequest, response: TemplateResponse) -> None:
        """Add the boxes around the form: warnings, test report and certificates."""
        context: dict[str, Any] = response.context_data or {}
        if "adminform" not in context:
            return  # a page that confirms a deletion
        form = context["adminform"].form
        setting = context.get("original")
        callback_url = build_callback_url(request)
        context["try_claims"] = request.POST.get("try_claims", "")
        if request.method == "POST" and not form.errors:
            for button, test in TESTS.items():
                if button in request.POST:
                    context["report"] = report = test(request, form.instance)
                    self._update_seen_version(request, *report.versions)
        stored_setting = OidcSetting.objects.filter(pk=setting.pk).first() if setting is not None else None
        if stored_setting is not None:
            context["notes"] = list(connection_warnings.find_warnings(stored_setting, callback_url))
            context["stored"] = stored_setting
            # A test may have updated them since they were read.
            for name in {*INTERNAL_COLUMNS, *self.BOOKKEEPING}:
                setattr(form.instance, name, getattr(stored_setting, name))
            context["delete_url"] = reverse("admin:sso_oidcsetting_delete", args=[stored_setting.pk])
            context["may_approve"] = stored_setting.needs_approval and request.user.is_superuser
            # After a POST, Approve still applies to the version that was reviewed, not to the current one.
            reviewed_version = getattr(request, "seen_version", request.POST.get("seen_version", ""))
            context["seen_version"] = reviewed_version if request.method == "POST" else stored_setting.sys_version
            url_idp, realm = stored_setting.pair
            context["certificates"] = IdpCertificate.of_pair(url_idp, realm)
            context["pair"] = CertificatePair.objects.filter(url_idp=url_idp, realm=realm).first()
        if request.POST.get("client_secret") and not form.errors:  # with errors, the field shows this message
            context["secret_not_kept"] = connection_warnings.SECRET_NOT_KEPT

    def _show_warnings(self, request: HttpRequest) -> None:
        """After Save and exit, show the form's warnings on the next page."""
        saved_setting = getattr(request, "saved_connection", None)
        setting = OidcSetting.objects.filter(pk=saved_setting.pk).first() if saved_setting is not None else None
        for warning in connection_warnings.find_warnings(setting, build_callback_url(request)) if setting else ():
            messages.warning(request, warning)
