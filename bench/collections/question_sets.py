"""Reads question sets in the format of SQuAD: documents, and questions with the document and text that answer them."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

# For measurements of cost, which use one language.
ENGLISH_SETS = "en,covidqa"
SENTENCE_END = re.compile(r"(?<=[.!?])\s+")


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
    # For long articles a search must find the right passage, not only the article.
    is_long: bool = False


def read_question_sets(folder: Path, names: Sequence[str] = (), max_questions: int = 0) -> list[QuestionSet]:
    files = {path.name.split(".")[1]: path for path in sorted(folder.glob("xquad/xquad.*.json"))}
    for path in folder.glob("covidqa/*.json"):
        files["covidqa"] = path
    if not files:
        raise SystemExit(f"no question sets in {folder}")
    question_sets = {name: read_question_set(name, path, max_questions) for name, path in files.items()}
    languages = [question_set for question_set in question_sets.values() if not question_set.is_long]
    if len(languages) > 1:
        question_sets["mixed"] = mix_question_sets(languages)
    if not names:
        return list(question_sets.values())
    question_sets |= {f"{name}-sentences": split_into_sentences(question_sets[name]) for name in list(question_sets)}
    return [question_set for name, question_set in question_sets.items() if name in names]


def mix_question_sets(question_sets: Sequence[QuestionSet]) -> QuestionSet:
    """One collection in several languages, with a share of the questions of each."""
    documents = {doc_id: text for question_set in question_sets for doc_id, text in question_set.documents.items()}
    questions = [question for each in question_sets for question in each.questions[:: len(question_sets)]]
    return QuestionSet("mixed", documents, questions)


def split_into_sentences(question_set: QuestionSet) -> QuestionSet:
    """Each sentence is a document, as short as the entries of a FAQ. The right one is the first with an answer."""
    name = f"{question_set.name}-sentences"
    sentences = {doc_id: SENTENCE_END.split(text) for doc_id, text in question_set.documents.items()}
    documents = {f"{doc_id}-{number}": text for doc_id in sentences for number, text in enumerate(sentences[doc_id])}
    questions = []
    for question in question_set.questions:
        numbers = [
            number
            for number, sentence in enumerate(sentences[question.doc_id])
            if any(answer in sentence for answer in question.answers)
        ]
        if numbers:
            questions.append(replace(question, doc_id=f"{question.doc_id}-{numbers[0]}"))
    return QuestionSet(name, {doc_id: text for doc_id, text in documents.items() if text}, questions)


def read_question_set(name: str, path: Path, max_questions: int = 0) -> QuestionSet:
    paragraphs = [paragraph for article in json.loads(path.read_text())["data"] for paragraph in article["paragraphs"]]
    documents = {f"{name}-{number:05}": paragraph["context"] for number, paragraph in enumerate(paragraphs)}
    questions = [
        Question(entry["question"], doc_id, tuple(answer["text"] for answer in entry["answers"]))
        for doc_id, paragraph in zip(documents, paragraphs, strict=True)
        for entry in paragraph["qas"]
        if entry["answers"]
    ]
    step = max(1, len(questions) // max_questions) if max_questions else 1
    return QuestionSet(name, documents, questions[::step], is_long=name == "covidqa")
