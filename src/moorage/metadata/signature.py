"""How somebody who knows the guest vouches for it: as Neutron's metadata agents do."""

from __future__ import annotations

import hashlib
import hmac

INSTANCE_ID = "X-Instance-ID"
SIGNATURE = "X-Instance-ID-Signature"
TENANT_ID = "X-Tenant-ID"
HOST = "X-Moorage-Host"
"""From an agent of ours in place of the project: the host whose guest asks."""
FORWARDED_FOR = "X-Forwarded-For"


def sign(secret: str, instance_id: str) -> str:
    return hmac.new(secret.encode(), instance_id.encode(), hashlib.sha256).hexdigest()


def matches(secret: str, instance_id: str, signature: str) -> bool:
    """In a time that tells nothing."""
    return hmac.compare_digest(sign(secret, instance_id).encode(), signature.encode())
