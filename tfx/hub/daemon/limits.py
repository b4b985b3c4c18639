"""What the system lets the hub's process have: descriptors for its connections, no core dump.

Knows nothing of what the descriptors are for.
"""

from __future__ import annotations

import resource

WANTED_FILES = 4_096
KEPT_FILES = 64
"""For the database, the log, the loop: connections never take these."""
_LEAST = 16


def most_connections() -> int:
    """Raise the limit of open files where it is low and may be raised; return what connections get.

    Many systems give a process 1 024 descriptors and let it ask for more.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = WANTED_FILES if hard == resource.RLIM_INFINITY else min(WANTED_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = wanted
    return max(_LEAST, (wanted if soft == resource.RLIM_INFINITY else soft) - KEPT_FILES)


def forbid_core() -> None:
    """Leave no memory image behind: credentials are in it (H-46)."""
    _soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (0, hard))
