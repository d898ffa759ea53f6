"""`./run demo-idp` in a terminal, next to the running product."""

import re
import signal
import subprocess
import sys

from config.env import ROOT
from tests.config.stack import free_port


class DemoProvider:
    """Its output contains the values that a user enters into the form of a connection."""

    def __init__(self, environment: dict[str, str]) -> None:
        command = [sys.executable, "-m", "tests.providers.demo", "--port", str(free_port())]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.process.stdout
        self.output = ""
        while "Stop with Ctrl-C" not in self.output:
            line = self.process.stdout.readline()
            assert line, self.output
            self.output += line

    def printed_value(self, name: str) -> str:
        match = re.search(rf"^ +{re.escape(name)}  +(.+)$", self.output, re.MULTILINE)
        assert match is not None, self.output
        return match[1]

    @property
    def password(self) -> str:
        match = re.search(r"password (\w+):", self.output)
        assert match is not None, self.output
        return match[1]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        exit_code = self.process.wait(20)
        assert self.process.stdout
        self.process.stdout.close()
        return exit_code
