"""Each library from npm is stored as it was published, with its name, version and licence."""

import hashlib
import re
from pathlib import Path

import pytest

from config.env import ROOT

FOLDER = ROOT / "templates/static/vendor"
LIBRARIES = sorted(FOLDER.iterdir())


def test_there_are_libraries() -> None:
    assert LIBRARIES


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda library: library.name)
def test_the_files_of_a_library_are_those_that_its_readme_lists(library: Path) -> None:
    readme = (library / "README.md").read_text()
    hashes = dict(re.findall(r"^\| (\S+) \| \S+ \| ([0-9a-f]{64}) \|$", readme, re.M))
    files = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in library.iterdir()}
    del files["README.md"]
    assert hashes == files
    version = re.search(r"^\| Version \| (\S+) \|$", readme, re.M)
    assert version is not None and re.search(r"^\| Licence \| .+ \|$", readme, re.M)
    assert f"/{library.name}-{version[1]}.tgz" in readme
