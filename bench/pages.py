"""`./run bench pages`: what a list page costs beyond the same request to the API, and how much a browser downloads."""

import argparse
import gzip
import http.cookiejar
import re
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from urllib.parse import quote, urljoin

from bench.tableapi import seed
from bench.tableapi.cases import TASKS_PATH, Case
from bench.tableapi.measure import Contender, add_slices, compare
from bench.tableapi.product import Product
from bench.tableapi.run import running_products
from config.env import ROOT

COLUMNS = "number,short_description,state,priority,assigned_user,assignment_group,caller,opened_at,due_date,active"
QUERY = "active=true^ORDERBYDESCopened_at"
LIST_PATH = f"/tables/task/?sysparm_query={quote(QUERY)}&columns={COLUMNS}"
API_PATH = (
    f"{TASKS_PATH}?sysparm_query={quote(QUERY)}&sysparm_fields=sys_id,{COLUMNS}&sysparm_limit=50"
    "&sysparm_display_value=all&sysparm_exclude_reference_link=1"
)
RESOURCE = re.compile(r'(?:src|href)="(/static/[^"]+\.(?:js|css|svg))"')
IMPORTED_MODULE = re.compile(r'(?:from|import) "(\./[^"]+)"')


@dataclass(frozen=True)
class PageCase(Case):
    """A page that a signed-in browser requests."""

    cookies: str = ""

    def requests(self, port: int, key: str) -> list[bytes]:
        headers = f"Host: 127.0.0.1:{port}\r\nCookie: {self.cookies}\r\nAccept: text/html\r\n"
        return [f"GET {path} HTTP/1.1\r\n{headers}\r\n".encode() for path in self.paths]


class BrowserSession:
    """A signed-in user, with the cookies of their browser."""

    def __init__(self, product: Product) -> None:
        self.url = f"http://127.0.0.1:{product.port}"
        self.jar = http.cookiejar.CookieJar()
        self.opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(self.jar))
        page = self.get("/login/?local=1")
        token = re.search(rb'name="csrfmiddlewaretoken" value="([^"]+)"', page)
        assert token is not None
        password = (product.data_folder / "secrets" / "demo-password").read_text().strip()
        form = {"csrfmiddlewaretoken": token[1].decode(), "login": seed.CALLER_LOGIN, "password": password, "next": "/"}
        self.opener.open(f"{self.url}/login/", urllib.parse.urlencode(form).encode()).close()

    def get(self, path: str) -> bytes:
        with self.opener.open(urllib.request.Request(self.url + path, headers={"Accept": "text/html"})) as response:
            body: bytes = response.read()
            return body

    @property
    def cookies(self) -> str:
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.jar)

    def static_files(self, page: bytes) -> Iterator[tuple[str, bytes]]:
        """The files that the page loads, with the modules that they import."""
        waiting = list(dict.fromkeys(RESOURCE.findall(page.decode())))
        seen: set[str] = set()
        while waiting:
            path = waiting.pop()
            if path not in seen:
                seen.add(path)
                content = self.get(path)
                waiting += [urljoin(path, name) for name in IMPORTED_MODULE.findall(content.decode())]
                yield path, content


def print_sizes(session: BrowserSession, path: str) -> None:
    page = session.get(path)
    sizes = {name: len(gzip.compress(content)) for name, content in session.static_files(page)}
    page_kb, files_kb = len(gzip.compress(page)) / 1024, sum(sizes.values()) / 1024
    print(f"{path.partition('?')[0]}: {page_kb:.1f} KB, with {len(sizes)} files {page_kb + files_kb:.1f} KB (gzip)")


def print_costs(product: Product, session: BrowserSession, arguments: argparse.Namespace) -> None:
    page = PageCase("page", "list of 50 x 10", (LIST_PATH,), cookies=session.cookies)
    api = Case("api", "the same list", (API_PATH,))
    product.call("GET", API_PATH)
    comparison = compare(
        Contender(product, page, "page"),
        Contender(product, api, "api"),
        client_count=1,
        duration_s=arguments.seconds,
        slice_count=arguments.slices,
    )
    pairs = zip(comparison.first_slices, comparison.second_slices, strict=True)
    difference_ms = median(first.cpu_ms_per_request - second.cpu_ms_per_request for first, second in pairs)
    page_ms, api_ms = (
        add_slices(slices).cpu_ms_per_request for slices in (comparison.first_slices, comparison.second_slices)
    )
    print(f"CPU of a list page {page_ms:.1f} ms, API request {api_ms:.1f} ms, median difference {difference_ms:.1f} ms")


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="./run bench pages", description=__doc__)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=5.0, help="duration of one slice")
    parser.add_argument("--slices", type=int, default=6)
    arguments = parser.parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="servicebase-bench-") as scratch_folder:
        product = Product("current", ROOT, Path(scratch_folder) / "current")
        with running_products(product):
            product.fill_database(arguments.rows)
            session = BrowserSession(product)
            for path in ("/tables/", LIST_PATH, f"/tables/task/{product.task_ids[0]}/"):
                print_sizes(session, path)
            print_costs(product, session, arguments)
