"""The trees of `tfx task` and `tfx lease`; each command imports its feature when it runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import typer

from tfx.cli.context import Command, new_app
from tfx.cli.work import board, changes, leases, reviews, standing, tasks

TASK_SUMMARY = """Work on the board of a workspace: tasks for agents and for you.

A workspace is a git repository with all its worktrees, else a directory. Inside an agent these
commands speak for it, elsewhere for you; --room names another workspace.
"""
LEASE_SUMMARY = """Who holds a task, who reviews it, what stands still.

A lease is the right to change a task. Its id and its epoch tell your life from a former one: what
you do after you lost it is refused, and `tfx lease status --lease ID` tells what became of it.
"""
REVIEW_SUMMARY = "Take the review of another's task, or end it."

EXAMPLES: Final = {
    "task add": "tfx task add 'Parse week dates' --detail - --priority 7 --accept",
    "task list": "tfx task list --ready",
    "task show": "tfx task show 3",
    "task update": "tfx task update 3 --status in_review --lease ID --epoch 0",
    "task attach": "tfx task attach pr https://example.org/pr/12 --task 3",
    "task next": "tfx task next --claim --ttl 4h",
    "task delete": "tfx task delete 3 --reason 'a duplicate of 2'",
    "task board": "tfx task board --watch",
    "lease claim": "tfx lease claim 3 --ttl 4h",
    "lease renew": "tfx lease renew 3 --ttl 4h",
    "lease release": "tfx lease release 3 --reason 'needs a database'",
    "lease handoff": "tfx lease handoff 3 --to codex.api",
    "lease status": "tfx lease status --mine",
    "lease beat": "tfx lease beat",
    "lease force-release": "tfx lease force-release 3 --reason 'its agent is gone'",
    "lease lock": "tfx lease lock 3 --reason manager_pause --note 'wait for the design'",
    "lease unlock": "tfx lease unlock 3",
    "lease review claim": "tfx lease review claim 3",
    "lease review release": "tfx lease review release 3 --reason 'looks right'",
}

task_app = new_app("task", TASK_SUMMARY)
lease_app = new_app("lease", LEASE_SUMMARY)
review_app = new_app("review", REVIEW_SUMMARY)


def _add(app: typer.Typer, path: str, command: Callable[..., None]) -> None:
    name = path.rpartition(" ")[2]
    app.command(name, cls=Command, epilog=f"Example: {EXAMPLES[path]}")(command)


def _add_commands() -> None:
    _add(task_app, "task add", tasks.add)
    _add(task_app, "task list", tasks.list_)
    _add(task_app, "task show", tasks.show)
    _add(task_app, "task next", tasks.next_)
    _add(task_app, "task update", changes.update)
    _add(task_app, "task attach", changes.attach)
    _add(task_app, "task board", board.board)
    _add(task_app, "task delete", tasks.delete)
    _add(lease_app, "lease claim", leases.claim)
    _add(lease_app, "lease renew", leases.renew)
    _add(lease_app, "lease release", leases.release)
    _add(lease_app, "lease handoff", leases.handoff)
    _add(lease_app, "lease status", standing.status)
    _add(lease_app, "lease beat", standing.beat)
    lease_app.add_typer(review_app, name="review")
    _add(review_app, "lease review claim", reviews.claim)
    _add(review_app, "lease review release", reviews.release)
    _add(lease_app, "lease force-release", leases.force_release)
    _add(lease_app, "lease lock", reviews.lock)
    _add(lease_app, "lease unlock", reviews.unlock)


_add_commands()
