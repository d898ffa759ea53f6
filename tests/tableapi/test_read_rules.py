"""Access rules for reads: which level decides, roles, conditions and broken rules."""

from typing import Any

import pytest

from accounts.models import Role, User
from tableapi.design import saving
from tableapi.models import Rule, State
from tests.support.users import make_user
from tests.tableapi.designs import query_rows
from tests.tableapi.world import (
    ApiClient,
    api,
    column_values,
    data_of,
    error_of,
    field,
    grant,
    group,
    record,
    role,
    rule,
    table,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def dora(db: Any) -> User:
    """An auditor."""
    return grant(make_user("dora"), "auditor")


@pytest.fixture
def laptop_tables(db: Any) -> None:
    """Two devices, one of them a laptop, without rules."""
    table("device")
    field("device", "name")
    field("device", "owner", target="user")
    table("laptop", parent="device")
    field("laptop", "memory", "integer")
    record("device", name="Lamp")
    record("laptop", name="Slim", memory=8)


def readable_names(caller: User | ApiClient, path: str = "device", **options: Any) -> Any:
    """The names that the caller can read; None for a 404."""
    response = (caller if isinstance(caller, ApiClient) else api(caller)).get(path, **options)
    if response.status_code == 404:
        return None
    return sorted(record.get("name") or "-" for record in data_of(response))


class TestRecordRuleLevels:
    def test_no_rule_means_administrators_only(self, laptop_tables: None, alice: User, bob: User):  # B75
        assert readable_names(bob) is None and readable_names(bob, "laptop") is None
        assert readable_names(alice) == ["Lamp", "Slim"] and readable_names(alice, "laptop") == ["Slim"]

    def test_rule_applies_to_extending_tables(self, laptop_tables: None, bob: User):
        rule("read", "device")
        assert readable_names(bob) == ["Lamp", "Slim"] and readable_names(bob, "laptop") == ["Slim"]

    def test_own_rule_takes_precedence_over_the_parent(self, laptop_tables: None, bob: User, dora: User):
        rule("read", "device")
        rule("read", "laptop", roles=["auditor"])
        assert readable_names(bob, "laptop") is None and readable_names(bob) == ["Lamp"]
        assert readable_names(dora, "laptop") == ["Slim"] and readable_names(dora) == ["Lamp", "Slim"]

    def test_child_rule_can_grant_more(self, laptop_tables: None, bob: User):
        rule("read", "device", roles=["auditor"])
        rule("read", "laptop")
        assert readable_names(bob, "laptop") == ["Slim"] and readable_names(bob) == ["Slim"]

    def test_rule_for_any_table_is_the_last_level(self, laptop_tables: None, bob: User, dora: User):
        rule("read", None, roles=["auditor"])
        assert readable_names(bob) is None and readable_names(dora) == ["Lamp", "Slim"]
        rule("read", "device", condition="name=Nothing")
        assert readable_names(dora) == [] and readable_names(dora, "laptop") == []

    def test_rule_for_any_table_excludes_product_tables(self, laptop_tables: None, bob: User):
        rule("read", None)
        rule("read", None, "*")
        assert readable_names(bob) == ["Lamp", "Slim"]
        for name in ("sys_acl", "sys_role", "sys_user_role", "sys_deletion_log", "sys_property", "sys_db_table"):
            assert error_of(api(bob).get(name)) == (404, "table_not_found", None)
        assert "email" not in data_of(api(bob).get("user"))[0]

    def test_one_matching_rule_per_level_is_enough(self, laptop_tables: None, bob: User, dora: User):
        rule("read", "device", roles=["auditor"])
        rule("read", "device", condition="name=Lamp")
        assert readable_names(bob) == ["Lamp"] and readable_names(dora) == ["Lamp", "Slim"]

    def test_rule_requires_role_and_condition(self, laptop_tables: None, bob: User, dora: User):
        rule("read", "device", roles=["auditor"], condition="name=Lamp")
        rule("read", "device", roles=["other"], condition="name=Slim")
        assert readable_names(bob) is None and readable_names(dora) == ["Lamp"]

    @pytest.mark.parametrize("operation", ["create", "write", "delete"])
    def test_rule_applies_only_to_its_operation(self, laptop_tables: None, bob: User, operation: str):
        rule(operation, "device")
        assert readable_names(bob) == [], "the table is known, but not readable"

    def test_inactive_rule_is_ignored(self, laptop_tables: None, bob: User):
        rule("read", "device", roles=["other"], active=False)
        rule("read", "laptop", active=False)
        assert readable_names(bob) is None
        rule("read", None)
        assert readable_names(bob) == ["Lamp", "Slim"]


class TestColumnRuleLevels:
    LEVELS = (("laptop", "name"), ("device", "name"), (None, "name"), ("laptop", "*"), ("device", "*"), (None, "*"))

    def test_first_level_with_a_rule_decides(self, laptop_tables: None, bob: User):
        rule("read", "device")
        assert readable_names(bob, "laptop") == ["Slim"], "without rules, columns are readable"
        # From the last level to the first: each rule overrides the previous ones.
        for number, (owner, name) in enumerate(reversed(self.LEVELS)):
            is_closed = number % 2 == 0
            rule("read", owner, name, roles=["other"] if is_closed else [])
            assert readable_names(bob, "laptop") == ["-" if is_closed else "Slim"], (owner, name)

    def test_records_use_the_rules_of_their_own_table(self, laptop_tables: None, bob: User):
        rule("read", "device")
        rule("read", "laptop", "name", roles=["other"])
        records = data_of(api(bob).get("device", fields="name,sys_id"))
        assert [record["name"] for record in records] == ["Lamp", None]
        assert readable_names(bob, query="name=Slim") == []
        assert column_values(api(bob).get("device", query="nameISEMPTY", fields="sys_id"), "sys_id") == [
            records[1]["sys_id"]
        ]

    def test_one_matching_rule_per_level_is_enough(self, laptop_tables: None, bob: User):
        rule("read", "device")
        rule("read", "device", "name", roles=["other"])
        rule("read", "device", "name", condition="name=Lamp")
        assert column_values(api(bob).get("device", fields="name"), "name") == ["Lamp", None]

    def test_column_rule_grants_nothing_without_record_access(self, laptop_tables: None, bob: User):
        rule("read", "device", "name")
        assert readable_names(bob) is None

    def test_system_columns_can_have_rules(self, laptop_tables: None, bob: User):
        rule("read", "device")
        rule("read", "device", "sys_created_at", roles=["other"])
        first_record = data_of(api(bob).get("device"))[0]
        assert "sys_created_at" not in first_record and "sys_id" in first_record
        rule("read", "device", "*", roles=["other"])
        assert data_of(api(bob).get("device")) == [{}, {}]


class TestAdministrators:
    def test_administrators_bypass_rules_by_default(self, laptop_tables: None, alice: User):
        admin_rule = rule("read", "device", roles=["other"], admin_overrides=False)
        assert readable_names(alice) == [], "known, as other operations have no rule"
        rule("read", "device", condition="name=Lamp", admin_overrides=False)
        assert readable_names(alice) == ["Lamp"]
        admin_rule.admin_overrides = True
        saving.save_rule(admin_rule)
        assert readable_names(alice) == ["Lamp", "Slim"]

    def test_administrators_bypass_each_level_separately(self, laptop_tables: None, alice: User):
        rule("read", "device", roles=["other"])
        rule("read", "device", "name", roles=["other"], admin_overrides=False)
        assert readable_names(alice) == ["-", "-"]
        rule("read", "laptop", "name", roles=["other"])
        assert readable_names(alice, "laptop") == ["Slim"]

    def test_administrators_always_bypass_rules_of_product_tables(self, alice: User):
        rule("read", "user", roles=["other"], admin_overrides=False)
        rule("read", "user", "email", roles=["other"], admin_overrides=False)
        assert column_values(api(alice).get("user", fields="email"), "email") == ["alice@example.com"]


class TestRoles:
    def test_containing_role_has_the_permissions_of_contained_roles(self, laptop_tables: None, bob: User, dora: User):
        role("reader")
        rule("read", "device", roles=["reader"])
        assert readable_names(dora) is None
        role("clerk", contains=["reader"])
        role("auditor", contains=["clerk"])
        assert readable_names(dora) == ["Lamp", "Slim"]
        assert readable_names(bob) is None

    def test_contained_role_does_not_inherit_upwards(self, laptop_tables: None, bob: User):
        role("chief", contains=["reader"])
        rule("read", "device", roles=["chief"])
        grant(bob, "reader")
        assert readable_names(bob) is None

    def test_role_containing_admin_is_an_administrator(self, laptop_tables: None, bob: User):
        role("deputy", contains=["admin"])
        grant(bob, "deputy")
        assert readable_names(bob) == ["Lamp", "Slim"]

    def test_any_of_several_roles_is_enough(self, laptop_tables: None, dora: User):
        rule("read", "device", roles=["other", "auditor"])
        assert readable_names(dora) == ["Lamp", "Slim"]

    def test_revoked_role_applies_immediately(self, laptop_tables: None, dora: User):
        rule("read", "device", roles=["auditor"])
        assert readable_names(dora) == ["Lamp", "Slim"]
        dora.grants.all().delete()
        assert readable_names(dora) is None

    def test_key_has_the_intersection_of_scope_and_user_roles(
        self, laptop_tables: None, dora: User, alice: User
    ):  # B65
        rule("read", "device", roles=["auditor"])
        rule("read", "device", "name", roles=["namer"])
        grant(dora, "namer")
        assert readable_names(api(dora, credential="key")) == ["Lamp", "Slim"]
        assert readable_names(api(dora, scope=["namer"])) is None
        assert readable_names(api(dora, scope=["auditor"])) == ["-", "-"]
        role("other")
        assert readable_names(api(dora, scope=["auditor", "other", "admin"])) == ["-", "-"]
        assert readable_names(api(alice, scope=["auditor"])) == ["-", "-"], "fewer roles than admin"
        # A key loses the roles that its user loses.
        scoped_caller = api(dora, scope=["auditor"])
        dora.grants.filter(role__name="auditor").delete()
        assert readable_names(scoped_caller) is None


class TestConditions:
    @pytest.fixture
    def owned_devices(self, laptop_tables: None, alice: User, bob: User) -> None:
        query_rows("DELETE FROM records.device")
        field("device", "team", target="sys_group")
        field("device", "watchers", "list", target="user")
        field("device", "part_of", target="device")
        helpers_group = group("Helpers", bob)
        owned_device = record("device", name="Whole", owner=bob.pk)
        record("device", name="Hers", owner=alice.pk, watchers=[bob.pk], part_of=owned_device)
        record("laptop", name="Team", team=helpers_group.pk, memory=8)
        record("device", name="Nobody's")

    @pytest.mark.parametrize(
        ("condition", "expected"),
        [
            ("ownerDYNAMICme", ["Whole"]),
            ("ownerISNOT_DYNAMICme", ["Hers", "Nobody's", "Team"]),
            ("teamDYNAMICmy_groups", ["Team"]),
            ("watchersCONTAINS_DYNAMICme", ["Hers"]),
            ("owner.login=bob", ["Whole"]),
            ("owner.email=alice@example.com", ["Hers"]),  # a rule can use columns that its caller cannot read
            ("part_of.owner.login=bob", ["Hers"]),
            ("part_of.nameISEMPTY", ["Nobody's", "Team", "Whole"]),
            ("owner=javascript:gs.getUserID()", ["Whole"]),
            ("ownerDYNAMICme^ORteamDYNAMICmy_groups", ["Team", "Whole"]),
            ("name=Hers^NQname=Team", ["Hers", "Team"]),
            ("sys_created_at>=javascript:gs.beginningOfToday()^nameSTARTSWITHw", ["Whole"]),
            ("sys_idINSTANCEOFlaptop", ["Team"]),
        ],
    )
    def test_condition_can_use_the_record_and_the_caller(
        self, owned_devices: None, bob: User, condition: str, expected: list[str]
    ):  # B14
        rule("read", "device", condition=condition)
        caller = api(bob)
        assert readable_names(caller) == expected
        for query in (
            "nameANYTHING^ORname!=x",
            "name=x^NQnameANYTHING",
            "sys_idISNOTEMPTY^NQnameISEMPTY^ORnameANYTHING",
        ):
            response = caller.get("device", query=query, count="exact", fields="name")
            assert sorted(column_values(response, "name")) == expected and response["X-Total-Count"] == str(
                len(expected)
            )
        matching_ids = [sys_id for (sys_id,) in query_rows("SELECT sys_id FROM records.device")
                 if caller.get(f"device/{sys_id}").status_code == 200]  # fmt: skip
        assert len(matching_ids) == len(expected)

    def test_child_column_condition_applies_when_the_parent_is_read(self, owned_devices: None, bob: User):
        rule("read", "device", condition="name=Whole")
        rule("read", "laptop", condition="memory>7^name=Team")
        assert readable_names(bob) == ["Team", "Whole"] and readable_names(bob, "laptop") == ["Team"]
        query_rows("UPDATE records.laptop SET memory = 7")
        assert readable_names(bob) == ["Whole"] and readable_names(bob, "laptop") == []

    def test_column_rule_can_depend_on_a_child_column(self, owned_devices: None, bob: User):
        rule("read", "device")
        rule("read", "laptop", "name", condition="memory<8")
        assert readable_names(bob, query="nameISEMPTY", fields="sys_id") == ["-"]
        assert "Team" not in column_values(api(bob).get("device", fields="name"), "name")
        query_rows("UPDATE records.laptop SET memory = 7")
        assert "Team" in column_values(api(bob).get("device", fields="name"), "name")


def store_condition(stored_rule: Rule, **values: Any) -> None:
    """Store a condition that no form would accept, as a restored backup can contain one."""
    Rule.objects.filter(pk=stored_rule.pk).update(**values)
    State.increment_version()


class TestBrokenRules:
    """A rule with an invalid condition never holds, but still decides its level."""

    BROKEN_CONDITIONS = (
        "nothing=1", "name.x=1", "owner.nothing=1", "nameFOO", "(", "^", "ORDERBYname", " ", "nameHASx",
        "owner.password=1", "owner.passwordISNOTEMPTY", "name=javascript:alert(1)", "sys_created_at>yesterday",
        "sys_idINSTANCEOFnothing",
    )  # fmt: skip

    def test_broken_record_rule_never_holds(self, laptop_tables: None, alice: User, bob: User):  # B74
        rule("read", None)
        broken_rule = rule("read", "device")
        assert readable_names(bob) == ["Lamp", "Slim"]
        for condition in self.BROKEN_CONDITIONS:
            store_condition(broken_rule, condition=condition)
            assert not readable_names(bob), condition
            assert readable_names(alice) == ["Lamp", "Slim"], condition
        store_condition(broken_rule, condition="owner.password=1", admin_overrides=False)
        assert not readable_names(alice)

    def test_broken_column_rule_never_holds(self, laptop_tables: None, bob: User):  # B74
        rule("read", "device")
        broken_rule = rule("read", "device", "name")
        for condition in self.BROKEN_CONDITIONS:
            store_condition(broken_rule, condition=condition)
            assert readable_names(bob) == ["-", "-"], condition

    def test_broken_child_rules_reveal_no_column(self, laptop_tables: None, bob: User):
        """Only laptops could show the column, and no one may read a laptop."""
        rule("read", "device")
        rule("read", "device", "name", roles=["nobody"])
        broken_rule = rule("read", "laptop", condition="memory=1")
        rule("read", "laptop", "name", condition="memory>0")
        assert api(bob).get("device", fields="name").status_code == 200
        store_condition(broken_rule, condition="nosuch=1")

        assert error_of(api(bob).get("device", fields="name"))[:2] == (400, "no_fields")

    def test_rule_with_deleted_roles_applies_to_no_one(self, laptop_tables: None, bob: User):  # B74
        new_rule = rule("read", "device", roles=["auditor"])
        rule("read", "laptop", roles=["other"])
        Role.objects.get(name="auditor").delete()
        assert Rule.objects.get(pk=new_rule.pk).roles != []
        assert readable_names(bob) is None

    def test_rule_keeps_its_remaining_roles(self, laptop_tables: None, bob: User, dora: User):
        rule("read", "device", roles=["auditor", "gone"])
        Role.objects.get(name="gone").delete()
        assert readable_names(bob) is None and readable_names(dora) == ["Lamp", "Slim"]
