"""`./run bench NAME`: runs the module or package with this name."""

import importlib
import sys
from pathlib import Path

BENCH_FOLDER = Path(__file__).parent
MODULES = [*BENCH_FOLDER.glob("[a-z]*.py"), *(file.parent for file in BENCH_FOLDER.glob("*/__init__.py"))]
BENCHMARK_NAMES = sorted(path.stem for path in MODULES)


def main() -> int:
    if len(sys.argv) < 2 or sys.argv[1] not in BENCHMARK_NAMES:
        print(f"Usage: ./run bench NAME, one of: {', '.join(BENCHMARK_NAMES)}")
        return 2
    importlib.import_module(f"bench.{sys.argv[1]}").main(sys.argv[2:])
    return 0


if __name__ == "__main__":
    sys.exit(main())
