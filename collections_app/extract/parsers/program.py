"""The program that extracts one file in the sandbox (`system.sandbox.child`). It imports no other product code.

Arguments: the parser's name, the limits as JSON, and the folders of the installed packages. The result is JSON.
"""

import codecs
import importlib
import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# The name under which the modules of this folder are imported: the product's packages do not exist here.
PACKAGE_NAME = "extract_parsers"
# Optional dependencies that a library does not need here; importing them takes half of its start-up time.
UNWANTED_PACKAGES = {"xlsx": ("numpy", "PIL", "defusedxml")}
# Python opens the file of a codec at its first use. The libraries use these.
CODECS = ("utf-8", "ascii", "latin-1", "cp437", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "raw-unicode-escape")


def load_module(name: str) -> Any:
    """Imports a module of this folder, which is never added to `sys.path`."""
    if PACKAGE_NAME not in sys.modules:
        folder = Path(__file__).parent
        spec = importlib.util.spec_from_file_location(
            PACKAGE_NAME, folder / "__init__.py", submodule_search_locations=[str(folder)]
        )
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[PACKAGE_NAME] = module
        spec.loader.exec_module(module)
    return importlib.import_module(f"{PACKAGE_NAME}.{name}")


def run_parser(parser: Any, data: bytes, limits: dict[str, Any]) -> dict[str, Any]:
    """Returns the parser's result or error, but never the error text of a library, because it may quote the file."""
    failures, text_writer = load_module("common.failures"), load_module("common.text_writer")
    writer = text_writer.TextWriter(limits["max_characters"])
    try:
        parser.parse(data, writer, limits)
        result: dict[str, Any] = writer.result()
        return result
    except failures.UnreadableFile as error:
        return {"failed": error.code, "message": error.message}
    except MemoryError:
        return {"failed": "limit_memory", "message": "Reading the file required too much memory."}
    except Exception as error:  # a library may raise anything for a file that it cannot read
        is_too_deep = isinstance(error, RecursionError) or "Excessive depth" in str(error)
        return {"failed": "damaged", "message": failures.TOO_DEEP_MESSAGE if is_too_deep else failures.DAMAGED_MESSAGE}


def prepare(arguments: list[str]) -> Callable[[bytes], bytes]:
    """Returns the function to run. Imports everything that it may need, because no file can be opened later."""
    name, limits_json, *package_folders = arguments
    sys.path += package_folders
    for package_name in UNWANTED_PACKAGES.get(name, ()):
        sys.modules[package_name] = None  # type: ignore[assignment]  # makes its import fail
    parser = load_module(f"formats.{name}")
    load_module("common.text_writer")
    limits = json.loads(limits_json)
    parser.preload()
    for encoding in CODECS:
        codecs.lookup(encoding)
    return lambda data: json.dumps(run_parser(parser, data, limits), ensure_ascii=False).encode()
