"""Recognise the tables that triflux added to its bus over time, by their text alone (U-85).

Knows nothing of what they hold: tfx uses none of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tfx.hub.schema.identity import SchemaObject

_KNOWN: Final[Mapping[tuple[str, str], str]] = MappingProxyType(
    {
        ("index", "idx_adaptive_rules_confidence"): (
            "a648ff50d95e6afd1a6fbef9fbe4dcb0df3790dbd46f328f340a68e8becde1ac"
        ),
        ("index", "idx_adaptive_rules_last_seen"): (
            "59a20fe0369322b424d0ab63d0a4a0f7f8c9ae76735df858761902fad6c2e3b4"
        ),
        ("index", "idx_assign_jobs_deadline"): (
            "f57230a7d0ee436707c809fbf3ba139a786565b66fce6ffff6e3fb573396a8e1"
        ),
        ("index", "idx_assign_jobs_status"): (
            "a6acc8ccb98b4ef2869025281ae8d34273ff02ed5d2e31a07dbb0a5780f9aac2"
        ),
        ("index", "idx_assign_jobs_supervisor"): (
            "6fc951df298b98c8814fce135a0c3a5abd47969da74d2efb95a0556205371b69"
        ),
        ("index", "idx_assign_jobs_worker"): (
            "ceb39a25fb0f0c4e414e4e529680b70a123ec5ef1a9f9db8dcd901daecb5cd2d"
        ),
        ("index", "idx_reflexion_confidence"): (
            "fed5466de310b3e8d907a186a6f028dab58894714ffd16e4ee7e2a9e1e16a17f"
        ),
        ("index", "idx_reflexion_pattern"): (
            "fc8e63e192d477ea9b8af87d3352bca11d9e9f478c68ede6fd788a0d0058825f"
        ),
        ("table", "_meta"): ("c7cbda0c5abff752d462c4619dee0ab2befe951233c2cd4def6623ceed1359df"),
        ("table", "adaptive_rules"): (
            "33db8971425d76bead06fdb312d4fa55567029edb64cbc002e67d8d008358b6b"
        ),
        ("table", "assign_jobs"): (
            "bb990cab68d16065e33c00f2c94a83a132c6629564a852ba6807ecc58ccb513a"
        ),
        ("table", "pipeline_state"): (
            "0fc296a4cbf400784a79b020219736ee583c3672094e9aedc8bd98b1ac3c8b73"
        ),
        ("table", "reflexion_entries"): (
            "4a1248ddc07ec1dbae2b1c153b1be226b0a38986d661530b68b88fb5c63391fb"
        ),
    }
)
"""Kind and name of each object, and the digest of its tokens without the optional columns."""

_OPTIONAL: Final[Mapping[str, tuple[tuple[str, ...], ...]]] = MappingProxyType(
    {
        "reflexion_entries": (
            ("type", "text", "not", "null", "default", "'reflexion'"),
            ("adaptive_state_json", "text", "not", "null", "default", "'{}'"),
        ),
        "adaptive_rules": (
            ("error_message", "text"),
            ("solution", "text"),
            ("context", "text"),
        ),
    }
)
"""Columns that later releases added, by ALTER or in their own text, one by one."""


def is_known_extra(found: SchemaObject) -> bool:
    """Return True for an object that some release of triflux made beside its five tables."""
    wanted = _KNOWN.get((found.type, found.name))
    return wanted is not None and digest_of(found) == wanted


def digest_of(found: SchemaObject) -> str:
    """Return the digest of an object's tokens, without the columns that later releases added."""
    tokens = list(found.tokens)
    if found.type == "table":
        for column in _OPTIONAL.get(found.name, ()):
            _remove(tokens, (",", *column))
    text = json.dumps([found.type, found.table, tokens], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _remove(tokens: list[str], column: tuple[str, ...]) -> None:
    width = len(column)
    for at in range(len(tokens) - width):
        # the next token must end the definition: a longer one is another column
        if tuple(tokens[at : at + width]) == column and tokens[at + width] in {",", ")"}:
            del tokens[at : at + width]
            return
