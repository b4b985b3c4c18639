"""Tell the person that an agent asks: a line in the hub's log, and the configured command.

Knows no answer and no secret; the command gets text on standard input, never in its arguments
(H-68, K-30). A command that fails is logged and changes nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from typing import Final

from tfx.core import process
from tfx.hub.wire.humans import HumanView

_LIMIT_S: Final = 30.0
_SHOWN: Final = 2_000
_log = logging.getLogger("tfx.hub.humans")


class Announcer:
    """Announces each request once, when it is opened."""

    def __init__(self, argv: tuple[str, ...], env: Mapping[str, str]) -> None:
        self._argv = argv
        self._env = dict(env)

    def __call__(self, view: HumanView) -> None:
        """Announce a request; returns at once."""
        _log.warning(
            "%s asks the person at this machine (%s, %s): tfx hub human list",
            view.requester_agent,
            view.kind.value,
            view.request_id,
        )
        if self._argv:
            threading.Thread(target=self._run, args=(_text(view),), daemon=True).start()

    def _run(self, text: str) -> None:
        try:
            done = process.run(self._argv, env=self._env, timeout_s=_LIMIT_S, stdin=text.encode())
        except OSError as error:
            _log.error("the notify command cannot be run: %s", error.strerror)
            return
        if not done.ok:
            how = "was stopped after its time" if done.timed_out else f"ended with {done.code}"
            _log.error("the notify command %s", how)


def _text(view: HumanView) -> str:
    return (
        f"{view.requester_agent} asks ({view.kind.value}):\n"
        f"{view.prompt[:_SHOWN]}\n\n"
        f"tfx hub human answer {view.request_id}\n"
    )
