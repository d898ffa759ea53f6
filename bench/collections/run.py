"""Starts a database, and runs each measurement in a process that uses it."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from config.env import ROOT
from tests.config.shared_servers import SharedServers
from tests.config.stack import environment, free_port


def parse_arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench collections", description=__doc__)
    parser.add_argument("--data", type=Path, help="a folder with question sets: xquad/xquad.*.json, covidqa/*.json")
    parser.add_argument("--sets", default="", help="use only these sets, such as en,covidqa,de-sentences")
    parser.add_argument("--questions", type=int, default=0, help="use at most this many of each set, evenly spread")
    parser.add_argument("--chunks", default="1000/200", help="size and overlap of passages (default %(default)s)")
    parser.add_argument(
        "--scale", type=int, default=0, help="measure search cost in this many chunks, varied from DATA or invented"
    )
    parser.add_argument("--collections", type=int, default=1, help="number of collections (with --scale)")
    parser.add_argument("--model", default="", help="local embedding model, instead of the one for the language")
    parser.add_argument("--weights", default="", help="weights of words, characters and vectors, such as .4,.4,.2")
    parser.add_argument(
        "--against", metavar="COMMIT", help="compare searches with this commit (with --scale and --data)"
    )
    parser.add_argument("--ingest", type=int, default=0, help="measure the cost of loading this many chunks")
    parser.add_argument("--headings", action="store_true", help="ask questions about this documentation")
    arguments = parser.parse_args(argv)
    if not (arguments.data or arguments.scale or arguments.ingest or arguments.headings):
        parser.error(
            "use --data or --headings to measure search quality, --scale for search cost, --ingest for loading cost"
        )
    if arguments.against and not (arguments.scale and arguments.data):
        parser.error("--against needs --scale and --data")
    return arguments


def main(argv: list[str]) -> None:
    arguments = parse_arguments(argv)
    if arguments.against:
        subprocess.run([sys.executable, "-m", "bench.collections.against", *argv], cwd=ROOT, check=True)
        return
    module_options = {"scale": arguments.scale, "ingest": arguments.ingest, "headings": arguments.headings}
    module = f"bench.collections.{next((name for name, value in module_options.items() if value), 'quality')}"
    with tempfile.TemporaryDirectory(prefix="servicebase-bench-") as root:
        servers = SharedServers(Path(root) / "servers").start_postgres().start_valkey()
        environ = {**environment(Path(root) / "host", free_port()), **servers.environ}
        environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        try:
            subprocess.run([sys.executable, "manage.py", "prepare"], cwd=ROOT, env=environ, check=True)
            subprocess.run([sys.executable, "-m", module, *argv], cwd=ROOT, env=environ, check=True)
        finally:
            servers.end()
