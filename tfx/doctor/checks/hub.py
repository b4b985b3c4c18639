"""The hub's checks: as a process, at its port, its credentials, its queues, its database.

Names and explains them; what each one looks at is in the modules beside it.
"""

from __future__ import annotations

from tfx.doctor.checks.backups import backups
from tfx.doctor.checks.database import database_file
from tfx.doctor.checks.hub_access import credentials, port
from tfx.doctor.checks.hub_busy import busy
from tfx.doctor.checks.hub_process import health, state_file
from tfx.doctor.checks.hub_queues import queues
from tfx.doctor.checks.hub_work import work
from tfx.doctor.checks.soundness import agreement, integrity
from tfx.doctor.model import Check, Explanation, FixClass, Group


def _explained(what: str, why: str, by_hand: str) -> Explanation:
    return Explanation(what, why, "The lock, the state file and one request to our hub.", by_hand)


CHECKS = (
    Check(
        "hub.health",
        Group.HUB,
        "does the hub run, in this version",
        _explained(
            "Whether the hub holds its lock, answers as the instance that its state file names,"
            " and runs the version that is installed.",
            "A stopped hub is no failure; one that holds the lock without answering is.",
            "`tfx hub start`, `tfx hub stop`, `tfx hub restart`, `tfx hub logs`.",
        ),
        health,
        least_s=15,
    ),
    Check(
        "hub.pid",
        Group.HUB,
        "state file, process and lock belong together",
        _explained(
            "Whether the process in the state file is the one that holds the lock, told by pid,"
            " start time and boot.",
            "A number of a dead process may be that of a stranger by now.",
            "The next start replaces a file that was left behind.",
        ),
        state_file,
        least_s=15,
        fix=FixClass.AUTO,
    ),
    Check(
        "hub.port",
        Group.HUB,
        "who has the hub's port",
        _explained(
            "Whether a stranger listens on the port that the hub prefers or was told to use.",
            "On the default port the hub takes a free one instead; a port you asked for is strict.",
            "End that program yourself, or set another `hub.port` in config.toml.",
        ),
        port,
        least_s=15,
    ),
    Check(
        "hub.tokens",
        Group.HUB,
        "credentials are private",
        Explanation(
            "Whether the bus token and the operator credential are yours and mode 0600.",
            "Whoever reads them can speak for your agents or answer for you.",
            "Owner and mode of the two files; never their content.",
            "`chmod 600`; `tfx hub token rotate` if somebody may have read them.",
        ),
        credentials,
        least_s=15,
        fix=FixClass.AUTO,
    ),
    Check(
        "hub.queues",
        Group.HUB,
        "questions, dead letters and silent agents",
        _explained(
            "How many questions wait for you, how many messages died, which agents went silent.",
            "Agents wait for answers until their deadline.",
            "`tfx hub human list`, `tfx hub dead list`, `tfx hub agents`.",
        ),
        queues,
        least_s=30,
    ),
    Check(
        "hub.work",
        Group.HUB,
        "tasks that stand still: stuck leases, lost assignees, locks",
        Explanation(
            "Whether a task is held by an agent that is gone or was silent for long (4 hours while"
            " its process lives, 1 hour where that cannot be known), belongs to one that is retired"
            " or gone, or is locked for over a day.",
            "Nobody else may claim such a task until the hub or you free it.",
            "Leases, tasks and locks in the hub's database, read-only; the processes of their"
            " holders; of a running hub whom it heard when.",
            "`tfx lease force-release TASK --reason TEXT`, `tfx lease unlock TASK`.",
        ),
        work,
        least_s=30,
    ),
    Check(
        "hub.busy",
        Group.HUB,
        "agents kept busy without a word, invocations that are gone",
        Explanation(
            "Whether whoever keeps an agent busy was silent for 8 hours, which invocations are"
            " recorded as running though their process is gone, and how many were lost in a day.",
            "A process that lives keeps its agent however silent it is: only you can end that.",
            "Holders and invocations in the hub's database, read-only; their processes; of a"
            " running hub whom it heard when.",
            "`tfx hub busy AGENT`, `tfx hub agents free AGENT --force`,"
            " `tfx hub invocations probe`.",
        ),
        busy,
        least_s=30,
    ),
    Check(
        "db.file",
        Group.HUB,
        "the database file and its place",
        Explanation(
            "Modes, owner, links, kind of file system, free space, the size of the write-ahead"
            " log and who holds it.",
            "On a network file system locks do not hold; a full disk stops the hub.",
            "stat, statvfs, the table of mounts; no byte of the database.",
            "Move the file to a local disk (`TFX_HUB_DB`), make room, `tfx hub restart`.",
        ),
        database_file,
        least_s=15,
        fix=FixClass.AUTO,
    ),
    Check(
        "db.integrity",
        Group.HUB,
        "the database is sound and of this schema",
        Explanation(
            "SQLite's own check (the full one with --deep), foreign keys, and the stamp: schema"
            " version, schema hash, fold version.",
            "A damaged or foreign schema is found before the hub refuses it.",
            "The database, read-only; immutable when no write-ahead log lies there.",
            "Back the file up first. `tfx upgrade` for an older schema, `tfx backup list` else.",
        ),
        integrity,
        slow=True,
        least_s=300,
    ),
    Check(
        "db.backups",
        Group.HUB,
        "backups of the database: whole, and not too old",
        Explanation(
            "Whether each backup is finished and as long as its manifest says (with --deep: read"
            " from its digest to its last index), private, and how old the newest one is.",
            "Only a backup that still verifies brings messages back after damage or a mistake.",
            "Manifests, sizes and modes in tfx's own backup directory and in those that you named"
            " by --backup-dir; the number and the last time of messages in the database.",
            "`tfx backup create`, `tfx backup verify`, `tfx backup prune`.",
        ),
        backups,
        slow=True,
        least_s=600,
        fix=FixClass.AUTO,
    ),
    Check(
        "db.log",
        Group.HUB,
        "the log and what is folded from it agree (--deep)",
        Explanation(
            "Whether every row that was folded from the event log is as the log says.",
            "The log is the truth; a row that differs is a bug or damage.",
            "The whole database, read-only, folded into a private scratch file.",
            "`tfx hub rebuild` folds them again; back the file up first.",
        ),
        agreement,
        slow=True,
        deep=True,
        least_s=600,
    ),
)
