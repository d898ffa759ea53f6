"""Admin pages of what sign-ins leave behind: certificates, links, the log."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.formats import localize
from django.utils.html import format_html

from sso.advice import ADVICE
from sso.models import IdentityLink, IdpCertificate, SignIn
from sso.models.identity_links import may_reset
from system.admin_site.site import ReadOnlyAdmin


@admin.register(IdpCertificate)
class CertificateAdmin(ReadOnlyAdmin):
    """To look at, and to delete: the next update fetches what the provider publishes under that kid now."""

    holds = "The first sign-in through a connection fetches those of its provider, and so does Update certificates."

    list_display = ("kid", "url_idp", "realm", "kind", "sys_created_at")
    list_filter: ClassVar[list[Any]] = ["realm"]
    search_fields = ("kid", "url_idp", "realm")
    fields = ("kid", "url_idp", "realm", "as_json")
    readonly_fields = fields

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.has_module_perms("sso"))

    @admin.display(description="Kind")
    def kind(self, certificate: IdpCertificate) -> str:
        return " ".join(str(certificate.json.get(name, "")) for name in ("kty", "crv", "alg")).strip()

    @admin.display(description="JSON")
    def as_json(self, certificate: IdpCertificate) -> str:
        return format_html('<pre class="sb-json">{}</pre>', certificate.as_text)


@admin.register(IdentityLink)
class LinkAdmin(ReadOnlyAdmin):
    """Deleting a link resets it: at the next sign-in the account is found by User field again."""

    holds = "The first sign-in through an identity provider ties an account to it; each tie is listed here."

    list_display = ("user", "issuer", "sub", "is_unapproved", "sys_created_at")
    list_select_related = ("user",)
    search_fields = ("user__login", "issuer", "sub")
    fields = ("user", "issuer", "sub", "is_unapproved", "is_email_unverified")
    readonly_fields = fields

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        is_allowed = obj is None or may_reset(obj)
        return is_allowed and bool(request.user.has_module_perms("sso"))

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        deleted, count, needed, protected = super().get_deleted_objects(objs, request)
        kept = [f"{link} (its account holds a guarded role: only administrators reset it)" for link in self._kept(objs)]
        return deleted, count, set() if kept else needed, [*protected, *kept]

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[IdentityLink]) -> None:
        for link in queryset:
            link.delete()

    def _kept(self, links: Any) -> list[IdentityLink]:
        return [link for link in links if not may_reset(link)]


@admin.register(SignIn)
class SignInAdmin(ReadOnlyAdmin):
    holds = "Every sign-in through an identity provider, and every refused one, leaves an entry here."
    list_before_template = "admin/sso/signin/before.html"
    list_display = (
        "sys_created_at", "login", "user", "setting_name", "outcome", "times", "last_at", "address", "duration_ms",
    )  # fmt: skip
    list_filter: ClassVar[list[Any]] = ["outcome"]
    list_select_related = ("user",)
    search_fields = ("login", "user__login", "address", "outcome")
    fields = (
        "sys_created_at", "login", "user", "setting_name", "outcome", "detail", "what_to_do", "address", "duration_ms",
        "times", "last_at",
    )  # fmt: skip
    readonly_fields = fields

    def get_changelist_instance(self, request: HttpRequest) -> Any:
        found = super().get_changelist_instance(request)
        found.title = "Sign-ins through providers"
        return found

    @admin.display(description="Last at", ordering="sys_updated_at")
    def last_at(self, entry: SignIn) -> str:
        return localize(entry.sys_updated_at)

    @admin.display(description="What to do")
    def what_to_do(self, entry: SignIn) -> str:
        return ADVICE.get(entry.outcome, "")
