"""How the Keystone of the tests is configured: quick, quiet, and all of it in one directory.

Without its cache, which is in its one process, Keystone takes ten times the processor for a token.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.profiles import Settings

ADMIN_PASSWORD = "admin-secret"
REGION = "RegionOne"
PAGE = "2"
"""No list is longer; Keystone cuts most of them off there, and offers no next page."""


def settings(directory: Path, page: str = PAGE) -> Settings:
    keys = {"key_repository": str(directory / "fernet")}
    return {
        "DEFAULT": {
            "log_file": str(directory / "keystone.log"),
            "list_limit": page,
            "max_db_limit": page,
        },
        "database": {
            "connection": f"sqlite:///{directory / 'keystone.sqlite'}",
            "sqlite_synchronous": "false",
        },
        "cache": {"enabled": "true", "backend": "oslo_cache.dict"},
        "token": {"provider": "fernet"},
        "fernet_tokens": keys,
        "fernet_receipts": keys,
        "credential": {"key_repository": str(directory / "credential")},
        "identity": {"password_hash_rounds": "4"},
        "oslo_messaging_notifications": {"driver": "noop"},
    }
