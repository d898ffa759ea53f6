"""`./run bench sso`: a sign-in by its steps, a refresh of many certificates, fifty people and a slow provider."""

from bench.sso import run


def main(words: list[str]) -> None:
    run.main(words)
