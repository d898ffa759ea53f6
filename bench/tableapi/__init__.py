"""CPU of a request of the Table API, compared with idiomatic DRF or with an earlier commit."""


def main(words: list[str]) -> None:
    # The web processes load this package for their settings, and must not carry the rest.
    from bench.tableapi import run  # noqa: PLC0415

    run.main(words)
