"""Faults that can be switched on, each under the abuse cases that it stands for. All of them must be found.

switch             the list of them
columns, records   what reads may show
names              a hidden column that is not like a missing one
writes             what writes may tell, and what they may do
state              what requests leave behind
"""

from tests.tableapi.noninterference.leaks import columns, names, records, state, writes
from tests.tableapi.noninterference.leaks.switch import LEAKS, active_leak

__all__ = ["LEAKS", "active_leak", "columns", "names", "records", "state", "writes"]
