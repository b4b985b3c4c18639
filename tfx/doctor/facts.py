"""What the checks of one run share: each fact is found once, when the first check asks for it.

Knows no check; finding a fact changes nothing on the machine (D-1).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from tfx.core.paths import Paths
from tfx.doctor.options import Options

if TYPE_CHECKING:
    from tfx.agents.detect import Detected
    from tfx.agents.model import Agent
    from tfx.agents.versions import AgentVersion, Unknown
    from tfx.doctor.wanted import Wanted
    from tfx.hub.daemon.probe import Probe
    from tfx.hub.store.inspection import Inspection
    from tfx.hub.wire.agents import AgentView
    from tfx.plan.records import Manifest
    from tfx.shells.cell import Cell
    from tfx.shells.installations import Installation
    from tfx.shells.matrix import Matrix

T = TypeVar("T")

HELPERS = ("node", "npm", "tfx")


@dataclass(frozen=True, slots=True)
class Program:
    """One copy of an agent: where it wins, what it is, and the PATH it is started with."""

    installation: Installation
    detected: Detected
    cell: Cell

    @property
    def paths_env(self) -> Mapping[str, str]:
        """The variables that differ from tfx's own environment when it is started there."""
        return {"PATH": self.cell.path_text or ""}


@dataclass(frozen=True, slots=True)
class InUse:
    """An agent that a probed shell finds on its PATH (K-47); the copies that win, in order."""

    agent: Agent
    binary: str
    programs: tuple[Program, ...]


class Facts:
    """The facts of one run. Safe to ask from several threads.

    A fact that cannot be found raises the same error for everybody who asks. `waited_ms` is how
    long the asking thread only waited for another one's work, which is not its own time (D-22).
    """

    def __init__(self, paths: Paths, options: Options) -> None:
        self.paths = paths
        self.options = options
        self.cancel = threading.Event()
        self._guard = threading.Lock()
        self._found: dict[str, _Once] = {}
        self._waits = threading.local()

    def shared(self, name: str, find: Callable[[], T]) -> T:
        """Return what `find` finds, called once for each name."""
        with self._guard:
            once = self._found.setdefault(name, _Once())
        started = time.monotonic()
        with once.lock:
            if not once.done:
                once.settle(find)
            else:
                self._waits.ms = self.waited_ms + (time.monotonic() - started) * 1000
        return cast("T", once.result())

    @property
    def waited_ms(self) -> float:
        """Milliseconds that this thread has waited for facts which others were finding."""
        waited: float = getattr(self._waits, "ms", 0.0)
        return waited

    # shells ------------------------------------------------------------------------------

    @property
    def matrix(self) -> Matrix:
        """Every chosen shell in every mode, with all names that any check asks for."""
        return self.shared("matrix", self._matrix)

    def _matrix(self) -> Matrix:
        from tfx.agents.catalogue import AGENTS  # noqa: PLC0415  (start-up rule)
        from tfx.shells.matrix import probe_matrix  # noqa: PLC0415

        names = [name for agent in AGENTS for name in agent.binaries]
        return probe_matrix(
            self.paths,
            [*names, *HELPERS],
            timeout_s=self.options.timeout_s,
            all_shells=self.options.all_shells,
            variables=[name for agent in AGENTS for name in agent.variables],
            cancel=self.cancel,
        )

    @property
    def in_use(self) -> tuple[InUse, ...]:
        """The agents that can be started from some shell, in catalogue order (K-47)."""
        return self.shared("in use", self._in_use)

    def _in_use(self) -> tuple[InUse, ...]:
        from tfx.agents.catalogue import AGENTS  # noqa: PLC0415

        found = (self._programs(agent) for agent in AGENTS)
        return tuple(one for one in found if one is not None)

    def _programs(self, agent: Agent) -> InUse | None:
        from tfx.agents.detect import identify  # noqa: PLC0415
        from tfx.shells.installations import winners  # noqa: PLC0415

        for binary in agent.binaries:
            programs = []
            for one in winners(self.matrix, binary):
                labels = (*one.wins_in, *one.aliased_in)
                cell = next(cell for cell in self.matrix.cells if cell.label in labels)
                seen = self.paths_in(cell)
                programs.append(Program(one, identify(seen, agent, one.paths[0]), cell))
            known = tuple(each for each in programs if each.detected.is_installed)
            if known and any(each.installation.wins_in for each in known):
                return InUse(agent, binary, known)
        return None

    def paths_in(self, cell: Cell) -> Paths:
        """Return the paths as a program started from this cell would have them."""
        return replace(self.paths, env={**self.paths.env, "PATH": cell.path_text or ""})

    def live_paths(self, agent: Agent, cell: Cell) -> Paths:
        """Return the paths by which an agent started from this cell finds its settings (D-174)."""
        own = {name: cell.variables[name] for name in agent.variables if name in cell.variables}
        return replace(self.paths, env={**self.paths.env, **own})

    def version(self, program: Program) -> AgentVersion | Unknown:
        """Return the version: of package.json, else of `--version` (D-88)."""
        from tfx.agents.versions import AgentVersion  # noqa: PLC0415

        if isinstance(program.detected.version, AgentVersion):
            return program.detected.version
        return self.answer(program)

    def answer(self, program: Program) -> AgentVersion | Unknown:
        """Return what running `--version` in a scratch HOME says (D-91)."""
        from tfx.agents.versions import probe_version  # noqa: PLC0415

        rule = program.detected.agent.version
        rule = replace(rule, timeout_s=max(rule.timeout_s, self.options.timeout_s))
        path = program.installation.paths[0]
        return self.shared(
            f"--version {path}",
            partial(probe_version, path, rule, self.paths_in(program.cell), self.cancel),
        )

    def ask_versions(self) -> None:
        """Run `--version` of every program in use, all at the same time (D-93)."""
        from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415

        programs = [program for one in self.in_use for program in one.programs]
        if programs:
            with ThreadPoolExecutor(min(8, len(programs)), "tfx-version") as pool:
                list(pool.map(self.answer, programs))

    # agents and setup --------------------------------------------------------------------

    @property
    def detected(self) -> tuple[Detected, ...]:
        """What tfx's own PATH and the home directory show; nothing is run for it."""
        return self.shared("detected", self._detected)

    def _detected(self) -> tuple[Detected, ...]:
        from tfx.agents.catalogue import AGENTS  # noqa: PLC0415
        from tfx.agents.detect import detect  # noqa: PLC0415

        return detect(self.paths, AGENTS)

    @property
    def manifest(self) -> Manifest:
        """What setup has recorded. Raises StateConflict (S-39)."""
        return self.shared("manifest", self._manifest)

    def _manifest(self) -> Manifest:
        from tfx.plan.engine import Engine  # noqa: PLC0415

        return Engine(self.paths.setup_dir).manifest()

    @property
    def wanted(self) -> Wanted:
        """The described state and the plan that leads to it. Raises TfxError."""
        from tfx.doctor import wanted  # noqa: PLC0415

        return self.shared("wanted", partial(wanted.look, self.paths))

    # hub ---------------------------------------------------------------------------------

    @property
    def probe(self) -> Probe:
        """The one probe of the hub (H-14, K-21)."""
        from tfx.hub.daemon import probe  # noqa: PLC0415

        answer_s = max(probe.ANSWER_S, self.options.timeout_s)
        return self.shared("probe", partial(probe.probe, self.paths, answer_s=answer_s))

    @property
    def hub_runs(self) -> bool:
        """Whether a hub of ours answers."""
        return self.probe.state.value == "running"

    @property
    def hub_since_ms(self) -> int:
        """When the running hub started: before that nobody could be heard."""
        recorded = self.probe.recorded
        return 0 if recorded is None else recorded.started_at_ms

    @property
    def hub_agents(self) -> tuple[AgentView, ...]:
        """The agents as the running hub sees them: only it knows when one was heard last.

        Raises TfxError.
        """
        return self.shared("hub agents", self._hub_agents)

    def _hub_agents(self) -> tuple[AgentView, ...]:
        from tfx.hub.client import HubClient  # noqa: PLC0415  (start-up rule)
        from tfx.hub.wire.agents import AgentsRequest, AgentsResult  # noqa: PLC0415

        found: list[AgentView] = []
        after = None
        with HubClient.of(self.paths) as client:
            while True:
                page = client.call("agents", AgentsRequest(after=after), AgentsResult)
                found.extend(page.agents)
                if page.next_after is None:
                    return tuple(found)
                after = page.next_after

    @property
    def inspection(self) -> Inspection:
        """What a read-only look into the database shows. Raises TfxError."""
        from tfx.hub.store import inspection  # noqa: PLC0415

        return self.shared(
            "inspection",
            lambda: inspection.inspect(self.probe.files.database, deep=self.options.deep),
        )


class _Once:
    """One fact, or the error of looking for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.done = False
        self._value: Any = None
        self._error: Exception | None = None

    def settle(self, find: Callable[[], object]) -> None:
        try:
            self._value = find()
        except Exception as error:  # noqa: BLE001  (raised again for everybody who asks)
            self._error = error
        self.done = True

    def result(self) -> object:
        if self._error is not None:
            raise self._error
        return self._value
