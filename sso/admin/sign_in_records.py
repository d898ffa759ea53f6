"""Admin pages of certificates, identity links and the sign-in log."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.formats import localize
from django.utils.html import format_html

from accounts.privileges import may_change_account
from sso.models import IdentityLink, IdpCertificate, SignIn
from sso.refusals import Refusal
from system.admin_site.site import ReadOnlyAdmin


@admin.register(IdpCertificate)
class IdpCertificateAdmin(ReadOnlyAdmin):
    """Read-only except for deletion, after which the next update fetches the current key with this kid."""

    empty_list_text = (
        "Certificates are fetched at the first sign-in through a connection, or when you select “Update certificates”."
    )

    list_display = ("kid", "url_idp", "realm", "kind", "sys_created_at")
    list_filter = ["realm"]
    search_fields = ("kid", "url_idp", "realm")
    fields = ("kid", "url_idp", "realm", "as_json")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_module_perms("sso"))

    @admin.display(description="Kind")
    def kind(self, certificate: IdpCertificate) -> str:
        return " ".join(str(certificate.json.get(name, "")) for name in ("kty", "crv", "alg")).strip()

    @admin.display(description="JSON")
    def as_json(self, certificate: IdpCertificate) -> str:
        return format_html('<pre class="sb-json">{}</pre>', certificate.as_text)


@admin.register(IdentityLink)
class IdentityLinkAdmin(ReadOnlyAdmin):
    """Deleting a link resets it: the next sign-in matches the account by User field again."""

    empty_list_text = (
        "At the first sign-in through an identity provider, the account is linked to it. This page lists the links."
    )

    list_display = ("user", "issuer", "sub", "is_unapproved", "sys_created_at")
    list_select_related = ("user",)
    search_fields = ("user__login", "issuer", "sub")
    fields = ("user", "issuer", "sub", "is_unapproved", "is_email_unverified")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_allowed = obj is None or may_change_account(obj.user)
        return is_allowed and bool(request.user.has_module_perms("sso"))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        to_delete, model_count, perms_needed, protected = super().get_deleted_objects(objs, request)
        note = "only an administrator can reset it, because the account has a protected role"
        kept_links = [f"{link} ({note})" for link in objs if not may_change_account(link.user)]
        return to_delete, model_count, set() if kept_links else perms_needed, [*protected, *kept_links]

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[IdentityLink]) -> None:
        for link in queryset:
            link.delete()


class OutcomeFilter(admin.SimpleListFilter):
    title, parameter_name = "result", "outcome"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        outcomes = SignIn.objects.order_by("outcome").values_list("outcome", flat=True).distinct()
        return [(outcome, SignIn.outcome_title(outcome)) for outcome in outcomes]

    def queryset(self, request: HttpRequest, queryset: QuerySet[SignIn]) -> QuerySet[SignIn]:
        return queryset.filter(outcome=self.value()) if self.value() else queryset


@admin.register(SignIn)
class SignInAdmin(ReadOnlyAdmin):
    empty_list_text = "All sign-ins through identity providers, including refused ones."
    list_before_template = "admin/sso/signin/list_note.html"
    list_display = (
        "sys_created_at", "login", "user", "setting_name", "result", "times", "last_at", "address", "duration_ms",
    )  # fmt: skip
    list_filter = [OutcomeFilter]
    list_select_related = ("user",)
    search_fields = ("login", "user__login", "address", "outcome")
    fields = (
        "sys_created_at", "login", "user", "setting_name", "result", "code", "detail", "advice", "address",
        "duration_ms", "times", "last_at",
    )  # fmt: skip

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        changelist = super().get_changelist_instance(request)
        changelist.title = "Provider sign-ins"
        return changelist

    @admin.display(description="Result", ordering="outcome")
    def result(self, entry: SignIn) -> str:
        return SignIn.outcome_title(entry.outcome)

    @admin.display(description="Code")
    def code(self, entry: SignIn) -> str:
        return "" if entry.outcome == SignIn.OK else entry.outcome

    @admin.display(description="Last occurrence", ordering="sys_updated_at")
    def last_at(self, entry: SignIn) -> str:
        return localize(entry.sys_updated_at)

    @admin.display(description="What to do")
    def advice(self, entry: SignIn) -> str:
        refusal = Refusal.from_code(entry.outcome)
        return refusal.advice if refusal else ""
