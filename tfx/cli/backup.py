"""`tfx backup create|list|verify|restore|prune`: the backups of the hub's database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from tfx.cli.context import Command, finish, new_app
from tfx.cli.output import counted
from tfx.cli.upgrade import BackupDir, Database, StopHub, absolute, show_receipt

if TYPE_CHECKING:
    from pathlib import Path

    from tfx.cli.output import Screen
    from tfx.core.paths import Paths
    from tfx.result import Result
    from tfx.upgrade.model import Receipt
    from tfx.upgrade.shelf import Pruned, Row, Shelf, Verified

app = new_app("backup", "Back the hub's database up, look at the backups, restore one.")

LyingIn = Annotated[
    str | None,
    typer.Option("--backup-dir", metavar="DIR", help="Where the backups lie."),
]


@app.command("create", cls=Command)
def create(ctx: typer.Context, backup_dir: BackupDir = None, db: Database = None) -> None:
    """Make one verified backup of the hub's database.

    The hub may run or not.
    """

    def feature(screen: Screen, paths: Paths) -> Result[Receipt]:
        from tfx.cli.progress import Bar
        from tfx.upgrade import snapshot
        from tfx.upgrade.orders import Places

        places = Places.of(paths, absolute(db), absolute(backup_dir))
        with Bar(screen) as bar:
            return snapshot.create(paths, places, bar.told)

    finish(ctx, "backup create", feature, show_receipt)


@app.command("list", cls=Command)
def list_backups(ctx: typer.Context, backup_dir: LyingIn = None) -> None:
    """List the backups, newest first."""

    def feature(screen: Screen, paths: Paths) -> Result[Shelf]:
        from tfx.upgrade import shelf, stores

        del screen
        others = stores.others(paths) if backup_dir is None else ()
        return shelf.listed(_store(paths, backup_dir), others)

    def render(screen: Screen, data: Shelf) -> None:
        if not data.backups:
            screen.line(f"no backups in {data.store}")
        for row in data.backups:
            _show(screen, row)
        if data.elsewhere:
            from pathlib import Path

            from tfx.doctor.words import command

            words = ("tfx", "backup", "list", "--backup-dir")
            for store in data.elsewhere:
                look = command(Path(screen.home), *words, Path(store))
                screen.line(f"others lie in {store}: {look}", sign="info")

    finish(ctx, "backup list", feature, render)


@app.command("verify", cls=Command)
def verify(
    ctx: typer.Context,
    backups: Annotated[
        list[str] | None, typer.Argument(metavar="[BACKUP]...", help="All of them by default.")
    ] = None,
    backup_dir: LyingIn = None,
) -> None:
    """Read backups from their digest to their last index.

    Exit 1 when one is not as it was.
    """

    def feature(screen: Screen, paths: Paths) -> Result[Verified]:
        from tfx.cli.progress import Bar
        from tfx.upgrade import shelf

        with Bar(screen) as bar:
            names = [_named(each) for each in backups or ()]
            return shelf.verify(paths, _store(paths, backup_dir), names, bar.told)

    def render(screen: Screen, data: Verified) -> None:
        for row in data.backups:
            _show(screen, row)

    finish(ctx, "backup verify", feature, render)


@app.command("restore", cls=Command)
def restore(
    ctx: typer.Context,
    backup: Annotated[str, typer.Argument(metavar="BACKUP", help="Its name or its directory.")],
    backup_dir: BackupDir = None,
    db: Database = None,
    stop_hub: StopHub = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> None:
    """Bring the hub's database back to what a backup holds.

    What is there is backed up first.
    Mail that was acked since the backup was made will be delivered again.
    """

    def feature(screen: Screen, paths: Paths) -> Result[Receipt]:
        from tfx.cli.progress import Bar
        from tfx.errors import StateConflict
        from tfx.upgrade import shelf
        from tfx.upgrade.orders import Places

        places = Places.of(paths, absolute(db), absolute(backup_dir))
        question = f"Replace {places.database} by {backup}? What is there is backed up first."
        if screen.interactive and not yes and not screen.ask(question):
            raise StateConflict("nothing was changed", code="declined")
        with Bar(screen) as bar:
            name = _named(backup)
            return shelf.restored(paths, places, name, bar.told, stop_hub=stop_hub)

    finish(ctx, "backup restore", feature, show_receipt)


@app.command("prune", cls=Command)
def prune(
    ctx: typer.Context,
    keep: Annotated[int, typer.Option("--keep", metavar="N", help="Keep the newest N.")] = 10,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be deleted.")
    ] = False,
    backup_dir: LyingIn = None,
    db: Database = None,
) -> None:
    """Delete old backups.

    Never the first of a schema, nor one whose upgrade is not finished.
    """

    def feature(screen: Screen, paths: Paths) -> Result[Pruned]:
        from tfx.upgrade import shelf
        from tfx.upgrade.orders import Places

        del screen
        places = Places.of(paths, absolute(db), absolute(backup_dir))
        return shelf.prune(places.store, places.database, keep, dry_run=dry_run)

    def render(screen: Screen, data: Pruned) -> None:
        word = "would delete" if data.dry_run else "deleted"
        for each in data.removed:
            screen.line(f"{word} {each}", sign="changed")
        screen.line(f"{counted(data.kept, 'backup')} kept in {data.store}", sign="ok")

    finish(ctx, "backup prune", feature, render)


def _store(paths: Paths, backup_dir: str | None) -> Path:
    return absolute(backup_dir) or paths.backup_dir


def _named(text: str) -> str:
    """Return a name in the store, or the absolute form of what is a path."""
    return str(absolute(text)) if "/" in text else text


def _show(screen: Screen, row: Row) -> None:
    from tfx.core.clock import iso
    from tfx.upgrade.shelf import Health

    sign = {Health.SOUND: "ok", Health.UNVERIFIED: "warn", Health.DAMAGED: "bad"}[row.health]
    made = "?" if row.made_at_ms is None else iso(row.made_at_ms)[:19] + "Z"
    size = "" if row.bytes is None else f", {row.bytes / 1e6:,.1f} MB"
    version = "" if row.version is None else f", schema {row.version}"
    why = "" if row.why is None else f": {row.why}"
    screen.line(f"{made} {row.reason or 'unknown'}{version}{size}  {row.directory}{why}", sign=sign)
