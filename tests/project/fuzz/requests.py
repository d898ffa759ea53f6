"""Generates valid and invalid requests, mostly to the Table API, from a seed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import quote

from system.encoded_query import ALIASES, OPERATORS, REFUSED_OPERATORS
from tests.system.encoded_query.queries import SYNTAX_PIECES, random_text
from tests.tableapi.column_types import EXAMPLE_IDS, EXAMPLES

TABLE_NAME = "every"
METHODS = ["GET"] * 10 + ["POST"] * 6 + ["PATCH"] * 5 + ["PUT"] * 2 + ["DELETE", "HEAD", "OPTIONS", "TRACE", "FETCH"]
OTHER_PATHS = [
    "/rest/v1/table/user", "/rest/v1/table/task", "/rest/v1/table/sys_db_column", "/rest/v1/table/nothing",
    "/rest/v1/table/", "/rest/v1/table/every/", "/rest/v1/table/every/a/b", "/rest/v1/table/%00", "/rest/v1/table/%ff",
    "/rest/v1/auth/login", "/api/me", "/api/schema", "/api/collections", "/get_relevant_documents",
    "/get_list_of_collection", "/load_text_to_collection", "/load_document_to_collection", "/nothing", "//", "/%2e%2e/",
]  # fmt: skip
OTHER_COLUMNS = [
    "sys_id", "sys_created_by", "sys_version", "nothing", "reference.string", "reference.reference.integer",
    "list.string", "sys_created_by.login", "password.",
]  # fmt: skip
QUERY_WORDS = [
    "", " ", "a", "1", "0", "-1", "1e400", "NaN", "true", "null", "9" * 30, "Ж", "\U0001f600", "\x00", "a\nb",
    "<p>a</p>", "2024-02-30", "2024-05-31 12:00:30", "me", "x" * 300, "javascript:gs.getUserID()", "@day@ago@1", "1@2",
    "a,b,,c", *EXAMPLE_IDS, *SYNTAX_PIECES,
]  # fmt: skip
# Likely values of each parameter.
PARAMETERS: dict[str, list[str]] = {
    "sysparm_limit": ["1", "2", "100", "10000", "10001"],
    "sysparm_page": ["1", "2", "100000"],
    "sysparm_cursor": ["a", "=", "AAAA"],
    "sysparm_count": ["exact", "estimated"],
    "sysparm_display_value": ["1", "all", "0"],
    "sysparm_exclude_reference_link": ["1"],
    "sysparm_input_display_value": ["1"],
    "sysparm_view": ["", "Default", "short"],
    "sysparm_query_category": ["replica"],
    "sysparm_unknown": ["1"],
}
CONTENT_TYPES = [
    *["application/json"] * 30, "application/json; charset=utf-8", "application/json; charset=latin-1", "text/plain",
    "", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b", "multipart/form-data", "a/b/c; =",
]  # fmt: skip
LAST_ETAG = "last ETag"
HEADERS: dict[str, list[str]] = {
    "If-Match": [LAST_ETAG, LAST_ETAG, "*", '"1-a"', 'W/"1"', "a", ""],
    "If-None-Match": [LAST_ETAG, LAST_ETAG, "*", '"1-a", "2-b"', "a"],
    "Idempotency-Key": ["k", "k", "k", "k", "l", "", "x" * 256, "\xff", "a b"],
    "Accept": ["application/json", "text/html", "*/*;q=2", "a"],
    "Accept-Language": ["de", "xx-yy;q=a"],
    "Accept-Encoding": ["gzip", "identity;q=0", "a"],
    "X-Request-ID": ["a", "x" * 300, "\xe9"],
    "X-Forwarded-For": ["1.2.3.4", "a, b", "::1"],
    "X-Forwarded-Proto": ["https", "a"],
    "X-HTTP-Method-Override": ["DELETE"],
    "Authorization": ["Bearer a", "Basic !!", "Basic Og==", "a", ""],
    "Cookie": ["sessionid=a", "=;=", "\xe9"],
    "Range": ["bytes=0-1", "a"],
    "Origin": ["https://example.com", "null"],
}
JUNK_VALUES: list[Any] = [
    None,
    True,
    -1,
    1.5,
    2**70,
    1e308,
    "",
    "a",
    "x" * 5000,
    "\x00",
    [],
    {},
    [[]],
    {"a": {"b": [None]}},
]
BODY_EXAMPLES = [
    b"", b"{", b"[]", b"null", b"{}", b'{"a":1}{"b":2}', b"\xff\xfe{\x00}\x00", b"\xef\xbb\xbf{}",
    b'{"string":"\\ud800"}', b'{"string":"a","string":"b"}', b'{"integer":NaN}', b'{"decimal":1e999}', b"[" * 2000,
    b'{"a":' * 500 + b"1" + b"}" * 500,
    b"--b\r\nContent-Disposition: form-data; name=file; filename=a.txt\r\n\r\na\r\n--b--\r\n", b"--b\r\n", b"a=b&c=%zz",
    b'{"data":[{"string":"a"}]}', b'[{"string":"a"}]', b'{"text":"a","metadata":{}}', b'{"":""}', b'{"sys_id":"1"}',
]  # fmt: skip


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: str = ""
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def url(self) -> str:
        return self.path + ("?" + self.query if self.query else "")


@dataclass(frozen=True)
class RequestGenerator:
    """Generates requests for the records with these ids."""

    random: Random
    ids: list[str]

    def random_request(self) -> Request:
        method = self.random.choice(METHODS)
        path = self.random_path(method)
        has_body = method in ("POST", "PUT", "PATCH") or self.random.random() < 0.02
        return Request(
            method,
            path,
            self.random_parameters(),
            self.random_headers(has_body),
            self.random_body() if has_body else b"",
        )

    def random_path(self, method: str) -> str:
        if self.random.random() < 0.12:
            return self.random.choice(OTHER_PATHS)
        table_path = f"/rest/v1/table/{TABLE_NAME}"
        has_id = method in ("PUT", "PATCH", "DELETE") or (method != "POST" and self.random.random() < 0.3)
        if self.random.random() < 0.05:
            has_id = not has_id
        return f"{table_path}/{self.random_id()}" if has_id else table_path

    def random_id(self) -> str:
        return self.random.choice(self.ids) if self.random.random() < 0.85 else quote(self.random_word(), safe="")

    def random_word(self) -> str:
        return self.random.choice(QUERY_WORDS)

    def random_column(self) -> str:
        return self.random.choice([*EXAMPLES, *EXAMPLES, *OTHER_COLUMNS])

    def random_parameters(self) -> str:
        parameters = {
            name: self.random.choice(values) if self.random.random() < 0.7 else self.random_word()
            for name, values in PARAMETERS.items()
            if self.random.random() < 0.12
        }
        if self.random.random() < 0.5:
            parameters["sysparm_query"] = self.random_query()
        if self.random.random() < 0.3:
            parameters["sysparm_fields"] = ",".join(self.random_column() for _ in range(self.random.randint(1, 5)))
        pairs = [*parameters.items(), *([*parameters.items()] if self.random.random() < 0.03 else [])]
        if self.random.random() < 0.03:
            unquoted_query = "&".join(f"{name}={value}" for name, value in pairs).replace("\x00", "%").replace("\n", "")
            return unquoted_query.encode(errors="replace").decode()  # a client cannot send surrogates unquoted
        return "&".join(f"{name}={quote(value, errors='surrogatepass')}" for name, value in pairs)

    def random_query(self) -> str:
        if self.random.random() < 0.2:
            return random_text(self.random)
        conditions = [self.random_condition() for _ in range(self.random.choice([1, 1, 2, 3, 8]))]
        query = self.random.choice(["^", "^OR", "^NQ"]).join(conditions)
        for _ in range(self.random.choice([0, 0, 1, 2])):
            query += f"^ORDERBY{self.random.choice(['', 'DESC'])}{self.random_column()}"
        return query

    def random_condition(self) -> str:
        name = self.random_column()
        operator = self.random.choice(["=", "!=", *OPERATORS, *ALIASES, *REFUSED_OPERATORS])
        if self.random.random() < 0.6 and name in EXAMPLES:
            return f"{name}{operator}{EXAMPLES[name].text_in_query}"
        value = self.random.choice([self.random_word, self.random_column])()
        return f"{name}{operator}{value}"

    def random_headers(self, has_body: bool) -> dict[str, str]:
        headers = {name: self.random.choice(values) for name, values in HEADERS.items() if self.random.random() < 0.04}
        if has_body:
            headers["Content-Type"] = self.random.choice(CONTENT_TYPES)
            for name in ("If-Match", "Idempotency-Key"):
                if self.random.random() < 0.25:
                    headers[name] = self.random.choice(HEADERS[name])
        elif self.random.random() < 0.15:
            headers["If-None-Match"] = self.random.choice(HEADERS["If-None-Match"])
        return headers

    def random_body(self) -> bytes:
        if self.random.random() < 0.12:
            return self.random.choice(BODY_EXAMPLES)
        names = self.random.sample([*EXAMPLES], self.random.randint(0, 5))
        return json.dumps({name: self.random_value(name) for name in names} | self.unexpected_fields()).encode()

    def random_value(self, name: str) -> Any:
        example = EXAMPLES[name]
        draw = self.random.random()
        if draw < 0.75:
            return self.random.choice([*example.values, None])
        return self.random.choice([*example.refused_values, *JUNK_VALUES] if draw < 0.95 else [self.random_word()])

    def unexpected_fields(self) -> dict[str, Any]:
        if self.random.random() < 0.9:
            return {}
        return {
            self.random.choice([self.random_word(), "sys_id", "sys_version", "nothing"]): self.random.choice(
                JUNK_VALUES
            )
        }
