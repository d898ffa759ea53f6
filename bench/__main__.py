"""`./run bench NAME`: runs the module or package with this name."""

import importlib
import sys
from pathlib import Path

HERE = Path(__file__).parent
NAMES = sorted(path.stem for path in [*HERE.glob("[a-z]*.py"), *(found.parent for found in HERE.glob("*/__init__.py"))])


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] not in NAMES:
        print(f"Usage: ./run bench NAME, one of: {', '.join(NAMES)}")
        return 2
    importlib.import_module(f"bench.{sys.argv[1]}").main(sys.argv[2:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
