"""`tfx upgrade`: its options, its question, its progress and its receipt for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import finish

if TYPE_CHECKING:
    from pathlib import Path

    from tfx.cli.output import Screen
    from tfx.core.paths import Paths
    from tfx.result import Result
    from tfx.upgrade.model import Receipt

EPILOG = """Offline: the hub must be stopped, or say --stop-hub. Nothing is changed before a backup
lies verified on the disk; a run that is killed leaves the old or the new database, never a part,
and running it again finds out which."""

StopHub = Annotated[
    bool,
    typer.Option("--stop-hub", help="Stop a running hub first and start it again afterwards."),
]
BackupDir = Annotated[
    str | None,
    typer.Option("--backup-dir", metavar="DIR", help="Keep backups in DIR (made when missing)."),
]
Database = Annotated[
    str | None,
    typer.Option("--db", metavar="PATH", help="Another database than the hub's own."),
]


def upgrade(
    ctx: typer.Context,
    backup_dir: BackupDir = None,
    db: Database = None,
    adopt: Annotated[
        str | None,
        typer.Option(
            "--adopt",
            metavar="auto|PATH",
            help="Take over a triflux database; auto is ~/.claude/cache/tfx-hub/state.db.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Do it all on a copy, tell what happens, delete the copy."),
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Only look: schema, rows, space. Write nothing.")
    ] = False,
    stop_hub: StopHub = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Bring the hub's database to this version, behind a backup.

    Running it on a current database changes nothing. With --adopt a triflux database is copied,
    upgraded and put in the hub's place; the original stays as it is.
    """

    def feature(screen: Screen, paths: Paths) -> Result[Receipt]:
        from tfx.cli.progress import Bar
        from tfx.upgrade import orders

        options = orders.Options(
            backup_dir=absolute(backup_dir),
            database=absolute(db),
            adopt=adopt if adopt in {None, orders.AUTO} else str(absolute(adopt)),
            dry_run=dry_run,
            check=check,
            stop_hub=stop_hub,
        )
        with Bar(screen) as bar:

            def ask(found: Receipt) -> bool:
                bar.pause()
                return screen.ask(_question(found))

            wanted = ask if screen.interactive and not yes else None
            return orders.upgrade(paths, options, bar.told, wanted)

    finish(ctx, "upgrade", feature, show_receipt)


def absolute(text: str | None) -> Path | None:
    """Return a path from the working directory; nothing behind the CLI sees a relative one."""
    from pathlib import Path

    return None if text is None else Path.cwd() / text


def _question(found: Receipt) -> str:
    size = (found.bytes_before or 0) / 1e6
    return (
        f"Upgrade {found.database} ({size:.1f} MB) from schema {found.from_version} "
        f"to {found.to_version}? A verified backup is made first."
    )


def show_receipt(screen: Screen, data: Receipt) -> None:
    """Show what a run did."""
    sign, text = _headline(data)
    screen.line(text, sign=sign)
    if data.finished_earlier_run:
        screen.line("an earlier run that was cut off is finished now", sign="info")
    _show_rows(screen, data)
    _show_adoption(screen, data)
    if data.backup_directory is not None:
        screen.line(f"backup: {data.backup_directory}", sign="info")
    for note in data.notes:
        screen.line(note, sign="info")
    if screen.wishes.verbose:
        for each in data.phases:
            screen.line(f"{each.phase}: {each.seconds:.3f} s", sign="info")


def _headline(data: Receipt) -> tuple[str, str]:
    from tfx.upgrade.model import State

    name = data.database
    match data.state:
        case State.CURRENT:
            return "ok", f"{name} is current (schema {data.to_version})"
        case State.CHECKED:
            return "warn", f"{name} needs an upgrade: {data.pending}"
        case State.REHEARSED:
            return "ok", f"rehearsed on a copy; {name} is untouched"
        case State.RESTORED:
            return "changed", f"{name} is as it was in {data.restored_from}"
        case State.BACKED_UP:
            return "changed", f"{name} is backed up"
        case State.UPGRADED | State.VERIFIED:
            moved = f"schema {data.from_version} to {data.to_version}"
            return "changed", f"{name} is upgraded: {moved}"


def _show_rows(screen: Screen, data: Receipt) -> None:
    if screen.wishes.verbose:
        for table, count in data.rows.items():
            before = "-" if count.before is None else f"{count.before:,}"
            after = "-" if count.after is None else f"{count.after:,}"
            screen.line(f"{table}: {before} rows before, {after} after", sign="info")
    for each in data.space:
        if screen.wishes.verbose or data.pending:
            screen.line(
                f"space on {each.path}: {each.needed_bytes / 1e6:,.1f} MB needed, "
                f"{each.free_bytes / 1e6:,.1f} MB free",
                sign="info",
            )


def _show_adoption(screen: Screen, data: Receipt) -> None:
    found = data.adopted
    if found is None:
        return
    for table, number in found.arrived.items():
        total = number + sum(each.table == table for each in found.left_out)
        screen.line(f"{table}: {number:,} of {total:,} rows arrived", sign="ok")
    for table, number in found.not_taken.items():
        screen.line(f"{table}: {number:,} rows stay in the backup only", sign="info")
    if found.shift_ms:
        screen.line(
            f"open deadlines moved by {found.shift_ms / 3_600_000:,.1f} hours: time stood still "
            "since the last activity",
            sign="info",
        )
    for kind, number in found.dropped_values.items():
        screen.line(
            f"{number} answers to {kind} requests were not taken over; the backup holds them",
            sign="warn",
        )
    for each in found.left_out:
        screen.line(f"left out: {each.table} {each.key}: {each.reason}", sign="warn")
