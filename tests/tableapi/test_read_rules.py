"""Access rules for reads: which level decides, roles, conditions and broken rules."""

from typing import Any

import pytest

from accounts.models import Role, User
from tableapi.design import saving
from tableapi.models import Rule, State
from tests.support.users import make_user
from tests.tableapi.designs import ask
from tests.tableapi.world import Api, api, column, data, failed, field, grant, group, record, role, rule, table

pytestmark = pytest.mark.django_db


@pytest.fixture
def dora(db: Any) -> User:
    """An auditor."""
    return grant(make_user("dora"), "auditor")


@pytest.fixture
def laptops(db: Any) -> None:
    """Two devices, one of them a laptop; nobody may read them yet."""
    table("device")
    field("device", "name")
    field("device", "owner", to="user")
    table("laptop", parent="device")
    field("laptop", "memory", "integer")
    record("device", name="Lamp")
    record("laptop", name="Slim", memory=8)


def names(caller: User | Api, path: str = "device", **asked: Any) -> Any:
    """What the caller sees of the names; None where there is no such table."""
    response = (caller if isinstance(caller, Api) else api(caller)).get(path, **asked)
    if response.status_code == 404:
        return None
    return sorted(record.get("name") or "-" for record in data(response))


class TestLevelsOfRecords:
    def test_no_rule_means_administrators_only(self, laptops: None, alice: User, bob: User):  # B75
        assert names(bob) is None and names(bob, "laptop") is None
        assert names(alice) == ["Lamp", "Slim"] and names(alice, "laptop") == ["Slim"]

    def test_rule_applies_to_extending_tables(self, laptops: None, bob: User):
        rule("read", "device")
        assert names(bob) == ["Lamp", "Slim"] and names(bob, "laptop") == ["Slim"]

    def test_own_rule_takes_precedence_over_the_parent(self, laptops: None, bob: User, dora: User):
        rule("read", "device")
        rule("read", "laptop", roles=["auditor"])
        assert names(bob, "laptop") is None and names(bob) == ["Lamp"]
        assert names(dora, "laptop") == ["Slim"] and names(dora) == ["Lamp", "Slim"]

    def test_child_rule_can_grant_more(self, laptops: None, bob: User):
        rule("read", "device", roles=["auditor"])
        rule("read", "laptop")
        assert names(bob, "laptop") == ["Slim"] and names(bob) == ["Slim"]

    def test_rule_for_any_table_is_the_last_level(self, laptops: None, bob: User, dora: User):
        rule("read", None, roles=["auditor"])
        assert names(bob) is None and names(dora) == ["Lamp", "Slim"]
        rule("read", "device", condition="name=Nothing")
        assert names(dora) == [] and names(dora, "laptop") == []

    def test_rule_for_any_table_excludes_system_tables(self, laptops: None, bob: User):
        rule("read", None)
        rule("read", None, "*")
        assert names(bob) == ["Lamp", "Slim"]
        for name in ("sys_acl", "sys_role", "sys_user_role", "sys_deletion_log", "sys_property", "sys_db_table"):
            assert failed(api(bob).get(name)) == (404, "table_not_found", None)
        assert "email" not in data(api(bob).get("user"))[0]

    def test_one_matching_rule_per_level_is_enough(self, laptops: None, bob: User, dora: User):
        rule("read", "device", roles=["auditor"])
        rule("read", "device", condition="name=Lamp")
        assert names(bob) == ["Lamp"] and names(dora) == ["Lamp", "Slim"]

    def test_rule_requires_role_and_condition(self, laptops: None, bob: User, dora: User):
        rule("read", "device", roles=["auditor"], condition="name=Lamp")
        rule("read", "device", roles=["other"], condition="name=Slim")
        assert names(bob) is None and names(dora) == ["Lamp"]

    @pytest.mark.parametrize("operation", ["create", "write", "delete"])
    def test_rule_applies_only_to_its_operation(self, laptops: None, bob: User, operation: str):
        rule(operation, "device")
        assert names(bob) == [], "it is there, and nothing is read"

    def test_inactive_rule_is_ignored(self, laptops: None, bob: User):
        rule("read", "device", roles=["other"], active=False)
        rule("read", "laptop", active=False)
        assert names(bob) is None
        rule("read", None)
        assert names(bob) == ["Lamp", "Slim"]


class TestLevelsOfColumns:
    LEVELS = (("laptop", "name"), ("device", "name"), (None, "name"), ("laptop", "*"), ("device", "*"), (None, "*"))

    def test_first_level_with_a_rule_decides(self, laptops: None, bob: User):
        rule("read", "device")
        assert names(bob, "laptop") == ["Slim"], "a column without rule is allowed where the record is"
        # From the last level to the first: each one overrules those made before.
        for number, (of, name) in enumerate(reversed(self.LEVELS)):
            closed = number % 2 == 0
            rule("read", of, name, roles=["other"] if closed else [])
            assert names(bob, "laptop") == ["-" if closed else "Slim"], (of, name)

    def test_records_use_the_rules_of_their_own_table(self, laptops: None, bob: User):
        rule("read", "device")
        rule("read", "laptop", "name", roles=["other"])
        records = data(api(bob).get("device", fields="name,sys_id"))
        assert [record["name"] for record in records] == ["Lamp", None]
        assert names(bob, query="name=Slim") == []
        assert column(api(bob).get("device", query="nameISEMPTY", fields="sys_id"), "sys_id") == [records[1]["sys_id"]]

    def test_one_matching_rule_per_level_is_enough(self, laptops: None, bob: User):
        rule("read", "device")
        rule("read", "device", "name", roles=["other"])
        rule("read", "device", "name", condition="name=Lamp")
        assert column(api(bob).get("device", fields="name"), "name") == ["Lamp", None]

    def test_column_rule_grants_nothing_without_record_access(self, laptops: None, bob: User):
        rule("read", "device", "name")
        assert names(bob) is None

    def test_system_columns_have_rules(self, laptops: None, bob: User):
        rule("read", "device")
        rule("read", "device", "sys_created_at", roles=["other"])
        result = data(api(bob).get("device"))[0]
        assert "sys_created_at" not in result and "sys_id" in result
        rule("read", "device", "*", roles=["other"])
        assert data(api(bob).get("device")) == [{}, {}]


class TestAdministrators:
    def test_administrators_bypass_rules_by_default(self, laptops: None, alice: User):
        first = rule("read", "device", roles=["other"], admin_overrides=False)
        assert names(alice) == [], "it is there: the other operations have no rule"
        rule("read", "device", condition="name=Lamp", admin_overrides=False)
        assert names(alice) == ["Lamp"]
        first.admin_overrides = True
        saving.save_rule(first)
        assert names(alice) == ["Lamp", "Slim"]

    def test_administrators_bypass_each_level_separately(self, laptops: None, alice: User):
        rule("read", "device", roles=["other"])
        rule("read", "device", "name", roles=["other"], admin_overrides=False)
        assert names(alice) == ["-", "-"]
        rule("read", "laptop", "name", roles=["other"])
        assert names(alice, "laptop") == ["Slim"]

    def test_administrators_always_bypass_rules_of_system_tables(self, alice: User):
        rule("read", "user", roles=["other"], admin_overrides=False)
        rule("read", "user", "email", roles=["other"], admin_overrides=False)
        assert column(api(alice).get("user", fields="email"), "email") == ["alice@example.com"]


class TestRoles:
    def test_containing_role_has_the_permissions_of_contained_roles(self, laptops: None, bob: User, dora: User):
        role("reader")
        rule("read", "device", roles=["reader"])
        assert names(dora) is None
        role("clerk", contains=["reader"])
        role("auditor", contains=["clerk"])
        assert names(dora) == ["Lamp", "Slim"]
        assert names(bob) is None

    def test_contained_role_does_not_inherit_upwards(self, laptops: None, bob: User):
        role("chief", contains=["reader"])
        rule("read", "device", roles=["chief"])
        grant(bob, "reader")
        assert names(bob) is None

    def test_role_containing_admin_is_an_administrator(self, laptops: None, bob: User):
        role("deputy", contains=["admin"])
        grant(bob, "deputy")
        assert names(bob) == ["Lamp", "Slim"]

    def test_any_of_several_roles_is_enough(self, laptops: None, dora: User):
        rule("read", "device", roles=["other", "auditor"])
        assert names(dora) == ["Lamp", "Slim"]

    def test_revoked_role_applies_immediately(self, laptops: None, dora: User):
        rule("read", "device", roles=["auditor"])
        assert names(dora) == ["Lamp", "Slim"]
        dora.grants.all().delete()
        assert names(dora) is None

    def test_key_has_the_intersection_of_scope_and_user_roles(self, laptops: None, dora: User, alice: User):  # B65
        rule("read", "device", roles=["auditor"])
        rule("read", "device", "name", roles=["namer"])
        grant(dora, "namer")
        assert names(api(dora, by="key")) == ["Lamp", "Slim"]
        assert names(api(dora, scope=["namer"])) is None
        assert names(api(dora, scope=["auditor"])) == ["-", "-"]
        role("other")
        assert names(api(dora, scope=["auditor", "other", "admin"])) == ["-", "-"]
        assert names(api(alice, scope=["auditor"])) == ["-", "-"], "less than admin"
        # What the user loses, the key loses.
        scoped = api(dora, scope=["auditor"])
        dora.grants.filter(role__name="auditor").delete()
        assert names(scoped) is None


class TestConditions:
    @pytest.fixture
    def owned(self, laptops: None, alice: User, bob: User) -> None:
        ask("DELETE FROM records.device")
        field("device", "team", to="sys_group")
        field("device", "watchers", "list", to="user")
        field("device", "part_of", to="device")
        helpers = group("Helpers", bob)
        whole = record("device", name="Whole", owner=bob.pk)
        record("device", name="Hers", owner=alice.pk, watchers=[bob.pk], part_of=whole)
        record("laptop", name="Team", team=helpers.pk, memory=8)
        record("device", name="Nobody's")

    @pytest.mark.parametrize(
        ("condition", "seen"),
        [
            ("ownerDYNAMICme", ["Whole"]),
            ("ownerISNOT_DYNAMICme", ["Hers", "Nobody's", "Team"]),
            ("teamDYNAMICmy_groups", ["Team"]),
            ("watchersCONTAINS_DYNAMICme", ["Hers"]),
            ("owner.login=bob", ["Whole"]),
            ("owner.email=alice@example.com", ["Hers"]),  # a rule sees what its caller does not
            ("part_of.owner.login=bob", ["Hers"]),
            ("part_of.nameISEMPTY", ["Nobody's", "Team", "Whole"]),
            ("owner=javascript:gs.getUserID()", ["Whole"]),
            ("ownerDYNAMICme^ORteamDYNAMICmy_groups", ["Team", "Whole"]),
            ("name=Hers^NQname=Team", ["Hers", "Team"]),
            ("sys_created_at>=javascript:gs.beginningOfToday()^nameSTARTSWITHw", ["Whole"]),
            ("sys_idINSTANCEOFlaptop", ["Team"]),
        ],
    )
    def test_condition_uses_record_and_caller(self, owned: None, bob: User, condition: str, seen: list[str]):  # B14
        rule("read", "device", condition=condition)
        caller = api(bob)
        assert names(caller) == seen
        for query in (
            "nameANYTHING^ORname!=x",
            "name=x^NQnameANYTHING",
            "sys_idISNOTEMPTY^NQnameISEMPTY^ORnameANYTHING",
        ):
            response = caller.get("device", query=query, count="exact", fields="name")
            assert sorted(column(response, "name")) == seen and response["X-Total-Count"] == str(len(seen))
        alone = [sys_id for (sys_id,) in ask("SELECT sys_id FROM records.device")
                 if caller.get(f"device/{sys_id}").status_code == 200]  # fmt: skip
        assert len(alone) == len(seen)

    def test_child_column_condition_applies_when_the_parent_is_read(self, owned: None, bob: User):
        rule("read", "device", condition="name=Whole")
        rule("read", "laptop", condition="memory>7^name=Team")
        assert names(bob) == ["Team", "Whole"] and names(bob, "laptop") == ["Team"]
        ask("UPDATE records.laptop SET memory = 7")
        assert names(bob) == ["Whole"] and names(bob, "laptop") == []

    def test_column_rule_with_a_child_column_condition(self, owned: None, bob: User):
        rule("read", "device")
        rule("read", "laptop", "name", condition="memory<8")
        assert names(bob, query="nameISEMPTY", fields="sys_id") == ["-"]
        assert "Team" not in column(api(bob).get("device", fields="name"), "name")
        ask("UPDATE records.laptop SET memory = 7")
        assert "Team" in column(api(bob).get("device", fields="name"), "name")


def stored(made: Rule, **values: Any) -> None:
    """As a restored backup or a later change may leave a rule: no form would take it."""
    Rule.objects.filter(pk=made.pk).update(**values)
    State.increment_version()


class TestBrokenRules:
    """A rule that cannot be understood never holds, and still stands on its level."""

    BROKEN = (
        "nothing=1", "name.x=1", "owner.nothing=1", "nameFOO", "(", "^", "ORDERBYname", " ", "nameHASx",
        "owner.password=1", "owner.passwordISNOTEMPTY", "name=javascript:alert(1)", "sys_created_at>yesterday",
        "sys_idINSTANCEOFnothing",
    )  # fmt: skip

    def test_of_records(self, laptops: None, alice: User, bob: User):  # B74
        rule("read", None)
        broken = rule("read", "device")
        assert names(bob) == ["Lamp", "Slim"]
        for condition in self.BROKEN:
            stored(broken, condition=condition)
            assert not names(bob), condition
            assert names(alice) == ["Lamp", "Slim"], condition
        stored(broken, condition="owner.password=1", admin_overrides=False)
        assert not names(alice)

    def test_of_columns(self, laptops: None, bob: User):  # B74
        rule("read", "device")
        broken = rule("read", "device", "name")
        for condition in self.BROKEN:
            stored(broken, condition=condition)
            assert names(bob) == ["-", "-"], condition

    def test_broken_child_rules_reveal_no_column(self, laptops: None, bob: User):
        """Only laptops could show the column, and nobody sees a laptop."""
        rule("read", "device")
        rule("read", "device", "name", roles=["nobody"])
        broken = rule("read", "laptop", condition="memory=1")
        rule("read", "laptop", "name", condition="memory>0")
        assert api(bob).get("device", fields="name").status_code == 200
        stored(broken, condition="nosuch=1")

        assert failed(api(bob).get("device", fields="name"))[:2] == (400, "no_fields")

    def test_rule_with_deleted_roles_applies_to_nobody(self, laptops: None, bob: User):  # B74
        created = rule("read", "device", roles=["auditor"])
        rule("read", "laptop", roles=["other"])
        Role.objects.get(name="auditor").delete()
        assert Rule.objects.get(pk=created.pk).roles != []
        assert names(bob) is None

    def test_rule_keeps_its_remaining_roles(self, laptops: None, bob: User, dora: User):
        rule("read", "device", roles=["auditor", "gone"])
        Role.objects.get(name="gone").delete()
        assert names(bob) is None and names(dora) == ["Lamp", "Slim"]
