"""New ids: 32 hex digits that rise with time, as UUID version 7 lays them out.

Knows nothing of what they name.
"""

from __future__ import annotations

import os


def new_id(now_ms: int) -> str:
    """Return a fresh id; also a valid W3C trace id (H-60)."""
    noise = int.from_bytes(os.urandom(10), "big")
    high = (noise >> 62) & 0xFFF
    low = noise & 0x3FFF_FFFF_FFFF_FFFF
    return f"{now_ms & 0xFFFF_FFFF_FFFF:012x}7{high:03x}{0x8000_0000_0000_0000 | low:016x}"
