"""CPU time of Table API requests, compared with idiomatic DRF or with an earlier commit."""


def main(argv: list[str]) -> None:
    # Imported late: the web processes load this package for their settings, and must not load `run`.
    from bench.tableapi import run  # noqa: PLC0415

    run.main(argv)
