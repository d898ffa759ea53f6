"""The meaning of operators as examples: one line per case."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from .column_types import NOW


def parse_instant(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


FALSY_VALUES: list[Any] = [{}, [], "", 0, False]
# Type of `c`, its value, query, whether it matches; `d` is a second column of that type, see OTHER_VALUES.
OPERATOR_EXAMPLES: list[tuple[str, Any, str, bool]] = [
    *(
        (type_name, "aB", text, True)
        for type_name in ("string", "text")
        for text in ("c=Ab", "cINx,AB", "cLIKEB", "c>AA", "c<=ab")
    ),
    *(("string", None, f"c{text}", False) for text in ("=a", ">a", "<a", "INa", "LIKEa", "BETWEENa@b", "EMPTYSTRING")),
    *(
        ("string", "", f"c{text}", True)
        for text in ("ISEMPTY", "EMPTYSTRING", "!=a", "NOT INa", "NOTLIKEa", "ANYTHING")
    ),
    *(("string", "", f"c{text}", False) for text in ("<a", "ISNOTEMPTY", "NOTHING", "ENDSWITHa")),
    ("string", "Д", "c=д", True),
    ("string", "a%b", "cLIKE%B", True),
    ("string", "ab", "cLIKE_", False),
    ("string", "ab", "cSTARTSWITHA", True),
    ("string", "ab", "cENDSWITHA", False),
    ("string", "B", "cBETWEENa@b", True),
    ("string", "160000000000000001", "c=javascript:gs.getUserID()", True),
    ("wysiwyg", "<p>b</p>", "c=B", True),
    ("wysiwyg", "<p>b</p>", "cLIKEp", False),
    ("wysiwyg", "<p></p>", "cISEMPTY", True),
    ("choice", "a", "c=A", False),
    ("choice", "a", "c!=A", True),
    ("choice", "a", "cLIKEA", True),
    ("choice", "b", "cBETWEENa@c", True),
    ("choice", "b", "cBETWEENA@B", False),
    ("reference", "aB", "c=ab", False),
    ("reference", "g2", "cDYNAMICmy_groups", True),
    ("reference", "g2", "cDYNAMICme", False),
    ("reference", None, "cISNOT_DYNAMICme", True),
    ("reference", "r1", "cDYNAMICmy_roles", True),
    ("integer", 2, "c>1", True),
    ("integer", 1, "c=01", True),
    ("integer", 10, "c<9", False),
    ("integer", 0, "cISEMPTY", False),
    ("integer", None, "cBETWEEN0@9", False),
    ("integer", 3, "cNOT IN1,2", True),
    ("decimal", Decimal("1.50"), "c=1.5", True),
    ("decimal", Decimal(-1), "cBETWEEN-1@0", True),
    ("boolean", False, "c=0", True),
    ("boolean", False, "cISEMPTY", False),
    ("boolean", None, "c!=true", True),
    ("datetime", parse_instant("2024-05-31 12:00:30.9"), "c=2024-05-31 12:00:30", True),
    ("datetime", parse_instant("2024-05-31 12:00:30.9"), "c>2024-05-31 12:00:30.1", False),
    ("datetime", NOW, "c=2024-05-31T15:00:30+03:00", True),
    ("datetime", NOW, "c>2024-05-31", True),
    ("datetime", parse_instant("2024-05-31 23:59:59.999999"), "cON2024-05-31", True),
    ("datetime", parse_instant("2024-06-01"), "cON2024-05-31", False),
    ("datetime", None, "cNOTON2024-05-31", True),
    ("datetime", parse_instant("2024-05-31 12:00"), "cONx@2024-05-30@2024-05-31", True),
    ("datetime", parse_instant("2024-12-30"), "cWEEK_IS1", True),
    ("datetime", parse_instant("2024-12-30"), "cYEAR_IS2024", True),
    ("datetime", parse_instant("2024-06-02"), "cDAY_OF_WEEK_IS7", True),
    ("datetime", NOW, "cHOUR_IS12", True),
    ("datetime", NOW, "cQUARTER_IS2", True),
    ("datetime", NOW, "cMONTH_IS6", False),
    ("datetime", NOW, "cDAY_IS31", True),
    ("datetime", parse_instant("2024-05-31 11:00:30.1"), "cRELATIVEGT@hour@ago@1", True),
    ("datetime", NOW, "cRELATIVELT@hour@ago@0", False),
    ("datetime", parse_instant("2024-05-31 11:00"), "cRELATIVEEE@hour@ago@1", True),
    ("datetime", None, "cRELATIVELE@day@ahead@1", False),
    ("date", date(2024, 5, 31), "c=2024-06-01T01:00:00+02:00", True),
    ("date", date(2024, 5, 31), "c>2024-05-30 23:59:59", True),
    ("date", date(2024, 5, 31), "c<2024-05-31 10:00", False),
    ("date", date(2024, 5, 31), "cHOUR_IS0", True),
    ("date", date(2024, 5, 31), "cRELATIVEGE@hour@ago@1", False),
    ("date", date(2024, 5, 31), "cRELATIVEEE@day@ago@0", True),
    ("date", date(2024, 5, 31), "cONx@2024-05-31 00:00:01@2024-06-30", False),
    ("list", ["a", "b"], "c=a,b", True),
    ("list", ["a", "b"], "c=b,a", False),
    ("list", ["a", "b"], "cHASx,b", True),
    ("list", [], "cHASNOTa", True),
    ("list", [], "cISEMPTY", True),
    ("list", ["g1"], "cCONTAINS_DYNAMICmy_groups", True),
    *(("json", value, "cISEMPTY", False) for value in FALSY_VALUES),
    ("json", None, "cISEMPTY", True),
    # Comparisons with the other column, `d`.
    ("string", "B", "cSAMEASd", True),
    ("string", "", "cSAMEASd", False),
    ("integer", 2, "cGT_FIELDd", True),
    ("integer", None, "cLT_FIELDd", False),
    ("integer", 1, "cGT_OR_EQUALS_FIELDd", True),
    ("decimal", None, "cNSAMEASd", True),
    ("date", date(2024, 6, 2), "cMORETHANd@day@after@1", True),
    ("date", date(2024, 6, 1), "cMORETHANd@day@after@1", False),
    ("date", date(2024, 4, 29), "cMORETHANd@month@before@1", True),
    ("date", date(2024, 4, 30), "cMORETHANd@month@before@1", False),
    ("date", date(2024, 5, 31), "cLESSTHANd@day@after@1", True),
    ("date", date(2024, 6, 1), "cLESSTHANd@day@after@1", False),
    ("date", date(2024, 5, 31), "cLESSTHANd@day@before@1", True),
    ("date", date(2024, 5, 30), "cLESSTHANd@day@before@1", False),
    ("date", date(2024, 8, 30), "cLESSTHANd@quarter@after@1", True),
    ("date", None, "cLESSTHANd@day@after@1", False),
]
OTHER_VALUES = {"string": "b", "integer": 1, "decimal": Decimal(1), "date": date(2024, 5, 31)}

# Two types, two values, whether SAMEAS holds; None if it is refused.
COMPARISON_EXAMPLES: list[tuple[str, str, Any, Any, bool | None]] = [
    ("string", "wysiwyg", "A", "<p>a</p>", True),
    ("string", "text", None, "", True),
    ("choice", "choice", "a", "A", False),
    ("choice", "string", "a", "a", None),
    ("integer", "decimal", 1, Decimal("1.0"), True),
    ("date", "datetime", date(2024, 5, 31), parse_instant("2024-05-31 00:00:00.5"), True),
    ("reference", "reference", "a", "A", False),
    ("list", "list", ["a", "b"], ["b", "a"], False),
    ("list", "list", [], None, True),
    ("boolean", "boolean", False, None, False),
    ("string", "integer", "1", 1, None),
    ("reference", "string", "a", "a", None),
    ("json", "json", 1, 1, None),
    ("string", "password", "a", "a", None),
]
