"""Reads question sets in the format of SQuAD: documents, and questions with the document and text that answer them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Question:
    text: str
    doc_id: str
    answers: tuple[str, ...]


@dataclass(frozen=True)
class QuestionSet:
    """Each paragraph of the file is a document."""

    name: str
    documents: dict[str, str]
    questions: Sequence[Question]
    # Long articles, in which the right passage is to be found and not only the article.
    is_long: bool = False


def sets(folder: Path, wanted: Sequence[str] = (), most: int = 0) -> list[QuestionSet]:
    files = {path.name.split(".")[1]: path for path in sorted(folder.glob("xquad/xquad.*.json"))}
    for path in folder.glob("covidqa/*.json"):
        files["covidqa"] = path
    if not files:
        raise SystemExit(f"no question sets in {folder}")
    return [read(name, path, most) for name, path in files.items() if not wanted or name in wanted]


def read(name: str, path: Path, most: int = 0) -> QuestionSet:
    paragraphs = [each for article in json.loads(path.read_text())["data"] for each in article["paragraphs"]]
    documents = {f"{name}-{number:05}": each["context"] for number, each in enumerate(paragraphs)}
    questions = [
        Question(asked["question"], doc_id, tuple(each["text"] for each in asked["answers"]))
        for doc_id, paragraph in zip(documents, paragraphs, strict=True)
        for asked in paragraph["qas"]
        if asked["answers"]
    ]
    step = max(1, len(questions) // most) if most else 1
    return QuestionSet(name, documents, questions[::step], is_long=name == "covidqa")
