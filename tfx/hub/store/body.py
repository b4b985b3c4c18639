"""What every body of an event derives from.

Knows no kind of event.
"""

from __future__ import annotations

import msgspec


class Body(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of what an event carries beside its common columns."""
