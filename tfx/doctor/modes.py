"""Who else may write a file: the modes that let another user choose what an agent runs.

Judges owner and mode alone; knows no check and changes nothing.
"""

from __future__ import annotations

import grp
import os
import pwd
import stat

_OTHERS = 0o002
_GROUP = 0o020


def writers(info: os.stat_result) -> str:
    """Say who but its owner may write a file or directory, or nothing.

    The group of a user alone (as `useradd` makes it) and a sticky directory let nobody in.
    """
    mode = stat.S_IMODE(info.st_mode)
    if stat.S_ISDIR(info.st_mode) and mode & stat.S_ISVTX:
        return ""
    if mode & _OTHERS:
        return "everybody"
    return "its group" if mode & _GROUP and not _is_private(info) else ""


def _is_private(info: os.stat_result) -> bool:
    try:
        owner, group = pwd.getpwuid(info.st_uid), grp.getgrgid(info.st_gid)
    except KeyError:
        return False
    return group.gr_name == owner.pw_name and not set(group.gr_mem) - {owner.pw_name}
