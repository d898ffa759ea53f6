"""Answers questions by a few rules. It knows no table, column or value, only what the tools say about them."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from tests.agents.agent_calls import Agent, with_client

Entry = dict[str, Any]
QUOTED = re.compile("“([^”]+)”")


class ScriptedAgent:
    def __init__(self, agent: Agent) -> None:
        self.agent = agent

        async def list_tools(client: Any) -> Any:
            return {tool.name: tool for tool in (await client.list_tools()).tools}

        self.tools: dict[str, Any] = with_client(agent.key, list_tools)
        # Patterns of questions, in order, each with the words in the description of the tool that answers them.
        self.rules: list[tuple[str, str, Callable[[str, Callable[..., Any]], Any]]] = [
            (r"which tables", "lists the tables", self.names_of_tables),
            (r"what may i do", "what you may do", self.rights),
            (r"which (values|table|columns)", "describes the columns", self.about_columns),
            (r"how many|which \w+ has the most", "how many there are", self.statistics),
            (r"which \w+ (have|mention|was)", "finds records", self.found_records),
            (r"(what|who) is the", "reads one record", self.column_of_record),
            (r"", "passages of documents that answer a question", self.document),
        ]

    def ask(self, question: str) -> Any:
        pattern_words = question.lower()
        _, words, answer = next(rule for rule in self.rules if re.search(rule[0], pattern_words))
        return answer(question, self.tool(words))

    def tool(self, words: str) -> Callable[..., Any]:
        (name,) = (name for name, tool in self.tools.items() if words in tool.description.lower().replace("\n", " "))
        call: Callable[..., Any] = getattr(self.agent, name)
        return call

    # Tables and columns.

    def tables(self) -> list[Entry]:
        tables: list[Entry] = self.tool("lists the tables")()["tables"]
        return tables

    def columns(self, table: str) -> list[Entry]:
        columns: list[Entry] = self.tool("describes the columns")(table=table)["columns"]
        # The longest labels first, because "state" also occurs in "approval state".
        return sorted(columns, key=lambda column: -len(column["label"]))

    def table_in(self, question: str) -> str:
        """The table that the question names last, or else the one with the most columns."""
        tables = self.tables()
        words = re.findall(r"\w+", QUOTED.sub("", question).lower())
        # A column can have the name of a table, as in "the service of a task".
        matches = [table for table in tables for word in words if word.rstrip("s") == table["label"].lower()]
        candidates = [table["name"] for table in matches or tables]
        return max(candidates, key=lambda name: len(self.columns(name)))

    def column_in(self, question: str, columns: list[Entry]) -> Entry:
        return next(column for column in columns if mentions(question, column["label"]))

    def conditions(self, question: str, columns: list[Entry]) -> Iterator[str]:
        rest = question
        for column in columns:
            name, label = column["name"], column["label"]
            if not mentions(rest, label):
                continue
            rest = re.sub(label, "", rest, flags=re.IGNORECASE)
            quoted = QUOTED.search(question)
            if re.search(f"without (an? )?{label}", question, re.IGNORECASE):
                yield f"{name}ISEMPTY"
            elif column["type"] == "boolean":
                yield f"{name}={'false' if f'not {label}'.lower() in question.lower() else 'true'}"
            elif column["type"] == "reference" and quoted:
                yield f"{name}.{self.display_column(column['references'])}={quoted[1]}"
            for value, choice in column.get("choices", {}).items():
                if mentions(rest, choice):
                    yield f"{name}={value}"
        if days := re.search(r"(\w+) in the last (\d+) days", question):
            yield f"{time_column(columns, days[1])}RELATIVEGE@day@ago@{days[2]}"

    def display_column(self, table: str) -> str:
        return str(next(column["name"] for column in self.columns(table) if column.get("is_display_value")))

    # One method for each kind of question.

    def names_of_tables(self, question: str, call: Callable[..., Any]) -> set[str]:
        return {table["name"] for table in call()["tables"]}

    def rights(self, question: str, call: Callable[..., Any]) -> list[str]:
        table = self.table_in(question)
        return next(list(entry["you_may"]) for entry in call()["tables"] if entry["name"] == table)

    def about_columns(self, question: str, call: Callable[..., Any]) -> Any:
        columns = self.columns(self.table_in(question))
        if "mandatory" in question:
            return {column["name"] for column in columns if column.get("mandatory")}
        column = self.column_in(question, columns)
        return column["references"] if "table" in question else list(column["choices"].values())

    def statistics(self, question: str, call: Callable[..., Any]) -> Any:
        table = self.table_in(question)
        columns = self.columns(table)
        if most := re.search(r"which (\w+) has the most", question.lower()):
            column = self.column_in(most[1], columns)["name"]
            (group,) = call(table=table, group_by=[column], order_by=["-count"], limit=1)["groups"]
            return displayed(group["group"][column])
        if "different" in question:
            column = self.column_in(re.sub(r"s\b", "", question), columns)["name"]
            return call(table=table, count_distinct=[column])["groups"][0]["count_distinct"][column]
        return call(table=table, query="^".join(self.conditions(question, columns)))["groups"][0]["count"]

    def found_records(self, question: str, call: Callable[..., Any]) -> set[Any]:
        table = self.table_in(question)
        columns = self.columns(table)
        title = self.title_column(columns)
        if "mention" in question:
            query = f"sys_idARE{QUOTED.findall(question)[0]}"
        elif first := re.search(r"was (\w+) first", question):
            query = f"ORDERBY{time_column(columns, first[1])}"
        else:
            query = "^".join(self.conditions(question, columns))
        limit = {"limit": 1} if "first" in question else {}
        return {record[title] for record in call(table=table, query=query, fields=[title], **limit)["records"]}

    def title_column(self, columns: list[Entry]) -> str:
        """The column for a short text about the record."""
        titles = (column for column in columns if "short" in column["label"].lower() or column["name"] == "login")
        return str(next(titles)["name"])

    def column_of_record(self, question: str, call: Callable[..., Any]) -> Any:
        table = self.table_in(question)
        columns = self.columns(table)
        title = self.title_column(columns)
        query = f"{title}={QUOTED.findall(question)[0]}"
        (found,) = self.tool("finds records")(table=table, query=query)["records"]
        column = self.column_in(question.partition(" of ")[0], columns)["name"]
        return displayed(call(table=table, sys_id=found["sys_id"])["record"][column])

    def document(self, question: str, call: Callable[..., Any]) -> set[str]:
        """The documents that it would cite, after it has read on in the best one."""
        passages = call(query=question, limit=3)["passages"]
        assert all(passage["link"].startswith("http") for passage in passages)
        more = self.tool("with the text before and after")(passage=passages[0]["passage"], before=0, after=1)
        assert more["text"].startswith(passages[0]["text"][:20]) and more["document"] == passages[0]["document"]
        return {passage["document"] for passage in passages}


def mentions(text: str, words: str) -> bool:
    return re.search(rf"\b{re.escape(words)}\b", QUOTED.sub("", text), re.IGNORECASE) is not None


def displayed(value: Any) -> Any:
    return value["display_value"] if isinstance(value, dict) else value


def time_column(columns: list[Entry], verb: str) -> str:
    times = (column for column in columns if column["type"] == "datetime")
    return str(next(column["name"] for column in times if column["label"].lower().startswith(verb)))
