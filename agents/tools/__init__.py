"""The tools, by family. Each calls the same functions as the endpoints and pages, as the owner of the key."""

from agents.tools import documents, records, tables
from agents.tools.calls import call
from agents.tools.registry import TOOLS

__all__ = ["TOOLS", "call", "documents", "records", "tables"]
