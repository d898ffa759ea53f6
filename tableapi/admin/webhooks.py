"""Admin pages of webhooks and their deliveries."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.html import format_html
from unfold.contrib.filters.admin import AutocompleteSelectFilter, ChoicesDropdownFilter
from unfold.widgets import UnfoldAdminCheckboxSelectMultipleWidget, UnfoldAdminTextareaWidget

from accounts.authentication.access_keys import store_new_key, take_new_key
from system import outbound
from system.admin_site.site import HistoryAdmin, ReadOnlyAdmin
from system.errors import ServiceError
from system.outbound import OutboundRefused
from tableapi.models import Webhook, WebhookDelivery
from tableapi.webhooks import delivery, subscriptions

State = WebhookDelivery.State


class WebhookForm(forms.ModelForm):  # type: ignore[type-arg]
    operations = forms.MultipleChoiceField(
        choices=Webhook.Operation.choices,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        initial=Webhook.Operation.values,
    )

    class Meta:  # the admin sets the model and the fields
        widgets = {
            "condition": UnfoldAdminTextareaWidget(attrs={"rows": 2}),
            "columns": UnfoldAdminTextareaWidget(attrs={"rows": 3}),
        }

    def clean_url(self) -> str:
        url: str = self.cleaned_data["url"]
        try:
            outbound.check_url(url, delivery.policy(), allow_query=True)
        except OutboundRefused as error:
            raise forms.ValidationError(error.message) from None
        return url

    def clean(self) -> None:
        super().clean()
        values = self.cleaned_data
        table = values.get("table") or (self.instance.table if not self.instance.is_new else None)
        if table is None or not {"user", "condition", "columns"} <= values.keys():
            return
        try:
            values["columns"] = subscriptions.check(values["user"], table.name, values["condition"], values["columns"])
        except ServiceError as error:
            fields = {"access_denied": "user", "invalid_parameter": "columns"}
            self.add_error(fields.get(error.code, "condition"), error.message)


@admin.register(Webhook)
class WebhookAdmin(HistoryAdmin):
    empty_list_text = "A webhook sends the changes of a table to an address."
    form = WebhookForm
    list_display = ("name", "table", "url", "user", "state")
    list_select_related = ("table", "user")
    search_fields = ("name", "url", "table__name", "user__login")
    autocomplete_fields = ("table", "user")
    fields = ("name", "url", "table", "user", "operations", "condition", "columns", "active")

    @admin.display(description="State")
    def state(self, webhook: Webhook) -> str:
        if not webhook.active:
            return "inactive"
        return "active" if webhook.user.active else "paused: the user is inactive"

    @admin.display(description="Deliveries")
    def deliveries(self, webhook: Webhook) -> str:
        url = reverse("admin:tableapi_webhookdelivery_changelist")
        return format_html('<a class="sb-link" href="{}?webhook__sys_id__exact={}">Show</a>', url, webhook.pk)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return (*self.fields, "deliveries") if obj else self.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        names = super().get_readonly_fields(request, obj)
        # The table cannot be changed, because deliveries refer to its records.
        return (*names, "table", "deliveries") if obj else names

    def save_model(self, request: HttpRequest, obj: Webhook, form: Any, change: bool) -> None:
        if not change:
            request.new_secret = obj.generate_secret()  # type: ignore[attr-defined]  # for response_add, nowhere else
        super().save_model(request, obj, form, change)

    def response_add(self, request: HttpRequest, obj: Webhook, post_url_continue: Any = None) -> HttpResponse:
        return _show_secret_next(request, obj, request.new_secret)  # type: ignore[attr-defined]

    def changeform_view(self, request: HttpRequest, object_id: Any = None, *args: Any, **kwargs: Any) -> HttpResponse:
        actions = {"_test": _send_test, "_rotate": _rotate_secret}
        for action in [action for button, action in actions.items() if button in request.POST and object_id]:
            webhook = self.get_object(request, object_id)
            if webhook is None or not self.has_change_permission(request, webhook):
                raise PermissionDenied
            return action(request, webhook)
        return super().changeform_view(request, object_id, *args, **kwargs)

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        new_secret = take_new_key(request.session, object_id) if request.method == "GET" else None
        if new_secret is None:
            return super().change_view(request, object_id, form_url, extra_context)
        context = {
            **self.admin_site.each_context(request), "title": "Secret of the webhook", "secret": new_secret[1],
            "text": f"Copy the secret of “{new_secret[0]}” now. The receiver checks signatures with it. "
            "It cannot be shown again.",
            "next_url": request.path, "next_label": "Back to the webhook", "opts": self.opts,
        }  # fmt: skip
        return TemplateResponse(request, "admin/new_secret.html", context)


def _show_secret_next(request: HttpRequest, webhook: Webhook, secret: str) -> HttpResponse:
    """Redirects to the page of the webhook, which shows the secret once."""
    store_new_key(request.session, webhook.pk, webhook.name, secret)
    return redirect("admin:tableapi_webhook_change", webhook.pk)


def _rotate_secret(request: HttpRequest, webhook: Webhook) -> HttpResponse:
    with transaction.atomic():
        webhook = Webhook.objects.select_for_update().get(pk=webhook.pk)
        secret = webhook.generate_secret()
        webhook.save(update_fields=["secret", "old_secret", "old_secret_until"])
    return _show_secret_next(request, webhook, secret)


def _send_test(request: HttpRequest, webhook: Webhook) -> HttpResponse:
    outcome = delivery.send_test(webhook)
    if outcome.state == State.DELIVERED:
        messages.success(request, f"The receiver accepted the test with {outcome.status}.")
    else:
        messages.error(request, f"The test was not delivered. {outcome.reason}")
    return redirect("admin:tableapi_webhook_change", webhook.pk)


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(ReadOnlyAdmin):
    empty_list_text = "Each change that is sent to a webhook is listed here for 30 days."
    list_display = (
        "created_at", "webhook", "operation", "record_id", "state", "status", "attempts", "due_at", "reason",
    )  # fmt: skip
    list_filter = [("state", ChoicesDropdownFilter), ("webhook", AutocompleteSelectFilter)]
    list_filter_submit = True
    list_select_related = ("webhook",)
    search_fields = ("record_id",)
    actions = ("replay", "skip")
    fields = (
        "webhook", "operation", "record_id", "state", "reason", "status", "answer",
        "attempts", "created_at", "attempted_at", "due_at",
    )  # fmt: skip

    @admin.action(description="Replay selected parked deliveries")
    def replay(self, request: HttpRequest, queryset: "QuerySet[WebhookDelivery]") -> None:
        count = delivery.replay(queryset)
        note = "With each, all parked deliveries of its record are sent again, in order."
        messages.success(request, f"Parked deliveries that will be sent again: {count}. {note}")

    @admin.action(description="Skip selected parked deliveries")
    def skip(self, request: HttpRequest, queryset: "QuerySet[WebhookDelivery]") -> None:
        parked = queryset.order_by().filter(state=State.PARKED)
        count = parked.update(state=State.SKIPPED, reason=f"Skipped by {request.user.get_username()}.")
        messages.success(request, f"Parked deliveries that will not be sent: {count}.")
