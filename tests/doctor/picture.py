"""Draw the picture in README anew: `python -m tests.doctor.picture` writes `.github/doctor.svg`.

A machine of stand-ins is looked at for real; only what differs from run to run is evened out.
"""

from __future__ import annotations

import io
import re
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from tests.doctor.world import Clinic
from tfx.cli import doctor_picture
from tfx.doctor.report import DoctorData

PICTURE = Path(__file__).parents[2] / ".github" / "doctor.svg"
WIDTH = 112
SKIPPED = ("runtime", "time", "locale", "cli.auth", "cli.method", "cli.exec", "shell.columns")
GUARD = "case $- in *i*) ;; *) return;; esac\n"


def look(root: Path) -> DoctorData:
    """A machine with the usual troubles: a guarded .bashrc, a lost exec bit, a hook to nothing."""
    clinic = Clinic(root, "claude", "codex", "gemini")
    local = clinic.home / ".npm/bin"
    local.mkdir(parents=True)
    for name in ("codex", "gemini"):
        (local / name).symlink_to((clinic.bin / name).resolve())
    tools = clinic.home / "tools"
    tools.mkdir()
    (tools / "claude").symlink_to((clinic.bin / "claude").resolve())
    clinic.env["SHELL"] = shutil.which("zsh") or "/bin/bash"
    clinic.write(".zshrc", 'export PATH="$HOME/tools:$PATH"\n')
    for name in (".zshenv", ".profile"):
        clinic.write(name, 'export PATH="$HOME/.npm/bin:$PATH"\n')
    clinic.setup()
    clinic.write(".codex/config.toml", 'model = "o4"\nmodel = "o5"\n')
    (clinic.home / ".claude/hud/tfx-hud.py").chmod(0o644)
    found = clinic.look("shells", "agents", "setup", "hub", "machine", skip=SKIPPED).data
    return replace(found, slow=())


def draw(data: DoctorData) -> str:
    """The report as an SVG document."""
    console = Console(
        record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, emoji=False,
        highlight=False, markup=False, soft_wrap=True,
    )  # fmt: skip
    doctor_picture.show(console, data, verbose=False)
    text = console.export_svg(title="tfx doctor", unique_id="tfx-doctor")
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    return re.sub(r"\s*@font-face \{.*?\}\n", "\n", text, flags=re.DOTALL)  # nothing from afar


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="tfx-picture-") as scratch:
        text = draw(look(Path(scratch)))
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text("\n".join(line.rstrip() for line in text.splitlines()) + "\n", "utf-8")


if __name__ == "__main__":
    main()
