"""Clients of ServiceNow from the package index, unmodified, against a running web process over TLS.

Their data are made through the service's own API.
"""

import asyncio
import ssl
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import aiohttp
import pysnc
import pytest
import requests
from pysnc import asyncio as async_pysnc

from tests.config.stack import manage
from tests.system.outbound import certificates
from tests.tableapi.stack.callers import ApiCaller, ComponentStarter

with warnings.catch_warnings(action="ignore"):  # of libraries that they use
    import aiosnow
    import pysnow
    from aiosnow.models import _schema
    from aiosnow.models.table import TableModel

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
LOGIN, PASSWORD = "integration", "a long password of an integration"
MANY_RECORDS = 10_000
PAGE = 1_000


@dataclass(frozen=True)
class Service:
    """The web process over TLS, and what its callers need."""

    port: int
    authority: Path
    user_id: str
    key: str

    @property
    def host(self) -> str:
        return f"localhost:{self.port}"

    @property
    def url(self) -> str:
        return f"https://{self.host}"

    def pysnc(self, auth: Any = (LOGIN, PASSWORD)) -> Any:
        return pysnc.ServiceNowClient(self.url, auth, verify=str(self.authority))

    def pysnow(self) -> Any:
        return pysnow.Client(host=self.host, user=LOGIN, password=PASSWORD)

    def aiosnow(self) -> Any:
        context = ssl.create_default_context(cafile=self.authority)

        class Session(aiohttp.ClientSession):
            def __init__(self, **options: Any) -> None:
                super().__init__(**options | {"connector": aiohttp.TCPConnector(ssl=context)})

        return aiosnow.Client(self.host, (LOGIN, PASSWORD), session_cls=Session)


@pytest.fixture(scope="module")
def service(
    start_component: ComponentStarter, admin: ApiCaller, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Service]:
    folder = tmp_path_factory.mktemp("certificates")
    authority = certificates.make_certificate("authority")
    authority_file = authority.write(folder, "authority")
    pair = str(certificates.make_certificate("localhost", issuer=authority, names=("localhost",)).write(folder, "pair"))
    web = start_component("web", SVC_TLS_CERT=pair, SVC_TLS_KEY=pair).wait_until_up()
    (user,) = admin.send("POST", "user", {"login": LOGIN, "password": PASSWORD, "first_name": "Zoe"}).records
    (role,) = admin.send("GET", "sys_role?sysparm_query=name=admin").records
    assert admin.send("POST", "sys_user_role", {"user": user["sys_id"], "role": role["sys_id"]}).status == 201
    table = admin.create_table("gadget")
    (users,) = admin.send("GET", "sys_db_table?sysparm_query=name=user").records
    for name, type_, more in (
        ("price", "integer", {}), ("bought", "datetime", {}), ("in_use", "boolean", {}), ("twin", "string", {}),
        ("owner", "reference", {"reference_table": users["sys_id"]}),
    ):  # fmt: skip
        column = {"table": table, "name": name, "label": name.title(), "type": type_, **more}
        response = admin.send("POST", "sys_db_column", column)
        assert response.status == 201, response.content
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("REQUESTS_CA_BUNDLE", str(authority_file))
        patch.setenv("SSL_CERT_FILE", str(authority_file))
        key = manage("key", LOGIN, "script", env=web.env).stdout.strip()
        yield Service(web.port, authority_file, user["sys_id"], key)


DEVICES = (
    {"name": "Anvil", "price": "10", "bought": "2024-01-01 10:00:00", "in_use": "true", "twin": "Anvil"},
    {"name": "Bolt", "price": "20", "bought": "2024-02-01 10:00:00", "in_use": "false", "twin": "Anvil"},
    {"name": "Cog^wheel", "price": "30", "bought": "2024-03-01 10:00:00", "in_use": "true"},
    {"name": "Drill"},
)


@pytest.fixture(scope="module")
def devices(service: Service, admin: ApiCaller) -> None:
    for device in DEVICES:
        owner = {"owner": service.user_id} if device["name"] == "Anvil" else {}
        assert admin.send("POST", "gadget", device | owner).status == 201


def names(records: Any) -> set[str]:
    return {str(record["name"] if isinstance(record, dict) else record.name) for record in records}


# PySNC


def test_pysnc_creates_reads_changes_and_deletes(service: Service):
    client = service.pysnc()
    record = client.GlideRecord("gadget")
    record.initialize()
    record.name, record.price, record.owner = "Saw", 7, service.user_id
    sys_id = record.insert()
    assert sys_id and record.get_value("price") == "7" and record.owner.get_display_value() == LOGIN

    found = client.GlideRecord("gadget")
    assert found.get(sys_id) and found.name == "Saw"
    found.price = 8
    assert found.update() and found.price == "8"
    assert client.GlideRecord("gadget").get("price", "8")
    assert found.delete() and not client.GlideRecord("gadget").get(sys_id)


def test_pysnc_keeps_ids_of_its_own(service: Service):
    record = service.pysnc().GlideRecord("gadget")
    record.initialize()
    record.set_new_guid_value("0123456789ABCDEF0123456789abcdef")
    record.name = "Own"
    assert record.insert() == "0123456789ABCDEF0123456789abcdef"
    assert record.get("0123456789abcdef0123456789abcdef") and record.delete()


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (("name", "Anvil"), "A"), (("name", "!=", "Anvil"), "BCD"), (("price", ">", "10"), "BC"),
        (("price", ">=", "20"), "BC"), (("price", "<", "20"), "A"), (("price", "<=", "20"), "AB"),
        (("name", "STARTSWITH", "b"), "B"), (("name", "ENDSWITH", "L"), "ACD"), (("name", "CONTAINS", "ol"), "B"),
        (("name", "LIKE", "ol"), "B"), (("name", "DOES NOT CONTAIN", "ol"), "ACD"), (("name", "NOT LIKE", "ol"), "ACD"),
        (("name", "IN", "Bolt,Drill"), "BD"), (("name", "NOT IN", "Bolt,Drill"), "AC"), 
        (("name", "ANYTHING", "x"), "ABCD"),
        (("price", "BETWEEN", "10@20"), "AB"), (("name", "SAMEAS", "twin"), "A"), (("name", "NSAMEAS", "twin"), "BCD"),
        (("in_use", "true"), "AC"), (("bought", ">", "javascript:gs.dateGenerate('2024-01-15','00:00:00')"), "BC"),
        (("bought", "ON", "2024-02-01@javascript:gs.dateGenerate('2024-02-01','start')@"
          "javascript:gs.dateGenerate('2024-02-01','end')"), "B"),
        (("bought", "RELATIVELT", "@year@ago@1"), "ABC"),
        (("owner", "DYNAMIC", "90d1921e5f510100a9ad2572f2b477fe"), "A"),
        (("owner.user_name", LOGIN), "A"), (("owner.name", "Zoe"), "A"), (("name", "EMPTYSTRING", "x"), ""),
        (("sys_id", "INSTANCEOF", "gadget"), "ABCD"), (("name", "VALCHANGES", "x"), ""),
    ],
)  # fmt: skip
def test_pysnc_operators(service: Service, devices: None, condition: tuple[str, ...], expected: str):
    record = service.pysnc().GlideRecord("gadget")
    record.add_query("name", "IN", "Anvil,Bolt,Cog^^wheel,Drill")
    record.add_query(*condition)
    record.query()
    assert {str(found.name)[0] for found in record} == set(expected)
    assert len(record) == len(expected)


def test_pysnc_other_queries(service: Service, devices: None):
    client = service.pysnc()

    def found(prepare: Any, table: str = "gadget") -> list[str]:
        record = client.GlideRecord(table)
        prepare(record)
        record.query()
        return [str(item.get_value("name")) for item in record]

    assert found(lambda r: (r.add_null_query("price"), r.add_query("name", "STARTSWITH", "D"))) == ["Drill"]
    assert found(lambda r: (r.add_not_null_query("owner"), r.order_by_desc("price"))) == ["Anvil"]
    assert found(lambda r: (r.add_query("price", "10").add_or_condition("price", "20"), r.order_by_desc("price"))) == [
        "Bolt", "Anvil",
    ]  # fmt: skip
    assert found(lambda r: r.add_encoded_query("name=Anvil^NQname=Bolt^ORDERBYname")) == ["Anvil", "Bolt"]
    assert found(lambda r: r.add_join_query("gadget", "sys_id", "owner").add_query("price", "10"), "sys_user") == [
        "Zoe"
    ]
    assert found(lambda r: r.add_rl_query("gadget", "owner", ">=1").add_query("price", "99"), "sys_user") == []
    assert found(lambda r: r.add_rl_query("gadget", "owner", ">=1", True), "sys_user") == ["Zoe"]


def test_pysnc_display_values_and_paths(service: Service, devices: None):
    record = service.pysnc().GlideRecord("gadget")
    record.fields = ["name", "owner", "owner.user_name", "bought"]
    assert record.get("name", "Anvil")
    assert (record.owner.get_value(), record.owner.get_display_value()) == (service.user_id, LOGIN)
    assert record.get_value("owner.user_name") == LOGIN
    assert record.get_element("bought").date_value() == datetime.fromisoformat("2024-01-01T10:00:00+00:00")
    assert record.serialize(display_value="both")["owner"]["display_value"] == LOGIN


def test_pysnc_reads_many_records_in_pages(service: Service, admin: ApiCaller):
    admin.create_table("part")
    for start in range(0, MANY_RECORDS, PAGE):
        batch = [{"name": f"Part {number:05}"} for number in range(start, start + PAGE)]
        assert admin.web.call("POST", "/rest/v1/bulk/part", batch, key=admin.key).status == 201
    record = service.pysnc().GlideRecord("part", batch_size=PAGE)
    record.order_by("name")
    record.query()
    assert len(record) == MANY_RECORDS
    assert [int(str(part.name)[5:]) for part in record] == list(range(MANY_RECORDS))


def test_pysnc_batches(service: Service, admin: ApiCaller):
    admin.create_table("spare")
    for number in range(5):
        admin.send("POST", "spare", {"name": f"Spare {number}"})
    client = service.pysnc()
    record = client.GlideRecord("spare")
    record.query()
    while record.next():
        record.name = f"New {record.name}"
    assert record.update_multiple()
    record.query()
    assert all(str(item.name).startswith("New Spare") for item in record)
    assert record.delete_multiple()
    record.query()
    assert len(record) == 0


def test_pysnc_attachments(service: Service, tmp_path: Path):
    record = service.pysnc().GlideRecord("gadget")
    record.initialize()
    record.name = "Lamp"
    record.insert()
    url = record.add_attachment("notes.txt", "one\ntwo", "text/plain")
    assert url.startswith(service.url)
    (attachment,) = record.get_attachments()
    assert (attachment.file_name, attachment.size_bytes) == ("notes.txt", "7")
    assert attachment.read() == b"one\ntwo" and attachment.readlines() == ["one", "two"]
    assert attachment.write_to(str(tmp_path)).read_bytes() == b"one\ntwo"
    attachment.delete()
    assert len(record.get_attachments()) == 0
    record.delete()


def test_pysnc_errors(service: Service):
    client = service.pysnc()
    with pytest.raises(pysnc.exceptions.RequestException, match="Invalid table nope"):
        client.GlideRecord("nope").query()
    with pytest.raises(pysnc.exceptions.AuthenticationException, match="User Not Authenticated"):
        service.pysnc((LOGIN, "wrong")).GlideRecord("gadget").query()


def test_pysnc_sends_long_queries_in_a_batch(service: Service, devices: None):
    record = service.pysnc().GlideRecord("gadget")
    record.add_query("name", "IN", ",".join(["Anvil", *("x" * 10 for _ in range(950))]))
    record.query()
    assert names(record) == {"Anvil"}
    with pytest.raises(pysnc.exceptions.RequestException, match=r"^<html>"):
        service.pysnc().GlideRecord("A" * 23_000).get("1")


# PySNC with asyncio


def test_async_pysnc(service: Service, devices: None, tmp_path: Path):
    async def run() -> None:
        client = async_pysnc.AsyncServiceNowClient(service.url, (LOGIN, PASSWORD), verify=str(service.authority))
        try:
            record = await client.GlideRecord("gadget")
            record.initialize()
            record.name, record.price = "Torch", 5
            sys_id = await record.insert()
            assert sys_id and await record.get(sys_id)
            record.price = 6
            assert await record.update()
            await record.add_attachment("notes.txt", "text", "text/plain")
            attachments = await record.get_attachments()
            assert [await item.read() async for item in attachments] == [b"text"]
            found = await client.GlideRecord("gadget")
            found.add_query("price", ">=", "6")
            found.order_by("price")
            await found.query()
            assert [str(item.name) async for item in found] == ["Torch", "Anvil", "Bolt", "Cog^wheel"]
            assert await record.delete() and not await record.get(sys_id)
            with pytest.raises(pysnc.exceptions.RequestException, match="Invalid table nope"):
                await (await client.GlideRecord("nope")).query()
        finally:
            await client.close()

    asyncio.run(run())


# pysnow


def test_pysnow_creates_reads_changes_and_deletes(service: Service):
    devices = service.pysnow().resource(api_path="/table/gadget")
    created = devices.create({"name": "Vice", "price": "3", "owner": service.user_id}).one()
    assert created["owner"]["value"] == service.user_id and created["price"] == "3"
    query = {"sys_id": created["sys_id"]}
    assert devices.update(query, {"price": "4"}).one()["price"] == "4"
    assert devices.get(query=query, fields=["price"]).one() == {"price": "4"}
    assert devices.delete(query)["status"] == "record deleted"
    assert devices.get(query=query).one_or_none() is None


def test_pysnow_queries(service: Service, devices: None):
    resource = service.pysnow().resource(api_path="/table/gadget")

    def found(query: Any, **options: Any) -> list[str]:
        return [record["name"] for record in resource.get(query=query, **options).all()]

    builder = pysnow.QueryBuilder
    assert found(builder().field("price").between(10, 20).AND().field("name").order_ascending()) == ["Anvil", "Bolt"]
    later = builder().field("bought").greater_than(datetime(2024, 1, 15)).AND().field("name").order_descending()
    assert found(later) == ["Cog^wheel", "Bolt"]
    assert found(builder().field("name").equals(["Anvil", "Bolt"]).AND().field("price").not_equals("10")) == ["Bolt"]
    assert found(builder().field("name").starts_with("A").OR().field("name").contains("ol")) == ["Anvil", "Bolt"]
    assert found(builder().field("owner").is_not_empty().NQ().field("name").ends_with("lt")) == ["Anvil", "Bolt"]
    assert found("priceISNOTEMPTY^ORDERBYprice", limit=2, offset=1) == ["Bolt", "Cog^wheel"]
    assert found("priceISNOTEMPTY^ORDERBYprice", stream=True) == ["Anvil", "Bolt", "Cog^wheel"]
    with pytest.raises(requests.HTTPError, match="400"):
        service.pysnow().resource(api_path="/table/nope").get().all()


def test_pysnow_display_values_and_statistics(service: Service, devices: None):
    client = service.pysnow()
    client.parameters.display_value = True
    (record,) = client.resource(api_path="/table/gadget").get(query={"name": "Anvil"}).all()
    assert record["owner"]["display_value"] == LOGIN
    client.parameters.add_custom({"sysparm_count": "true", "sysparm_sum_fields": "price"})
    result = client.resource(api_path="/stats/gadget").get(query="priceISNOTEMPTY").one()
    assert result["stats"] == {"count": "3", "sum": {"price": "60"}}


@pytest.mark.parametrize("multipart", [False, True])
def test_pysnow_attachments(service: Service, tmp_path: Path, multipart: bool):
    path = tmp_path / "notes.txt"
    path.write_text("some text")
    devices = service.pysnow().resource(api_path="/table/gadget")
    sys_id = devices.create({"name": "Key"}).one()["sys_id"]
    if not multipart:
        devices.attachments.upload(sys_id, str(path))
        (attachment,) = devices.attachments.get(sys_id)
        assert attachment["file_name"] == "notes.txt"
        devices.attachments.delete(attachment["sys_id"])
    assert devices.attachments.get(sys_id) == []
    devices.delete({"sys_id": sys_id})


def test_tokens(service: Service, devices: None):
    client = pysnow.OAuthClient(client_id=service.key[:9], client_secret=service.key, host=service.host)
    client.set_token(client.generate_token(LOGIN, PASSWORD))
    assert client.resource(api_path="/table/gadget").get(query={"name": "Anvil"}).one()["price"] == "10"
    client.token["expires_at"] = 1  # so that the client refreshes it
    client.token_updater = client.set_token
    assert client.resource(api_path="/table/gadget").get(query={"name": "Bolt"}).one()["price"] == "20"
    with pytest.raises(pysnow.exceptions.TokenCreateError):
        client.generate_token(LOGIN, "wrong")
    for flow in (
        pysnc.ServiceNowPasswordGrantFlow(LOGIN, PASSWORD, service.key[:9], service.key),
        pysnc.ServiceNowClientCredentialsFlow(service.key[:9], service.key),
    ):
        record = service.pysnc(flow).GlideRecord("gadget")
        assert record.get("name", "Anvil") and record.price == "10"


# aiosnow


def device_model() -> Any:
    class DeviceModel(TableModel):  # type: ignore[misc]  # has no types
        sys_id = _schema.fields.String(is_primary=True)
        name = _schema.fields.String()
        price = _schema.fields.Integer()
        bought = _schema.fields.DateTime()
        in_use = _schema.fields.Boolean()
        owner = _schema.fields.StringMap()

    return DeviceModel


def test_aiosnow(service: Service, devices: None, tmp_path: Path):
    model_class = device_model()

    async def run() -> None:
        client = service.aiosnow()
        async with model_class(client, table_name="gadget") as model:
            created = await model.create({"name": "Rope", "price": 5})
            sys_id = created["sys_id"]
            assert (await model.update(sys_id, {"price": 6}))["price"] == 6
            assert (await model.get_one(model_class.name == "Rope"))["price"] == 6
            found = await model.get(model_class.price.greater_than(6), limit=10)
            assert names(found.data) == {"Anvil", "Bolt", "Cog^wheel"}
            (anvil,) = (await model.get(model_class.owner.is_populated())).data
            assert anvil["owner"].value == LOGIN and anvil["owner"].key == service.user_id
            assert (await model.get(model_class.bought.before("2024-01-15 00:00:00"))).data[0]["name"] == "Anvil"
            streamed = [record["name"] async for _, record in model.stream(model_class.price > 6, page_size=2)]
            assert len(streamed) == 3
            path = tmp_path / "notes.txt"
            path.write_text("some text")
            await model.upload_file(sys_id, str(path))
            (attachment,) = (await model.get_attachments()).data
            assert attachment["file_name"] == "notes.txt"
            folder = tmp_path / "downloads"
            await model.download_file(f"sys_id={attachment['sys_id']}", str(folder))
            assert (folder / "notes.txt").read_text() == "some text"
            assert (await model.delete(sys_id)).status == 204
            with pytest.raises(aiosnow.exceptions.RequestError, match="No Record found"):
                await model.delete(sys_id)

    asyncio.run(run())
