"""What a guest has told of its first password."""

from __future__ import annotations

ENCRYPTED_PASSWORD = "encrypted_password"
"""Where a server's request keeps it: only the owner of its key can read it."""
