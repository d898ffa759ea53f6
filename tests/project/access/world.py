"""Creates an object for each route, such as a record or a document, and builds the path to it."""

import re
from collections.abc import Iterator
from urllib.parse import urlencode

from django.apps import apps
from django.urls import URLPattern, URLResolver, get_resolver

from accounts.models import Company, Group, Role, User
from collections_app import embed
from collections_app.documents import storage
from collections_app.evaluation import questions, runs
from collections_app.ingest import worker
from collections_app.models import Collection, Source
from collections_app.urls import ENDPOINTS
from config.scheduling import schedules
from sso.models import IdentityLink, SignIn
from sso.models.certificates import IdpCertificate
from system.admin import USER_VIEW
from system.models import UserViewUse
from tableapi.design import saving
from tableapi.models import DeferredRecord, Rule, Table, View, Webhook, WebhookDelivery
from tests.sso import connections
from tests.tableapi.designs import insert_row

# The required parameters of the eight endpoints of document collections.
REQUIRED_PARAMETERS = {
    "load_document_to_collection": {"collection_name": "manuals"},
    "load_text_to_collection": {"collection_name": "manuals", "text": "Paper", "metadata": "{}"},
    "get_relevant_documents": {"collection_names": "manuals", "query": "paper"},
    "get_content_by_tag": {"collection_name": "manuals", "tag_info": ""},
    "get_list_of_documents_names": {"collection_name": "manuals"},
    "get_list_of_collection": {},
    "delete_document_from_collection": {"collection_name": "manuals", "id_value": "first"},
    "delete_collection": {"collection_name": "manuals"},
}
ADMIN_ROUTE = re.compile(r"^admin/(\w+)/(\w+)/(.*)$")


def create_example_objects(callback_url: str = connections.CALLBACK_URL) -> dict[str, str]:
    """Creates an object for each route; returns the ids for the placeholders of routes."""
    assert set(REQUIRED_PARAMETERS) == set(ENDPOINTS)
    itil_role_id = Role.objects.get(name="itil").pk
    task_table = Table.objects.get(name="task")
    saving.save_rule(Rule(table=task_table, operation=Rule.Operation.READ, roles=[itil_role_id]))
    saving.save_view(View(table=task_table, name="short"))
    setting = connections.make_connection(redirect_uri=callback_url)
    other_user = User.objects.create_user("somebody")
    IdpCertificate.objects.create(kid="first", url_idp=setting.url_idp, realm=setting.realm, json={"kty": "RSA"})
    IdentityLink.objects.create(user=other_user, issuer="https://idp.example.com", sub="somebody")
    SignIn.objects.create(user=other_user, setting=setting, outcome="ok")
    Group.objects.create(name="Service desk")
    Company.objects.create(name="Example")
    Company.objects.create(name="Gone").delete()
    schedules.update_schedules()
    DeferredRecord.objects.create(table="task", record_id="later")
    UserViewUse.objects.create(user=other_user, action_flag=USER_VIEW, object_repr="somebody", change_message="task")
    webhook = Webhook(
        name="mirror", url="https://receiver.example.com/", table=task_table, user=other_user, operations=["create"],
        columns=["number"], active=False,
    )  # fmt: skip
    webhook.generate_secret()
    webhook.save()
    WebhookDelivery.objects.create(webhook=webhook, operation="create", state="parked", answer="Out of order.")
    collection = Collection.objects.create(name="manuals", space=embed.default_space(), reader_roles=[itil_role_id])
    store_result = storage.store_document(
        collection=collection, data=b"The printer is out of paper.", user_id=other_user.pk, takes_lease=True,
        filename="", format="text", metadata={}, doc_id="first", on_duplicate="skip",
    )  # fmt: skip
    version = worker.process_in_request(store_result)
    source = Source(collection=collection, kind="page", address="https://docs.example.com/guide", doc_id="guide")
    source.save()
    questions.store_questions(collection, [{"query": "No paper?", "doc_ids": ["first"]}], user_id=other_user.pk)
    ids = {"collection": collection.pk, "document": str(version.document_id), "source": source.pk}
    ids |= {"question": collection.evaluation_questions.get().pk, "run": runs.start_run(collection).pk}
    return {"task": insert_row("task"), **ids}


def routes(resolver: URLResolver | None = None, prefix: str = "") -> Iterator[str]:
    """The URL pattern of every route of the service."""
    for pattern in (resolver or get_resolver()).url_patterns:
        path = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern, path)
        elif isinstance(pattern, URLPattern):
            yield path


def example_path(route: str, ids: dict[str, str]) -> str:
    """The path of an existing object for this route."""
    match = ADMIN_ROUTE.match(route)
    if match and match[1] in apps.app_configs:
        return "/" + _admin_path(*match.groups())
    path = route.replace("(?P<table>[^/]+)", "task").replace("(?P<sys_id>[^/]+)", ids["task"])
    if path.startswith(("tables/", "design/")):
        path = path.replace("<slug:table>", "task").replace("<slug:column>", "state")
        path = path.replace("saved/<slug:sys_id>", f"saved/{'0' * 18}").replace(
            "import/<slug:sys_id>", f"import/{'0' * 18}"
        )
        path = path.replace("<slug:sys_id>", ids["task"])
    path = path.replace("<slug:entry>", "0" * 18)
    path = path.replace("<slug:sys_id>", ids["collection"]).replace("<slug:document>", ids["document"])
    path = path.replace("<slug:source>", ids["source"])
    path = path.replace("<slug:question>", ids["question"]).replace("<slug:run>", ids["run"])
    path = path.replace("<int:generation>", "1").replace("<int:number>", "0")
    path = path.replace("<slug:session_key>", "somebody-elses")
    path = path.replace("<path:content_type_id>/<path:object_id>", "1/1").replace("(?P<url>.*)", "nothing-here")
    path = path.replace("(?P<entry>[0-9a-z]{1,32})", "0" * 18)
    path = path.replace("(?:v[12]/)?", "").replace("(?:file|upload)", "file")
    path = re.sub(r"\(\?P<app_label>(\w+)\|[^)]*\)", r"\1", path)
    path = path.replace("/?$", "").replace("^", "").replace("$", "")
    assert not re.search(r"[<(\[?*]", path), f"{route} needs an example"
    parameters = {"query": "paper"} if path.endswith("/search") and not path.startswith("admin") else {}
    return f"/{path}?{urlencode(REQUIRED_PARAMETERS.get(path, parameters))}".rstrip("?")


def _admin_path(app_label: str, model_name: str, remainder: str) -> str:
    if not re.search("[<(]", remainder):
        return f"admin/{app_label}/{model_name}/{remainder}"
    model = apps.get_model(app_label, model_name)
    record = model._default_manager.order_by("pk").first()
    assert record is not None, f"{app_label}.{model_name} needs a row"
    remainder = re.sub(r"<(path:object_id|id)>", str(record.pk), remainder)
    if "history/(" in remainder:
        entry = model.history.filter(pk__isnull=False).order_by("history_id").last()
        remainder = f"{entry.instance.pk}/history/{entry.history_id}/"
    return f"admin/{app_label}/{model_name}/{remainder}"
