"""Admin pages of the Table API: lists and histories of designs, records that could not be created, and webhooks."""

from django.http import HttpRequest
from django.template.defaultfilters import pluralize
from django.urls import reverse

from system.admin_site import dashboard
from tableapi.admin import deferred_records, designs, webhooks  # noqa: F401  (each registers its pages)
from tableapi.models import DeferredRecord, Rule, Table, Webhook, WebhookDelivery

dashboard.register_links(
    "Table API",
    20,
    dashboard.Link("Design tables", "table", "tableapi.Table", url_name="design"),
    dashboard.Link("Columns", "view_column", "tableapi.Column"),
    dashboard.Link("Set-on-change rules", "published_with_changes", "tableapi.SetRule"),
    dashboard.Link("Views", "visibility", "tableapi.View"),
    dashboard.Link("Access rules", "shield", "tableapi.Rule"),
    dashboard.Link("Deferred records", "pending_actions", "tableapi.DeferredRecord"),
    dashboard.Link("Webhooks", "webhook", "tableapi.Webhook"),
    dashboard.Link("Webhook deliveries", "outbox", "tableapi.WebhookDelivery"),
)


@dashboard.register_step(order=40, app="tableapi")
def table_step() -> dashboard.Step:
    """Shipped tables have no creator."""
    is_done = Table.objects.filter(is_system=False, sys_created_by__isnull=False).exists()
    return dashboard.Step("Create a table", reverse("admin:tableapi_table_changelist"), is_done)


@dashboard.register_step(order=45, app="tableapi")
def rules_step() -> dashboard.Step:
    url = reverse("design-table", args=["task"]) + "#rules"
    is_done = Rule.objects.filter(table__name="task").exists()
    return dashboard.Step("Decide who may work with tasks", url, is_done)


@dashboard.register_tile(order=20)
def table_tile(request: HttpRequest) -> dashboard.Tile | None:
    if not request.user.is_superuser:
        return None
    table_count, rule_count = Table.objects.filter(is_system=False).count(), Rule.objects.count()
    failed = DeferredRecord.objects.filter(state=DeferredRecord.State.FAILED).count()
    failed_text = f" {failed} deferred record{pluralize(failed, ' was,s were')} not created." if failed else ""
    caption = f"designed table{pluralize(table_count)}, {rule_count} access rule{pluralize(rule_count)}.{failed_text}"
    url = reverse("admin:tableapi_deferredrecord_changelist" if failed else "design")
    return dashboard.Tile("Tables", str(table_count), caption, url, "table", needs_attention=bool(failed))


@dashboard.register_tile(order=21)
def webhook_tile(request: HttpRequest) -> dashboard.Tile | None:
    if not request.user.is_superuser or not Webhook.objects.exists():
        return None
    active_count = Webhook.objects.filter(active=True).count()
    parked_count = WebhookDelivery.objects.filter(state=WebhookDelivery.State.PARKED).count()
    parked_text = f", {parked_count} parked deliver{pluralize(parked_count, 'y,ies')}" if parked_count else ""
    url = f"{reverse('admin:tableapi_webhookdelivery_changelist')}?state__exact=parked"
    url = url if parked_count else reverse("admin:tableapi_webhook_changelist")
    caption = f"active webhook{pluralize(active_count)}{parked_text}."
    return dashboard.Tile("Webhooks", str(active_count), caption, url, "webhook", needs_attention=bool(parked_count))
