"""`./run bench soak`: many concurrent callers while each part of the product is killed or restarted in turn."""

from bench.soak import run


def main(argv: list[str]) -> None:
    run.main(argv)
