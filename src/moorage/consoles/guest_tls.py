"""How the proxy speaks TLS with hosts, and which of them need not."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from oslo_config import cfg

from moorage.compute.consoles.tokens import ConsoleGrant
from moorage.core.config import ConfigError
from moorage.http.tls import no_password


@dataclass(frozen=True)
class GuestTls:
    ca: Path
    cert: Path | None = None
    """What hosts are shown that ask who we are."""
    key: Path | None = None
    by_address: bool = False
    """A host's certificate names its address, rather than the host."""
    plain_hosts: tuple[str, ...] = ()

    @classmethod
    def from_conf(cls, conf: cfg.ConfigOpts) -> GuestTls | None:
        """None without an authority; ConfigError for files that are of no use."""
        options = conf.consoles
        if not options.guest_ca:
            if options.guest_cert or options.guest_key or options.plain_hosts:
                raise ConfigError(
                    "[consoles] has no guest_ca, without which guest_cert, guest_key and plain_hosts mean "
                    "nothing"
                )
            return None
        if options.guest_key and not options.guest_cert:
            raise ConfigError("[consoles] has no guest_cert, without which guest_key means nothing")
        made = cls(
            Path(options.guest_ca),
            Path(options.guest_cert) if options.guest_cert else None,
            Path(options.guest_key) if options.guest_key else None,
            options.guest_name == "address",
            tuple(options.plain_hosts),
        )
        made.context()
        return made

    def context(self) -> ssl.SSLContext:
        """As the files are now, so that renewed ones need no restart; ConfigError if they are of no use."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which checks certificates and the names in them
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.options |= ssl.OP_NO_RENEGOTIATION
        context.hostname_checks_common_name = False
        try:
            context.load_verify_locations(self.ca)
        except OSError as error:
            raise ConfigError(f"[consoles] guest_ca {self.ca} can't be used: {error}") from error
        if self.cert is not None:
            try:
                context.load_cert_chain(self.cert, self.key, password=no_password)
            except (OSError, ValueError) as error:
                files = f"guest_cert {self.cert} with guest_key {self.key or self.cert}"
                raise ConfigError(f"[consoles] {files} can't be used: {error}") from error
        return context

    def name(self, grant: ConsoleGrant) -> str:
        """What has to be in the certificate of who answers.

        The host's name is from our own database: a host that would send us to another one's guests, by
        telling that one's address, has not got it.
        """
        return grant.address.host if self.by_address else grant.server_host

    def may_be_plain(self, host: str) -> bool:
        return any(fnmatchcase(host, pattern) for pattern in self.plain_hosts)
