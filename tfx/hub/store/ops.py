"""Turn a request with an `op_id` into the key that makes its retry harmless (EV-L7, EV-L8).

Knows no operation.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import msgspec

from tfx.core import canonical_json
from tfx.hub.store.tx import Op

if TYPE_CHECKING:
    from tfx.hub.wire.fields import Mutation


def op_of(operation: str, request: Mutation) -> Op | None:
    """Return the key and digest of a request, or None when it has no key.

    The digest is over the canonical form, so a retry may differ in spaces and order of keys.
    """
    if request.op_id is None:
        return None
    content = canonical_json.canonical(msgspec.json.encode(request))
    digest = hashlib.blake2b(b"%s\0%s" % (operation.encode(), content), digest_size=16)
    return Op(request.op_id, digest.digest())
