"""In charge of the order: the product is started, then measured from within and from without."""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from bench.sso import crowd
from config.env import ROOT
from tests.config.stack import Stack


def options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench sso", description=__doc__)
    parser.add_argument("--people", type=int, default=50, help="who sign in at once")
    parser.add_argument("--slow", type=float, default=2.0, help="seconds that the provider takes for a token")
    return parser.parse_args(words)


def main(words: list[str]) -> None:
    given = options(words)
    with tempfile.TemporaryDirectory(prefix="servicebase-bench-") as root:
        stack = Stack(Path(root) / "data", SVC_ALLOW_HTTP_IDP="1", SVC_WEB_PROCESSES="2").start().wait_until_up()
        try:
            # In a process of its own, with the product's database: what is timed runs where the clock is.
            subprocess.run([sys.executable, "-m", "bench.sso.steps"], cwd=ROOT, env=stack.env, check=True)
            crowd.measure(stack, given.people, given.slow)
        finally:
            stack.stop()
            stack.end()
