"""What was refused at the door for want of the operator credential, as an event too (WK-K6).

Knows no transport: the door itself refuses (H-47), this only writes it down.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from tfx.hub.services.work.recording import Asked, refuse

if TYPE_CHECKING:
    from collections.abc import Mapping

    import msgspec

    from tfx.errors import AccessDenied
    from tfx.hub.services.work.people import Working
    from tfx.hub.store.store import Store

Refuser: TypeAlias = "Callable[[msgspec.Struct, AccessDenied], Awaitable[None]]"

_VERBS: Final = MappingProxyType(
    {
        "work_force_release": "force-release",
        "work_delete": "delete",
        "work_lock": "lock",
        "work_unlock": "unlock",
    }
)


def refusers(store: Store) -> Mapping[str, Refuser]:
    """Return for each privileged operation about work what keeps its refusal."""

    def of(verb: str) -> Refuser:
        async def keep(request: msgspec.Struct, error: AccessDenied) -> None:
            await refuse(store, Asked(cast("Working", request), verb, guarded=False), error)

        return keep

    return MappingProxyType({name: of(verb) for name, verb in _VERBS.items()})
