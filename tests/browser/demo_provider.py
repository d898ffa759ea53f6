"""`./run demo-idp` in a terminal, next to the running product."""

import re
import signal
import subprocess
import sys

from config.env import ROOT
from tests.config.stack import free_port


class Demo:
    """What it says is what somebody reads and types."""

    def __init__(self, environment: dict[str, str]) -> None:
        command = [sys.executable, "-m", "tests.providers.demo", "--port", str(free_port())]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self.process.stdout
        self.text = ""
        while "Stop with Ctrl-C" not in self.text:
            line = self.process.stdout.readline()
            assert line, self.text
            self.text += line

    def field(self, name: str) -> str:
        match = re.search(rf"^ +{re.escape(name)}  +(.+)$", self.text, re.MULTILINE)
        assert match is not None, self.text
        return match[1]

    @property
    def password(self) -> str:
        match = re.search(r"password (\w+):", self.text)
        assert match is not None, self.text
        return match[1]

    def stop(self) -> int:
        self.process.send_signal(signal.SIGINT)
        code = self.process.wait(20)
        assert self.process.stdout
        self.process.stdout.close()
        return code
