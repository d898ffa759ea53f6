"""What a request of the Table API costs, beside the same list in idiomatic DRF, `SELECT 1` and our SQL without HTTP."""


def main(words: list[str]) -> None:
    # The web processes load this package for their settings, and must not carry the rest.
    from bench.tableapi import run  # noqa: PLC0415

    run.main(words)
