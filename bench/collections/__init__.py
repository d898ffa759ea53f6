"""Quality and cost of document collections: known questions, and searches among many chunks."""


def main(words: list[str]) -> None:
    # What is measured runs in processes of its own, which must not carry this.
    from bench.collections import run  # noqa: PLC0415

    run.main(words)
