"""Leaks that can be switched on, each with its abuse cases. The tests must detect all of them.

switch             registers leaks and switches them on
columns, records   reads that show too much
names              hidden columns that differ from missing ones
writes             writes that reveal or change too much
state              leaks through stored responses, deferred records and the deletion log
"""

from tests.tableapi.noninterference.leaks import columns, names, records, state, writes
from tests.tableapi.noninterference.leaks.switch import LEAKS, active_leak

__all__ = ["LEAKS", "active_leak", "columns", "names", "records", "state", "writes"]
