"""Chooses memory and disk sizes of the embedded PostgreSQL that fit the machine."""

import os
from pathlib import Path

# Memory limits of a container: cgroup version 2 and 1.
CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def default_sizes(memory_bytes: int, disk_bytes: int) -> dict[str, str]:
    """The size settings for a machine with this memory and data disk.

    >>> default_sizes(memory_bytes=8 * 1024**3, disk_bytes=100 * 1024**3)["shared_buffers"]
    '1024MB'
    >>> default_sizes(memory_bytes=512 * 1024**2, disk_bytes=400 * 1024**2)  # doctest: +NORMALIZE_WHITESPACE
    {'shared_buffers': '128MB', 'effective_cache_size': '256MB', 'work_mem': '4MB', 'maintenance_work_mem': '64MB',
     'max_wal_size': '1024MB', 'min_wal_size': '80MB'}
    """

    def share(total_bytes: int, divisor: int, min_mb: int, max_mb: int) -> str:
        return f"{min(max_mb, max(min_mb, total_bytes // divisor // 1024**2))}MB"

    return {
        # More than 1 GB would cost memory at start, for the descriptors; the page cache of the machine holds the rest.
        "shared_buffers": share(memory_bytes, 4, 128, 1024),
        "effective_cache_size": share(memory_bytes, 2, 128, 1024 * 1024),
        "work_mem": share(memory_bytes, 1024, 4, 32),  # several per connection, and there are 80
        "maintenance_work_mem": share(memory_bytes, 32, 64, 1024),
        # The amount of WAL after which a checkpoint is forced. After a crash, this WAL is replayed, and requests return
        # 503. 1 GB takes about 7 s of CPU, and several times that on a busy machine.
        "max_wal_size": "1024MB",
        # The files that are reused after a checkpoint.
        "min_wal_size": share(disk_bytes, 20, 80, 256),
    }


def available_memory_bytes() -> int:
    """The memory of the machine, or the limit of its container."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in CGROUP_LIMITS:
        try:
            limits.append(int(path.read_text(encoding="ascii")))
        except (OSError, ValueError):  # another version, or "max"
            continue
    return min(limits)
