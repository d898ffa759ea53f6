"""In charge of one extraction: a program of its own, started and, when it takes too long, killed by the product.

Arguments: the folders of the packages, then the parser's name. Standard input: the limits as one line of JSON, then the
file. Standard output: the answer as JSON behind its length in eight bytes. It imports nothing of the product.
"""

from __future__ import annotations

import codecs
import importlib
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

# How its own modules are called here, where the product's packages do not exist.
PACKAGE = "extract_parsers"
# What a library takes along when it is there, and needs for nothing that is read here. Half of its start.
LEFT_OUT = {"xlsx": ("numpy", "PIL", "defusedxml")}
# Codecs are files that Python opens when they are first asked for. These are what libraries use inside.
CODECS = ("utf-8", "ascii", "latin-1", "cp437", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "raw-unicode-escape")


def load(name: str) -> Any:
    """A module of this folder. The folder itself never comes into the path of imports."""
    if PACKAGE not in sys.modules:
        folder = Path(__file__).parent
        found = importlib.util.spec_from_file_location(
            PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert found is not None and found.loader is not None
        module = importlib.util.module_from_spec(found)
        sys.modules[PACKAGE] = module
        found.loader.exec_module(module)
    return importlib.import_module(f"{PACKAGE}.{name}")


def answer(parser: Any, data: bytes, limits: dict[str, Any]) -> dict[str, Any]:
    """What the parser finds, or why nothing. The text of a library's error stays here: it may quote the file."""
    failures, text_writer = load("common.failures"), load("common.text_writer")
    text = text_writer.TextWriter(limits["max_characters"])
    try:
        parser.parse(data, text, limits)
        made: dict[str, Any] = text.answer()
        return made
    except failures.ParserRefused as error:
        return {"failed": error.code, "message": error.message}
    except MemoryError:
        return {"failed": "limit_memory", "message": "Reading the file needs too much memory."}
    except Exception:  # whatever a library throws about a file that it does not understand
        return {"failed": "damaged", "message": failures.DAMAGED}


def main() -> None:
    *packages, name = sys.argv[1:]
    sys.path += packages
    for package in LEFT_OUT.get(name, ()):
        sys.modules[package] = None  # type: ignore[assignment]  # so that importing it fails
    parser = load(f"formats.{name}")
    confinement = load("confinement")
    load("common.text_writer")
    limits = json.loads(sys.stdin.buffer.readline())
    data = sys.stdin.buffer.read()
    parser.prepare()
    for encoding in CODECS:
        codecs.lookup(encoding)
    confinement.confine(limits)
    try:
        out = json.dumps(answer(parser, data, limits), ensure_ascii=False).encode()
    except MemoryError:
        sys.exit(confinement.OUT_OF_MEMORY)
    sys.stdout.buffer.write(len(out).to_bytes(8, "big"))
    sys.stdout.buffer.write(out)
    sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
