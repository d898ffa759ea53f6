"""Runs one command as an ordinary user on behalf of root, because PostgreSQL refuses to run as root.

In a user namespace, the command has another user ID while its files stay root's: no account is created, no folder
changes its owner, and parent folders need not be open to others. Started as a script: unprivileged.py COMMAND ...
"""

import ctypes
import os
import sys

CLONE_NEWUSER = 0x10000000
USER_ID = 1000


def command_prefix() -> list[str]:
    """The words before a command: none, unless this process runs as root."""
    return [sys.executable, "-I", "-S", __file__] if os.geteuid() == 0 else []


def become_ordinary_user() -> None:
    """Enter a user namespace in which this process is an ordinary user."""
    uid, gid = os.geteuid(), os.getegid()
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    for name, line in (("setgroups", "deny"), ("uid_map", f"{USER_ID} {uid} 1"), ("gid_map", f"{USER_ID} {gid} 1")):
        with open(f"/proc/self/{name}", "w", encoding="ascii") as target:
            target.write(line)


if __name__ == "__main__":
    try:
        become_ordinary_user()
    except (OSError, AttributeError) as error:
        sys.exit(f"PostgreSQL cannot run as root, and no user namespace could be created on this machine ({error}).")
    os.execv(sys.argv[1], sys.argv[1:])
