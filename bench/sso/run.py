"""In charge of the order: the product is started, then measured from within and from without.

What the service logs meanwhile goes into a file that is named at the end, so that the figures stand alone.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import IO

from bench.sso import crowd
from config.env import ROOT
from tests.config.stack import Stack


def options(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./run bench sso", description=__doc__)
    parser.add_argument("--people", type=int, default=50, help="who sign in at once")
    parser.add_argument("--slow", type=float, default=2.0, help="seconds that the provider takes for a token")
    return parser.parse_args(words)


def measure_steps(stack: Stack, log: IO[str]) -> None:
    """In a process of its own, with the product's database: what is timed runs where the clock is."""
    done = subprocess.run([sys.executable, "-m", "bench.sso.steps"], cwd=ROOT, env=stack.env, stderr=log)
    if done.returncode != 0:
        raise SystemExit(f"the steps of a sign-in could not be measured; {log.name} says why")


def main(words: list[str]) -> None:
    given = options(words)
    with (
        tempfile.TemporaryDirectory(prefix="servicebase-bench-") as root,
        tempfile.NamedTemporaryFile("w", prefix="servicebase-bench-sso-", suffix=".log", delete=False) as log,
    ):
        stack = Stack(Path(root) / "data", SVC_ALLOW_HTTP_IDP="1", SVC_WEB_PROCESSES="2").start().wait_until_up()
        try:
            measure_steps(stack, log.file)
            crowd.measure(stack, given.people, given.slow)
        finally:
            stack.stop()
            stack.end()
            log.write(stack.output)
    print(f"\nWhat the service logged: {log.name}")
