"""Admin pages of access keys: created for a user, shown once, revoked by deletion."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.actions import delete_selected
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils import timezone

from accounts.admin.roles import RoleMultipleChoiceField
from accounts.authentication.access_keys import DEFAULT_LIFETIME, store_new_key, take_new_key
from accounts.models import AccessKey, Role
from system.admin_site.site import RecordAdmin


class AccessKeyForm(forms.ModelForm):  # type: ignore[type-arg]
    scope = RoleMultipleChoiceField(
        queryset=Role.objects.all(),
        required=False,
        label="Limit to roles",
        help_text="Leave empty for all of the user's roles. Roles that the user does not have are ignored.",
    )

    class Meta:  # the admin sets the model and the fields
        help_texts = {"expires_at": "In UTC, for example 2030-12-31 and 23:59:00. Leave empty for no expiry."}
        error_messages = {
            "expires_at": {
                "invalid_date": "Enter a date in the format YYYY-MM-DD, for example 2030-12-31.",
                "invalid_time": "Enter a time in the format HH:MM:SS, for example 23:59:00.",
            }
        }

    def clean_expires_at(self) -> Any:
        expires_at = self.cleaned_data["expires_at"]
        if expires_at is not None and "expires_at" in self.changed_data and expires_at <= timezone.now():
            raise forms.ValidationError("The expiry date must be in the future.")
        return expires_at


@admin.action(permissions=["delete"], description="Revoke selected %(verbose_name_plural)s")
def revoke_selected(
    model_admin: "AccessKeyAdmin", request: HttpRequest, queryset: QuerySet[AccessKey]
) -> HttpResponse | None:
    """Django's `delete_selected`, worded for keys."""
    count = queryset.count()
    if request.POST.get("post"):
        model_admin.log_deletions(request, queryset)
        model_admin.delete_queryset(request, queryset)
        messages.success(request, f"{count} access key{' was' if count == 1 else 's were'} revoked.")
        return None
    page: TemplateResponse = delete_selected(model_admin, request, queryset)  # type: ignore[assignment]  # the confirmation page
    assert page.context_data is not None
    page.context_data |= {"title": "Revoke these keys?", "keys": queryset.select_related("user")}
    return page


@admin.register(AccessKey)
class AccessKeyAdmin(RecordAdmin):
    empty_list_text = "Scripts authenticate with an access key instead of the user's password."
    form = AccessKeyForm
    list_display = ("name", "user", "prefix", "kind", "read_only", "mcp_writes", "expires_at", "last_used_at")
    list_filter = ("kind", "read_only", "mcp_writes")
    list_select_related = ("user",)
    search_fields = ("name", "user__login")
    autocomplete_fields = ("user",)
    fields = ("user", "name", "expires_at", "scope", "read_only", "mcp_writes", "prefix", "kind", "last_used_at")
    readonly_fields = ("prefix", "kind", "last_used_at")
    delete_confirmation_template = delete_selected_confirmation_template = "admin/accounts/accesskey/revoke.html"

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        return {
            "expires_at": timezone.now() + DEFAULT_LIFETIME,
            **super().get_changeform_initial_data(request),
        }

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields if obj else ("user", "name", "expires_at", "scope", "read_only", "mcp_writes")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        names = super().get_readonly_fields(request, obj)
        # The owner of a key cannot be changed.
        return (*names, "user") if obj else names

    def get_actions(self, request: HttpRequest) -> Any:
        actions = super().get_actions(request)
        if "delete_selected" in actions:
            actions["delete_selected"] = (revoke_selected, "delete_selected", revoke_selected.short_description)  # type: ignore[attr-defined]
        return actions

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any) -> Any:
        key = context.get("original")
        if key is not None and self.has_delete_permission(request, key):
            context |= {"show_delete": False, "revoke_url": reverse("admin:accounts_accesskey_delete", args=[key.pk])}
        return super().render_change_form(request, context, *args, **kwargs)

    def render_delete_form(self, request: HttpRequest, context: Any) -> Any:
        page = super().render_delete_form(request, context)
        page.context_data |= {"title": "Revoke this key?", "keys": [context["object"]]}
        return page

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: str) -> HttpResponse:
        messages.success(request, f"The key {obj_display} was revoked.")
        return redirect("admin:accounts_accesskey_changelist")

    def save_model(self, request: HttpRequest, obj: AccessKey, form: Any, change: bool) -> None:
        if not change:
            request.new_key_secret = obj.generate_secret()  # type: ignore[attr-defined]  # for response_add, nowhere else
        super().save_model(request, obj, form, change)

    def response_add(self, request: HttpRequest, obj: AccessKey, post_url_continue: Any = None) -> HttpResponse:
        """Redirects to the key's page, which shows the secret once; a message would put it in a cookie."""
        secret = request.new_key_secret  # type: ignore[attr-defined]
        store_new_key(request.session, obj.pk, obj.name, secret)
        return redirect("admin:accounts_accesskey_change", obj.pk)

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        new_key = take_new_key(request.session, object_id) if request.method == "GET" else None
        key = self.get_object(request, object_id)
        if new_key is None or key is None:
            return super().change_view(request, object_id, form_url, extra_context)
        context = {
            **self.admin_site.each_context(request), "title": "Access key created", "secret": new_key[1],
            "text": f"Key “{key.name}” for {key.user.login} created. Copy the key now. It cannot be shown again.",
            "next_url": reverse("admin:accounts_accesskey_changelist"), "next_label": "Back to access keys",
            "opts": self.opts,
        }  # fmt: skip
        return TemplateResponse(request, "admin/new_secret.html", context)
