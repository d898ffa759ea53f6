"""Starts a database, and runs each measurement in a process that uses it."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from config.env import ROOT
from tests.config.shared import SharedServers
from tests.config.stack import environment, free_port


def options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench collections", description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with question sets: xquad/xquad.*.json, covidqa/*.json")
    parser.add_argument("--sets", default="", help="only these, such as en,covidqa")
    parser.add_argument("--questions", type=int, default=0, help="at most so many of each set, spread over it")
    parser.add_argument(
        "--scale", type=int, default=0, help="instead: so many chunks of varied text: of DATA, or made up"
    )
    parser.add_argument("--collections", type=int, default=1, help="in so many collections (with --scale)")
    parser.add_argument("--ingest", type=int, default=0, help="instead: what loading about so many chunks costs")
    parser.add_argument("--headings", action="store_true", help="instead: questions about this documentation")
    arguments = parser.parse_args(words)
    if not (arguments.data or arguments.scale or arguments.ingest or arguments.headings):
        parser.error(
            "give --data or --headings for the quality of answers, --scale for their cost, --ingest for that of loading"
        )
    return arguments


def main(words: list[str]) -> None:
    arguments = options(words)
    kinds = {"scale": arguments.scale, "ingest": arguments.ingest, "headings": arguments.headings}
    module = f"bench.collections.{next((name for name, is_asked in kinds.items() if is_asked), 'quality')}"
    with tempfile.TemporaryDirectory(prefix="servicebase-bench-") as root:
        servers = SharedServers(Path(root) / "servers").start_postgres().start_valkey()
        environ = {**environment(Path(root) / "host", free_port()), **servers.environ}
        environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        try:
            subprocess.run([sys.executable, "manage.py", "prepare"], cwd=ROOT, env=environ, check=True)
            subprocess.run([sys.executable, "-m", module, *words], cwd=ROOT, env=environ, check=True)
        finally:
            servers.end()
