"""How well and how fast collections answer: known questions through the real rooms, and many chunks by the clock."""


def main(words: list[str]) -> None:
    # What is measured runs in processes of its own, which must not carry this.
    from bench.collections import run  # noqa: PLC0415

    run.main(words)
