"""The files with which a process of ours speaks TLS itself."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

from oslo_config import cfg

from moorage.core.config import ConfigError


@dataclass(frozen=True)
class TlsFiles:
    cert: Path
    """With those in between that lead to a known authority, if there are any."""
    key: Path
    client_ca: Path | None
    """Who has to have signed the certificate that each client then has to show."""

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts, group: str) -> TlsFiles | None:
        """None where a group has no certificate; ConfigError for files that are of no use."""
        options = conf[group]
        if not options.cert:
            if options.key or options.client_ca:
                raise ConfigError(f"[{group}] has no cert, without which key and client_ca mean nothing")
            return None
        files = cls(
            Path(options.cert),
            Path(options.key or options.cert),
            Path(options.client_ca) if options.client_ca else None,
        )
        try:
            files.context()
        except ConfigError as error:
            raise ConfigError(f"[{group}] {error}") from error
        return files

    def context(self) -> ssl.SSLContext:
        """As the files are now; ConfigError if they are of no use."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.cert, self.key, password=no_password)
        except (OSError, ValueError) as error:
            raise ConfigError(f"cert {self.cert} with key {self.key} can't be used: {error}") from error
        if self.client_ca is not None:
            try:
                context.load_verify_locations(self.client_ca)
            except OSError as error:
                raise ConfigError(f"client_ca {self.client_ca} can't be used: {error}") from error
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def no_password() -> str:
    """OpenSSL would ask at the terminal."""
    raise ValueError("the key must not be encrypted: nobody is there to say its password")
