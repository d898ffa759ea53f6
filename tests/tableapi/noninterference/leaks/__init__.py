"""Leaks that can be switched on, each with its abuse cases. The tests must detect all of them.

switch             the list of leaks
columns, records   what reads may show
names              hidden columns that differ from missing ones
writes             what writes may reveal and change
state              stored responses, deferred records, the deletion log
"""

from tests.tableapi.noninterference.leaks import columns, names, records, state, writes
from tests.tableapi.noninterference.leaks.switch import LEAKS, active_leak

__all__ = ["LEAKS", "active_leak", "columns", "names", "records", "state", "writes"]
