"""Quality and cost of document collections: questions with known answers, and searches among many chunks."""


def main(argv: list[str]) -> None:
    # Imported late: the measurements run in separate processes, which must not load `run`.
    from bench.collections import run  # noqa: PLC0415

    run.main(argv)
