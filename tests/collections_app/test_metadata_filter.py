"""Metadata filters: which documents each kind of condition matches, and which filters are refused."""

import json
from typing import Any

import pytest
from django.db import connection

from collections_app.metadata.filter import Filter, parse_filter
from system.encoded_query import QueryError

DOCUMENTS: dict[str, dict[str, Any]] = {
    "one": {
        "sys_id": "A1", "status": "Active", "priority": 1, "flag": True, "type": "manual",
        "created": "2024-05-19T15:30:00+03:00", "n": 3, "docID": "x", "tags": ["red", "Blue", 7],
    },
    "two": {
        "status": "draft", "priority": 20, "flag": False, "created": "2023-01-31T00:00:00Z", "n": "3", "tags": "red",
    },
    "three": {"n": 30, "file name": "Draft.pdf", "owner": {"name": "Ann", "roles": [{"id": 1}, {"id": 2}]}},
    "none": {},
}  # fmt: skip

CASES = {
    # The specified form, and the six typed fields.
    "status=active": ["one"],
    "status=active^priority=1": ["one"],
    "type=MANUAL": ["one"],
    "flag=true": ["one"],
    "flag=True": ["one"],
    "flag=FALSE": ["two"],
    "flag=false": ["two"],
    "flag!=true": ["two", "three", "none"],
    "priority>2": ["two"],
    "priority>=1^priority<20": ["one"],
    "priorityIN1,20": ["one", "two"],
    "priorityNOT IN1": ["two", "three", "none"],
    "priorityBETWEEN2@20": ["two"],
    "created=2024-05-19 12:30:00": ["one"],
    "created>2024-01-01": ["one"],
    "createdON2023-01-31": ["two"],
    "createdYEAR_IS2024": ["one"],
    "createdRELATIVELT@year@ago@1": ["one", "two"],
    "created<javascript:gs.daysAgo(1)": ["one", "two"],
    # Case does not matter in text; a missing field is empty, never an error.
    "statusLIKECTI": ["one"],
    "statusNOTLIKEcti": ["two", "three", "none"],
    "statusSTARTSWITHDR": ["two"],
    "statusENDSWITHive": ["one"],
    "status=": ["three", "none"],
    "status!=": ["one", "two"],
    "statusISEMPTY": ["three", "none"],
    "missing=1": [],
    "missing!=1": ["one", "two", "three", "none"],
    "missingISEMPTY": ["one", "two", "three", "none"],
    # In other fields, 3 matches the number and the text.
    "n=3": ["one", "two"],
    "n=3.0": ["one"],
    "n>3": ["three"],
    "n>=3": ["one", "two", "three"],
    "nIN3,30": ["one", "two", "three"],
    "nLIKE0": ["three"],
    "{docID}=X": ["one"],
    "{file name}ENDSWITH.pdf": ["three"],
    # An array matches if any of its items matches.
    "tags=red": ["one", "two"],
    "tags=blue": ["one"],
    "tags=7": ["one"],
    "tags!=red": ["three", "none"],
    "tagsHASblue,7": ["one"],
    "tagsHASNOTred": ["three", "none"],
    "tagsLIKElu": ["one"],
    # Paths lead into objects, and into objects within arrays.
    "owner.name=ann": ["three"],
    "owner.roles.id=2": ["three"],
    "owner.roles.id=3": [],
    "ownerISNOTEMPTY": ["three"],
    "owner=ann": [],
    # Conjunctions, parentheses, comparison of two fields.
    "status=active^ORstatus=draft^flag=true": ["one"],
    "status=active^NQn=30": ["one", "three"],
    "(status=active^flag=false)^ORn=30": ["three"],
    "nSAMEASpriority": ["none"],
    "n>1^nGT_FIELDpriority": ["one"],
    "statusANYTHING": ["one", "two", "three", "none"],
    "statusNOTHING": [],
    "": ["one", "two", "three", "none"],
    # Quoting, and characters with a meaning in SQL or patterns.
    "status={a^b}": [],
    "status=%": [],
    "status=' OR 1=1 --": [],
    "{x'; DROP TABLE document; --}=1": [],
    '{a"]."b}=1': [],
    "sys_id=a1": ["one"],
}


def matching_documents(filter_text: str) -> list[str]:
    condition, parameters = parse_filter(filter_text).sql("document.metadata")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT name FROM unnest(%s::text[], %s::jsonb[]) WITH ORDINALITY AS document (name, metadata, number)"
            f" WHERE {condition} ORDER BY number",
            [list(DOCUMENTS), [json.dumps(document) for document in DOCUMENTS.values()], *parameters],
        )
        return [name for (name,) in cursor.fetchall()]


# C07
@pytest.mark.django_db
@pytest.mark.parametrize("filter_text", CASES)
def test_filter_matches_the_expected_documents(filter_text: str) -> None:
    assert matching_documents(filter_text) == CASES[filter_text]


# C07
@pytest.mark.parametrize(
    ("filter_text", "message"),
    [
        ("priority=abc", "priority: a whole number"),
        ("priority=1.5", "priority: a whole number"),
        ("priority=99999999999999999999", "priority: a whole number"),
        ("priorityIN1,x", "priority: a whole number"),
        ("priorityBETWEEN1@x", "priority: a whole number"),
        ("flag=yes", "flag: true or false"),
        ("created=soon", "created: a date"),
        ("created>2024-02-30", "created: a date"),
        ("status=javascript:gs.now()", "status: a time"),
        ("x=javascript:alert(1)", "unknown value function"),
        ("x=javascript:gs.getUserID()", "depends on the caller"),
        ("priorityLIKE1", "priority, whose type is integer"),
        ("createdLIKE2024", "created, whose type is date and time"),
        ("flagIN1", "flag, whose type is boolean"),
        ("flag>true", "flag, whose type is boolean"),
        ("statusON2024-01-01", "status, whose type is text"),
        ("statusHASa", "status, whose type is text"),
        ("statusGT_FIELDpriority", "status, whose type is text"),
        ("nGT_FIELDstatus", "status, whose type is text"),
        ("createdMORETHANpriority@day@after@1", "priority, whose type is integer"),
        ("xDYNAMICme", "is not supported for metadata"),
        ("sys_idAREprinter", "is not supported for metadata"),
        ("sys_idINSTANCEOFtask", "is not supported for metadata"),
        ("xARE1", "with sys_id"),
        ("a=1^ORDERBYb", "sorting is not supported"),
        ("ORDERBYb", "sorting is not supported"),
        ("xVALCHANGES", "not supported"),
        ("no such field=1", "operator"),
        ("a=1^^b=2", "field name"),
        ("a", "operator"),
        ("(a=1", "unclosed"),
        ("a=1\x00", "character"),
        ("a=" + "x" * 20_000, "longer"),
        ("^OR".join(["a=1"] * 201), "conditions"),
    ],
)
def test_contradictory_filter_is_refused_with_the_reason(filter_text: str, message: str) -> None:
    with pytest.raises(QueryError) as exc_info:
        parse_filter(filter_text)
    assert message in exc_info.value.message
    assert 0 <= exc_info.value.position <= len(filter_text)


# C08
@pytest.mark.django_db
@pytest.mark.parametrize("field", ["doc_id", "collection_id", "collection_name", "created_by", "state", "is_searched"])
def test_server_fields_of_a_document_are_not_metadata(field: str) -> None:
    assert matching_documents(f"{field}ISNOTEMPTY") == []
    assert matching_documents(f"{field}=1") == []


def test_names_and_values_are_parameters() -> None:
    sql, parameters = parse_filter("{evil'name}={evil'value}^status=evil").sql("version.metadata")
    assert "evil" not in sql
    assert any("evil'name" in str(parameter) for parameter in parameters)
    assert sql.count("%s") == len(parameters)


def test_no_filter_is_no_condition() -> None:
    assert Filter().is_empty and parse_filter("").is_empty
    assert parse_filter("").sql("version.metadata") == ("TRUE", [])


@pytest.mark.django_db
@pytest.mark.parametrize("filter_text", ["priority=3", "number=2024-17", "number=7"])
def test_equality_without_letters_can_use_the_index(filter_text: str) -> None:
    condition, parameters = parse_filter(filter_text).sql("version.metadata")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute(f"EXPLAIN SELECT id FROM document_version version WHERE {condition}", parameters)
        plan = "\n".join([line for (line,) in cursor.fetchall()])
    assert "document_version_metadata" in plan
